"""A server on loopback that answers as vLLM's completions do, and keeps what it was asked."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

MODEL = "tiny"


class Served(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.at_s: list[float] = []
        self.token_s = 0.0
        self.status = 200
        self.cuts_off = False
        self.has_usage = True
        self.max_model_len = 2048


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Served

    def do_GET(self) -> None:
        model = {"id": MODEL, "max_model_len": self.server.max_model_len}
        self._plain(200, json.dumps({"data": [model]}).encode())

    def do_POST(self) -> None:
        at = time.monotonic()
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.at_s.append(at)
        self.server.asked.append(body)
        self.server.keys.append(self.headers["authorization"])
        if self.server.status != 200:
            self._plain(self.server.status, b'{"error": {"message": "no"}}')
            return
        usage = {"prompt_tokens": len(body["prompt"]), "completion_tokens": body["max_tokens"]}
        if not body.get("stream"):
            self._plain(200, json.dumps({"choices": [{"text": "x"}], "usage": usage}).encode())
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for _ in range(body["max_tokens"]):
            time.sleep(self.server.token_s)
            self._event('{"choices":[{"text":"x"}],"usage":null}')
            if self.server.cuts_off:
                self.close_connection = True
                return
        if self.server.has_usage:
            self._event(json.dumps({"choices": [], "usage": usage}, separators=(",", ":")))
        self._event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, text: str) -> None:
        data = f"data: {text}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _plain(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


@pytest.fixture
def served() -> Iterator[Served]:
    server = Served()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
