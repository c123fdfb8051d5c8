"""A running vLLM server with the overlay on: read, record, change under a lease, settle."""

import json
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from rtopt.engines.answers import ERRORS, MALFORMED, info_of, malformed
from rtopt.engines.client import address, no_answer, open_client
from rtopt.engines.lease import LeaseKeeper
from rtopt.engines.stream import Recording
from rtopt.engines.support import Cards, unsupported
from rtopt.errors import (
    EngineError,
    GoneError,
    HeldError,
    UnavailableError,
    UndoError,
)
from rtopt.overlay.rtopt_overlay.wire import PREFIX, TOKEN_HEADER, WIRE
from rtopt.storage import from_json
from rtopt.types import (
    Change,
    EngineState,
    Held,
    Knob,
    Load,
    Trace,
)

LEASE_S = 10.0
_TIMEOUT = httpx.Timeout(15.0, connect=5.0)
_STREAM_TIMEOUT = httpx.Timeout(15.0, connect=5.0, read=10.0)
_READ_ONLY = "no token is configured on the server"
_NO_TOKEN = (
    "this side has no token for the server: give its file with --token-file or RTOPT_TOKEN_FILE,"
    " or the token itself in RTOPT_TOKEN"
)


class VllmServer:
    """Implements `rtopt.types.Engine` over the overlay's routes."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        lease_s: float = LEASE_S,
        holder: str | None = None,
        cards: Cards = (),
    ) -> None:
        """Talk to the server at `url`; nothing is sent yet.

        Args:
            url: The server's address.
            token: What changing needs; None: then nothing can be changed.
            lease_s: How long a change on trial stands without a renewal.
            holder: This controller's name, as others are shown it.
            cards: What /v1/models lists; adapters among it are a reason to change nothing.

        Raises:
            UsageError: Not the URL of an HTTP server, or a token that no HTTP header can carry.
        """
        self._client = open_client(url, timeout=_TIMEOUT, keeps_alive=True)
        self.url = address(self._client)
        self._has_token = token is not None
        if token is not None:
            self._client.headers[TOKEN_HEADER] = token
        self.holder = holder or f"rtopt-{secrets.token_hex(4)}"
        self._lease_s, self._cards = lease_s, cards
        self._keeper = LeaseKeeper(self._renew, lease_s)

    # -- rtopt.types.Engine ----------------------------------------------------------------------

    def state(self) -> EngineState:
        """Read everything about the engine, now."""
        return self._as_state(self._get("state"))

    def apply(self, change: Change) -> Change:
        """Put the change on trial under this controller's lease; returns what undoes it."""
        self._keeper.check()
        answer = self._post(
            "set", knobs=dict(change.knobs), holder=self.holder, lease_s=self._lease_s
        )
        self._keeper.start()
        stands = {name: answer["values"][name] for name in change.knobs}
        if stands != dict(change.knobs):
            raise EngineError(
                f"the engine runs with {stands}, not {dict(change.knobs)} as asked;"
                f" the lease restores it within {self._lease_s:g} s"
            )
        return Change(lever="undo", knobs=answer["before"], reason=f"takes back: {change.reason}")

    def settle(self, *, keep: bool) -> EngineState:
        """Commit what stands, or restore the snapshot, and end the lease."""
        self._keeper.stop()
        verb = "commit" if keep else "restore"
        try:
            self._post(verb, holder=self.holder)
            state = self.state()
        except (EngineError, HeldError) as error:
            if keep or isinstance(error, GoneError):
                raise
            raise UndoError(
                f"the restore was not confirmed ({error}). If the engine lives, its overlay"
                f" restores the snapshot by itself within {self._lease_s:g} s and one step.",
                lease_s=self._lease_s,
            ) from error
        wrong = {k.name: k.value for k in state.knobs if k.value != k.snapshot}
        if wrong:
            raise UndoError(f"after the {verb} these knobs are not at the snapshot: {wrong}")
        return state

    def record(
        self, duration_s: float, *, load: Load | None = None, max_requests: int | None = None
    ) -> Trace:
        """Record steps and requests over the overlay's stream."""
        self._keeper.check()
        taken = Recording(load)
        try:
            for line in self._stream(duration_s):
                taken.add(line, where=f"{self.url}: the recording")
                if max_requests is not None and len(taken.requests) >= max_requests:
                    taken.reason = "requests"
                    break
        except KeyboardInterrupt:
            taken.reason = "interrupted"
            if taken.header is None:
                raise
        self._keeper.confirm()
        return taken.trace()

    # -- beyond the protocol -----------------------------------------------------------------------

    def restore_start(self, *, force: bool = False) -> EngineState:
        """Return to the start-up values, whoever changed them; `force` also ends a lease."""
        self._keeper.stop()
        self._post("restore", holder=self.holder, to="start", force=force)
        return self.state()

    def check_token(self) -> None:
        """Refuse a wrong token now, before anything is measured for a change that it can't make.

        Raises:
            EngineError: The server does not take this token.
        """
        try:
            self._renew()
        except HeldError:
            return  # nothing of ours is on trial, as it should be: the token was taken

    def overlay_cost(self) -> Mapping[str, float]:
        """Nanoseconds that the overlay has spent on recording, and over how many steps."""
        cost: Mapping[str, float] = self._get("state")["cost"]
        return cost

    def close(self) -> None:
        """Stop renewing and close the connection; a change on trial is restored by its lease."""
        self._keeper.stop()
        self._client.close()

    # -- HTTP --------------------------------------------------------------------------------------

    def _renew(self) -> None:
        self._post("renew", holder=self.holder, lease_s=self._lease_s)

    def _get(self, path: str) -> dict[str, Any]:
        return self._answer("GET", path, None)

    def _post(self, path: str, **body: Any) -> dict[str, Any]:
        return self._answer("POST", path, body)

    def _answer(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        try:
            response = self._client.request(method, f"{PREFIX}/{path}", json=body)
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise no_answer(error, where=self.url, path=f"{PREFIX}/{path}") from error
        return self._read(response)

    def _read(self, response: httpx.Response) -> dict[str, Any]:
        try:
            answer = response.json()
        except (ValueError, RecursionError):
            answer = None
        match answer:
            case {"error": {"code": str(code), "message": str(message)}}:
                if code == "token":
                    message += (
                        f"; {'the one that was sent is not its' if self._has_token else _NO_TOKEN}"
                    )
                raise ERRORS.get(code, EngineError)(f"{self.url}: {message}")
            case {"result": dict(result)} if response.status_code == 200:
                return result
            case _:
                raise EngineError(
                    f"{self.url}: {response.request.url.path} answered {response.status_code},"
                    " not as rtopt's overlay does"
                )

    def _stream(self, seconds: float) -> Iterator[dict[str, Any]]:
        request = self._client.build_request(
            "GET", f"{PREFIX}/trace", params={"seconds": seconds}, timeout=_STREAM_TIMEOUT
        )
        try:
            response = self._client.send(request, stream=True)
        except httpx.TransportError as error:
            raise no_answer(error, where=self.url, path=f"{PREFIX}/trace") from error
        try:
            if response.status_code != 200:
                response.read()
                self._read(response)
            for line in response.iter_lines():
                if line:
                    yield json.loads(line)
        except (httpx.TransportError, httpx.DecodingError, ValueError, RecursionError):
            return  # the recording says "disconnected": it has no closing line
        finally:
            response.close()

    def _as_state(self, raw: Mapping[str, Any]) -> EngineState:
        if raw.get("wire") != WIRE:
            raise UnavailableError(
                f"{self.url}: its overlay speaks wire {raw.get('wire')}, this rtopt {WIRE}:"
                " use the same rtopt on both sides"
            )
        try:
            info = info_of(raw)
            return EngineState(
                info=info,
                knobs=tuple(from_json(Knob, k, where="/rtopt/state") for k in raw["knobs"]),
                boot=raw["boot"],
                held=from_json(Held, held, where="/rtopt/state") if (held := raw["held"]) else None,
                read_only=(
                    unsupported(info, self._cards)
                    or (_READ_ONLY if raw["read_only"] else self._lacks_token())
                ),
                running=raw["running"],
                waiting=raw["waiting"],
            )
        except MALFORMED as error:
            raise malformed(f"{self.url}: /rtopt/state", error) from error

    def _lacks_token(self) -> str | None:
        return None if self._has_token else _NO_TOKEN
