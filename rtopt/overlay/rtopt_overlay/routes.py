"""The endpoint plug-in: HTTP routes under /rtopt/ on the API server."""

import asyncio
import json
import os
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import vllm
from fastapi import Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from . import __version__
from .border import failures, guarded, guarded_stream
from .control import hash_id
from .recorder import HUB
from .token import matches, read_token
from .wire import BEAT_S, MAX_LISTENERS, MAX_RECORD_S, PREFIX, STATUS, TOKEN_HEADER

_POLL_S = 0.2
_FAILED = JSONResponse(
    {"error": {"code": "engine", "message": "the overlay failed; the engine goes on"}}, 503
)
Answer = Callable[[Request], Awaitable[Response]]


class RtoptRoutes:
    """What vLLM asks of an endpoint plug-in."""

    name = "rtopt"
    required_tasks = None

    def __init__(self) -> None:
        self._client: Any = None
        self._guards_reads = False
        self._info: dict[str, Any] = {}
        self._closing: set[asyncio.Future[Any]] = set()

    @guarded("attach_router")
    def attach_router(self, app: Any) -> None:
        """Register the routes."""
        reads: dict[str, Answer] = {"state": self._state, "trace": self._trace}
        writes = ("set", "renew", "commit", "restore")
        for path, answer in reads.items():
            self._add(app, path, "GET", self._allowed(answer, writes=False))
        for verb in writes:
            self._add(app, verb, "POST", self._allowed(self._write(verb), writes=True))

    def _add(self, app: Any, path: str, method: str, answer: Answer) -> None:
        app.add_api_route(
            f"{PREFIX}/{path}",
            guarded(f"route_{path}", default=_FAILED)(answer),
            methods=[method],
            include_in_schema=False,
            response_model=None,
        )

    @guarded("init_state")
    async def init_state(
        self,
        engine_client: Any,
        state: Any,  # noqa: ARG002 - vLLM's signature
        args: Any,
    ) -> None:
        """Keep the engine's client; it is None on a server without an engine."""
        self._client = getattr(engine_client, "engine_core", None)
        has_key = bool(getattr(args, "api_key", None) or os.environ.get("VLLM_API_KEY"))
        self._guards_reads = has_key
        self._info = {"num_api_servers": getattr(args, "api_server_count", None) or 1}

    # -- who may -----------------------------------------------------------------------------------

    def _allowed(self, answer: Answer, *, writes: bool) -> Answer:
        async def checked(request: Request) -> Response:
            if writes or self._guards_reads:
                token = read_token()
                if token is None:
                    return _refuse(
                        "read_only",
                        "no token is configured on the server (RTOPT_TOKEN_FILE or RTOPT_TOKEN),"
                        " so nothing can be changed or, behind an API key, read",
                    )
                if not matches(request.headers.get(TOKEN_HEADER), token):
                    return _refuse("token", f"the {TOKEN_HEADER} header is missing or wrong")
            return await answer(request)

        return checked

    # -- the engine --------------------------------------------------------------------------------

    async def _call(self, verb: str, args: dict[str, Any] | None = None) -> dict[str, Any]:
        if not hasattr(self._client, "call_utility_async"):
            return _error("unavailable", "this front end has no way to call its engine")
        if len(getattr(self._client, "core_engines", [0])) > 1:
            return _error(
                "unavailable",
                "this server has several data-parallel engines, which rtopt does not handle yet."
                " Nothing was changed.",
            )
        message = json.dumps({**(args or {}), "verb": verb})
        answer: dict[str, Any] = json.loads(
            await self._client.call_utility_async("rtopt_call", message)
        )
        return answer

    async def _state(self, _request: Request) -> Response:
        return _respond(await self._read())

    async def _read(self) -> dict[str, Any]:
        answer = await self._call("state")
        if "error" not in answer:
            answer["result"].update(
                self._info,
                overlay=__version__,
                version=vllm.__version__,
                read_only=read_token() is None,
                cost={"record_ns": HUB.cost_ns, "steps": HUB.steps},
                front_failures=dict(failures),
            )
        return answer

    def _write(self, verb: str) -> Answer:
        async def answer(request: Request) -> Response:
            try:
                args = json.loads(await request.body() or b"{}")
            except (ValueError, RecursionError):
                args = None
            if not isinstance(args, dict):
                return _refuse("usage", "the body must be a JSON object. Nothing was changed.")
            return _respond(await self._call(verb, args))

        return answer

    # -- the recording -----------------------------------------------------------------------------

    async def _trace(self, request: Request) -> Response:
        given = request.query_params.get("seconds", "")
        try:
            seconds = float(given)
        except ValueError:
            seconds = -1.0
        if not 0 < seconds <= MAX_RECORD_S:
            return _refuse(
                "usage", f"seconds={given!r}: must be above 0 and at most {MAX_RECORD_S:g}"
            )
        state = await self._read()
        if "error" in state:
            return _respond(state)
        if HUB.listeners >= MAX_LISTENERS:
            return _refuse(
                "unavailable",
                f"{HUB.listeners} recordings are open, which is the most at once; end one",
            )
        if self._info.get("num_api_servers", 1) > 1:
            return _refuse(
                "unavailable",
                f"this server has {self._info['num_api_servers']} API servers, and each is handed"
                " only some of the steps: a recording would have holes. Serve with"
                " --api-server-count 1 to record.",
            )
        return StreamingResponse(
            self._lines(seconds, state["result"]), media_type="application/x-ndjson"
        )

    @guarded_stream("lines")
    async def _lines(self, seconds: float, state: dict[str, Any]) -> AsyncIterator[bytes]:
        """Header, requests in flight, then steps and requests as they come, then the end."""
        HUB.listeners += 1
        salt = secrets.token_bytes(16)
        lost = 0
        try:
            asked = await self._call("observe", {"on": True})
            if "error" in asked:
                yield _line({"kind": "error", **asked["error"]})
                return
            position = HUB.seq
            start_ns = beat_ns = time.monotonic_ns()
            end_ns = start_ns + int(seconds * 1e9)
            opened = {"kind": "open", "start_ns": start_ns, "end_ns": end_ns, "state": state}
            yield _lines_of([opened, *await self._in_flight(salt, "start")])
            while True:
                now_ns = time.monotonic_ns()
                fresh, position, gone = HUB.since(position)
                lost += gone
                began = time.perf_counter_ns()
                chunk = [_hashed(salt, x) for x in fresh]
                if now_ns - beat_ns > BEAT_S * 1e9 and not chunk:
                    chunk.append({"kind": "beat", "t_ns": now_ns})
                encoded = _lines_of(chunk)
                HUB.cost_ns += time.perf_counter_ns() - began
                if encoded:
                    beat_ns = now_ns
                    yield encoded
                if now_ns >= end_ns:
                    break
                await asyncio.sleep(min(_POLL_S, max(0.0, (end_ns - now_ns) / 1e9)))
            marks = (await self._call("marks", {"since_ns": start_ns}))["result"]["marks"]
            ended = await self._in_flight(salt, "end")
            closed = {
                "kind": "close",
                "end_ns": end_ns,
                "mono_ns": time.monotonic_ns(),
                "unix_ns": time.time_ns(),
                "lost": lost,
            }
            yield _lines_of([*({"kind": "mark", **m} for m in marks), *ended, closed])
        finally:
            HUB.listeners -= 1
            if HUB.listeners == 0:
                HUB.lines.clear()
                # A task of its own: when the client hangs up, awaits in here are cancelled.
                off = asyncio.ensure_future(self._call("observe", {"on": False}))
                self._closing.add(off)
                off.add_done_callback(self._closing.discard)

    async def _in_flight(self, salt: bytes, edge: str) -> list[dict[str, Any]]:
        found = (await self._call("in_flight", {"salt": salt.hex()}))["result"]["requests"]
        return [{"kind": "in_flight", "edge": edge, **r} for r in found]


def _hashed(salt: bytes, line: dict[str, Any]) -> dict[str, Any]:
    return {**line, "id": hash_id(salt, line["id"])} if line["kind"] == "request" else line


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _lines_of(records: list[dict[str, Any]]) -> bytes:
    return b"".join([_line(r) for r in records])


def _error(code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}


def _refuse(code: str, message: str) -> Response:
    return _respond(_error(code, message))


def _respond(answer: dict[str, Any]) -> Response:
    status = STATUS.get(answer["error"]["code"], 503) if "error" in answer else 200
    return Response(json.dumps(answer), status, media_type="application/json")
