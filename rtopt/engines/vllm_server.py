"""A running vLLM server with the overlay on: read, record, change under a lease, settle."""

import json
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from rtopt.engines.client import address, no_answer, open_client
from rtopt.engines.lease import LeaseKeeper
from rtopt.errors import (
    EngineError,
    GoneError,
    HeldError,
    KnobError,
    RtoptError,
    TraceError,
    UnavailableError,
    UndoError,
    UsageError,
)
from rtopt.overlay.rtopt_overlay.wire import PREFIX, TOKEN_HEADER, WIRE
from rtopt.storage import from_json
from rtopt.types import (
    Change,
    Clock,
    End,
    EngineInfo,
    EngineState,
    Header,
    Held,
    InFlight,
    Knob,
    Load,
    Machine,
    Mark,
    Request,
    Step,
    Trace,
    Value,
)

LEASE_S = 10.0
_TIMEOUT = httpx.Timeout(15.0, connect=5.0)
_STREAM_TIMEOUT = httpx.Timeout(15.0, connect=5.0, read=10.0)
_ERRORS: Mapping[str, type[RtoptError]] = {
    "knob": KnobError,
    "usage": UsageError,
    "token": EngineError,
    "read_only": EngineError,
    "held": HeldError,
    "unavailable": UnavailableError,
    "engine": EngineError,
}
_READ_ONLY = "no token is configured on the server"
_NO_TOKEN = (
    "this side has no token for the server: give its file with --token-file or RTOPT_TOKEN_FILE,"
    " or the token itself in RTOPT_TOKEN"
)
_MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError, TraceError)
"""What reading an answer of another form can raise."""
_DERIVED = {
    "step.t_ns": "when the front end received the step's outputs",
    "request.finished_ns": "the step's wall-clock stamp, moved to the monotonic clock",
    "request.arrival_ns": "finished_ns minus e2e_ms",
}


class VllmServer:
    """Implements `rtopt.types.Engine` over the overlay's routes."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        lease_s: float = LEASE_S,
        holder: str | None = None,
    ) -> None:
        """Talk to the server at `url`; nothing is sent yet.

        Raises:
            UsageError: Not the URL of an HTTP server, or a token that no HTTP header can carry.
        """
        self._client = open_client(url, timeout=_TIMEOUT, keeps_alive=True)
        self.url = address(self._client)
        self._has_token = token is not None
        if token is not None:
            self._client.headers[TOKEN_HEADER] = token
        self.holder = holder or f"rtopt-{secrets.token_hex(4)}"
        self._lease_s = lease_s
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
        taken = _Recording(load)
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
                raise _ERRORS.get(code, EngineError)(f"{self.url}: {message}")
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
            return EngineState(
                info=info_of(raw),
                knobs=tuple(from_json(Knob, k, where="/rtopt/state") for k in raw["knobs"]),
                boot=raw["boot"],
                held=from_json(Held, held, where="/rtopt/state") if (held := raw["held"]) else None,
                read_only=_READ_ONLY if raw["read_only"] else self._lacks_token(),
                running=raw["running"],
                waiting=raw["waiting"],
            )
        except _MALFORMED as error:
            raise _malformed(f"{self.url}: /rtopt/state", error) from error

    def _lacks_token(self) -> str | None:
        return None if self._has_token else _NO_TOKEN


def info_of(raw: Mapping[str, Any]) -> EngineInfo:
    """What the overlay's state says about the engine."""
    told = {
        "name": "vllm",
        "version": raw["version"],
        "model": raw["model"],
        "config": raw["config"],
        "kv": raw["kv"],
        "model_config": raw["model_config"],
        "num_engines": raw["config"].get("data_parallel_size") or 1,
        "num_api_servers": raw["num_api_servers"],
    }
    return from_json(EngineInfo, told, where="/rtopt/state")


class _Recording:
    """Lines of one stream, on their way to a Trace."""

    def __init__(self, load: Load | None) -> None:
        self._load = load
        self.header: Header | None = None
        self.steps: list[Step] = []
        self.requests: list[Request] = []
        self._in_flight: list[InFlight] = []
        self._marks: list[Mark] = []
        self._end: End | None = None
        self._last_ns = 0
        self.reason = "disconnected"

    def add(self, line: dict[str, Any], *, where: str) -> None:
        try:
            self._add(line, where)
        except _MALFORMED as error:
            raise _malformed(where, error) from error

    def _add(self, line: dict[str, Any], where: str) -> None:
        kind = line.pop("kind", None)
        match kind:
            case "open":
                self.header = self._open(line)
                self._last_ns = line["start_ns"]
            case "step":
                self.steps.append(from_json(Step, line, where=where))
                self._last_ns = line["t_ns"]
            case "request":
                self.requests.append(from_json(Request, line, where=where))
            case "in_flight":
                self._in_flight.append(from_json(InFlight, line, where=where))
            case "mark":
                self._marks.append(from_json(Mark, line, where=where))
            case "beat":
                self._last_ns = line["t_ns"]
            case "error":
                raise _ERRORS.get(line["code"], EngineError)(f"{where}: {line['message']}")
            case "close":
                self._end = End(
                    end_ns=line["end_ns"],
                    clock=Clock(mono_ns=line["mono_ns"], unix_ns=line["unix_ns"]),
                    dropped={"lines": line["lost"]} if line["lost"] else {},
                )
            case _:
                raise EngineError(f"{where} holds a line of unknown kind {kind!r}")

    def _open(self, line: Mapping[str, Any]) -> Header:
        state = line["state"]
        knobs: dict[str, Value] = {k["name"]: k["value"] for k in state["knobs"]}
        return Header(
            source="overlay",
            engine=info_of(state),
            machine=from_json(Machine, state["machine"], where="/rtopt/state"),
            clock=Clock(mono_ns=state["mono_ns"], unix_ns=state["unix_ns"]),
            start_ns=line["start_ns"],
            knobs=knobs,
            load=self._load,
            derived=_DERIVED,
        )

    def trace(self) -> Trace:
        if self.header is None:
            raise EngineError("the recording ended before it began: the server hung up")
        end = self._end or End(
            end_ns=self._last_ns,
            clock=self.header.clock,
            reason=self.reason,
        )
        start_ns, end_ns = self.header.start_ns, end.end_ns
        return Trace(
            header=self.header,
            end=end,
            steps=tuple(s for s in self.steps if start_ns < s.t_ns <= end_ns),
            requests=tuple(r for r in self.requests if start_ns < r.finished_ns <= end_ns),
            in_flight=tuple(self._in_flight),
            marks=tuple(self._marks),
        )


def _malformed(where: str, error: Exception) -> EngineError:
    told = f"{type(error).__name__} {error}" if isinstance(error, KeyError) else str(error)
    return EngineError(f"{where}: not as rtopt's overlay answers ({told})")
