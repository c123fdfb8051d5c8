import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rtopt.errors import EngineError
from rtopt.types import Change, EngineInfo, EngineState, Held, Load, Trace


@dataclass
class ProfiledServer:
    """Behaves as vLLM's profiler routes do: a step passes with each look at the metrics."""

    folder: Path
    has_profiler: bool = True
    ignores_prefix: bool = False
    counts_steps: bool = True
    stop_status: int = 200
    session: dict[str, Any] | None = None
    steps: int = 100
    calls: list[tuple[str, Any]] = field(default_factory=list)
    url: str = ""

    def get(self, path: str) -> tuple[int, str]:
        if path == "/start_profile":
            return (405 if self.has_profiler else 404), "{}"
        assert path == "/metrics"
        self.steps += 1
        if not self.counts_steps:
            return 200, "vllm:num_requests_running 1\n"
        return 200, f'vllm:iteration_tokens_total_count{{engine="0"}} {self.steps}.0\n'

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, str]:
        self.calls.append((path, body))
        if path == "/start_profile":
            if self.session is not None:
                return 409, "A profiling session is already active"
            self.session = body
            return 200, ""
        if self.stop_status != 200:
            return self.stop_status, "worker died"
        if self.session is not None:
            prefix = "" if self.ignores_prefix else f"{self.session['profile_prefix']}_"
            (self.folder / f"{prefix}rank0.{self.steps}.pt.trace.json.gz").write_bytes(b"")
        self.session = None
        return 200, ""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ProfiledServer]:
    folder = tmp_path / "traces"
    folder.mkdir()
    made = ProfiledServer(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.reply(*made.get(self.path))

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            self.reply(*made.post(self.path, json.loads(self.rfile.read(length) or b"{}")))

        def reply(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        made.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        yield made
        http.shutdown()
        thread.join()


@dataclass
class LiveEngine:
    """An engine that has a start of its own, and may be held."""

    boot: str = "boot-1"
    held: Held | None = None

    def state(self) -> EngineState:
        info = EngineInfo(name="vllm", version="0.32.0", model="m")
        return EngineState(info=info, knobs=(), boot=self.boot, held=self.held)

    def apply(self, change: Change) -> Change:
        raise EngineError(f"no {change.lever}")

    def settle(self, *, keep: bool) -> EngineState:
        raise EngineError(f"nothing to settle: {keep}")

    def record(
        self, duration_s: float, *, load: Load | None = None, max_requests: int | None = None
    ) -> Trace:
        raise EngineError("no recording")


@pytest.fixture
def engine() -> LiveEngine:
    return LiveEngine()


@pytest.fixture(autouse=True)
def _state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
