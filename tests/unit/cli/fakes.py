"""Servers on loopback that are not what a user hoped for, and one that speaks the overlay's wire.

The overlay here has no engine: its steps are made up in virtual time, so a recording of a minute
takes a moment.
"""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from typing import Any
from urllib.parse import parse_qs, urlsplit

from rtopt.overlay.rtopt_overlay.wire import PREFIX, STATUS, TOKEN_HEADER, WIRE

KNOB = "max_num_active_seqs"
STEP_NS = 20_000_000
CLIENTS = 16


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer; a body that is an iterator is streamed without a length."""

    status: int = 200
    body: str | Iterator[str] = ""
    headers: Mapping[str, str] = field(default_factory=dict)


Site = Callable[["Asked"], Answer]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: dict[str, Any]


class HangUpError(Exception):
    """Raised by a site that ends the connection without another byte."""


@contextmanager
def serving(site: Site) -> Iterator[str]:
    """Serve a site and give its address."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            parts = urlsplit(self.path)
            text = self.rfile.read(int(self.headers.get("content-length") or 0))
            try:
                answer = site(
                    Asked(
                        method=self.command,
                        path=parts.path,
                        query=parse_qs(parts.query),
                        headers=dict(self.headers.items()),
                        body=json.loads(text or b"{}"),
                    )
                )
                self.send(answer)
            except (HangUpError, ConnectionError):
                self.close_connection = True

        do_GET = do_POST = answer  # noqa: N815 - names of the standard library

        def send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if isinstance(answer.body, str):
                body = answer.body.encode()
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                return
            self.end_headers()
            for piece in answer.body:
                self.wfile.write(piece.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()

    def stop() -> None:
        server.shutdown()
        thread.join()
        server.server_close()

    if isinstance(site, Overlay):
        site.on_death = stop
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        stop()


@contextmanager
def nobody() -> Iterator[str]:
    """An address where nobody listens."""
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def silence() -> Iterator[str]:
    """A host that takes connections and never says a word."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def everywhere(answer: Answer) -> Site:
    """The same answer to every question."""
    return lambda asked: answer


def as_json(data: object, status: int = 200) -> Answer:
    """An answer in JSON."""
    kind = {"content-type": "application/json"}
    return Answer(status=status, body=json.dumps(data), headers=kind)


def in_turn(*sites: Site) -> Site:
    """A load balancer that sends each question to the next server."""
    turn = cycle(sites)
    return lambda asked: next(turn)(asked)


def plain_vllm(*, start_s: float = 1.79607e9) -> Site:
    """A vLLM without the overlay; what it does not know is answered as vLLM does."""
    page = f"""\
# TYPE process_start_time_seconds gauge
process_start_time_seconds {start_s}
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="smol"}} 3.0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{{engine="0",model_name="smol"}} 100.0
"""
    unknown = {"error": {"message": "Not Found", "type": "Not Found", "param": None, "code": 404}}

    def site(asked: Asked) -> Answer:
        match asked.path:
            case "/metrics":
                return Answer(body=page)
            case "/version":
                return as_json({"version": "0.32.0"})
            case _:
                return as_json(unknown, 404)

    return site


@dataclass
class Overlay:
    """A vLLM with the overlay on, as far as the wire shows it: 16 clients share few slots."""

    boot: str = "b00t"
    wire: int = WIRE
    token: str | None = None
    """What writing needs; None: read-only."""
    guards_reads: bool = False
    value: int = 4
    snapshot: int = 4
    start: int = 4
    held_by: str | None = None
    lines_before_death: int | None = None
    """The stream ends after so many lines, in the middle of the next one."""
    dies_with: int | None = None
    """A recording at this value of the knob is the death of the server."""
    on_death: Callable[[], None] = lambda: None
    """Ends the server, so that nobody listens any more."""
    now_ns: int = 10**12
    asked: list[str] = field(default_factory=list)

    def __call__(self, asked: Asked) -> Answer:
        self.asked.append(f"{asked.method} {asked.path}")
        if not asked.path.startswith(f"{PREFIX}/"):
            return plain_vllm()(asked)
        verb = asked.path.removeprefix(f"{PREFIX}/")
        if asked.method == "POST" or self.guards_reads:
            if self.token is None:
                return refuse("read_only", "no token is configured on the server")
            if dict_lower(asked.headers).get(TOKEN_HEADER) != self.token:
                return refuse("token", f"the {TOKEN_HEADER} header is missing or wrong")
        match verb:
            case "state":
                return as_json({"result": self.state()})
            case "trace":
                return Answer(body=self.stream(float(asked.query["seconds"][0])))
            case _:
                return self.write(verb, asked.body)

    def state(self) -> dict[str, Any]:
        knob = {"name": KNOB, "value": self.value, "start": self.start, "snapshot": self.snapshot}
        return {
            "wire": self.wire,
            "boot": self.boot,
            "model": "SmolLM2-135M",
            "config": CONFIG,
            "kv": KV,
            "model_config": MODEL_CONFIG,
            "machine": {"cpu": "made up", "num_cpus": 2, "accelerators": []},
            "knobs": [{**knob, "low": 1, "high": 32}],
            "held": {"holder": self.held_by, "remaining_s": 7.0} if self.held_by else None,
            "running": self.value,
            "waiting": CLIENTS - self.value,
            "mono_ns": self.now_ns,
            "unix_ns": self.now_ns + 10**18,
            "version": "0.32.0",
            "read_only": self.token is None,
            "cost": {"record_ns": 1000, "steps": 10},
            "num_api_servers": 1,
        }

    def write(self, verb: str, body: dict[str, Any]) -> Answer:
        holder = body["holder"]
        if self.held_by not in (None, holder) and not body.get("force"):
            return refuse("held", f"the engine is held by {self.held_by} for another 7.0 s.")
        if verb == "renew" and self.held_by is None:
            return refuse("held", "nothing is on trial: the lease ran out")
        before = self.value
        match verb:
            case "set":
                self.value, self.held_by = body["knobs"][KNOB], holder
            case "commit":
                self.snapshot, self.held_by = self.value, None
            case "restore":
                self.snapshot = self.start if body.get("to") == "start" else self.snapshot
                self.value, self.held_by = self.snapshot, None
        return as_json({"result": {"before": {KNOB: before}, "values": {KNOB: self.value}}})

    def stream(self, seconds: float) -> Iterator[str]:
        """The lines of a recording; virtual time passes at once."""
        lines = self.lines(seconds)
        for number, line in enumerate(lines):
            text = json.dumps(line)
            if self.dies_with == self.value:
                self.on_death()
            if self.lines_before_death == number or self.dies_with == self.value:
                yield text[: len(text) // 2]
                return
            yield text + "\n"

    def lines(self, seconds: float) -> Iterator[dict[str, Any]]:
        start_ns = self.now_ns
        end_ns = start_ns + int(seconds * 1e9)
        self.now_ns = end_ns
        yield {"kind": "open", "start_ns": start_ns, "end_ns": end_ns, "state": self.state()}
        batch = self.value
        for index in range(1, (end_ns - start_ns) // STEP_NS):
            t_ns = start_ns + index * STEP_NS
            is_refill = index % 16 == 0
            # Every 16 steps a whole batch has its answers and the next one is filled in.
            yield {
                "kind": "step",
                "t_ns": t_ns,
                "index": index,
                "dur_ns": STEP_NS - 1_000_000,
                "prefill_requests": batch if is_refill else 0,
                "prefill_tokens": 20 * batch if is_refill else 0,
                "decode_requests": 0 if is_refill else batch,
                "decode_tokens": 0 if is_refill else batch,
                "running": batch,
                "waiting": CLIENTS - batch,
                "kv_frac": 0.1,
                "preempted": 0,
                "output_tokens": batch,
                "ttft_ms": [1000.0] * batch if is_refill else [],
                "itl_ms": [] if is_refill else [20.0] * batch,
            }
            for slot in range(batch if is_refill else 0):
                yield {
                    "kind": "request",
                    "id": f"{index}-{slot}",
                    "arrival_ns": t_ns - 64 * STEP_NS,
                    "finished_ns": t_ns,
                    "prompt_tokens": 20,
                    "output_tokens": 16,
                    "e2e_ms": 1280.0,
                    "max_tokens": 16,
                    "finish": "length",
                }
        clock = {"mono_ns": end_ns, "unix_ns": end_ns + 10**18}
        yield {"kind": "close", "end_ns": end_ns, **clock, "lost": 0}


def refuse(code: str, message: str) -> Answer:
    """A refusal in the overlay's form."""
    return as_json({"error": {"code": code, "message": message}}, STATUS[code])


def dict_lower(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers by their lower-case names."""
    return {name.lower(): value for name, value in headers.items()}


CONFIG: dict[str, Any] = {
    "max_num_seqs": 32,
    "max_num_active_seqs": 4,
    "max_num_batched_tokens": 2048,
    "max_num_scheduled_tokens": None,
    "block_size": 128,
    "enable_prefix_caching": True,
    "enable_chunked_prefill": True,
    "long_prefill_token_threshold": 0,
    "policy": "fcfs",
    "max_model_len": 8192,
    "async_scheduling": False,
}
KV: dict[str, Any] = {
    "num_blocks": 364,
    "block_size": 128,
    "groups": [
        {
            "kind": "FullAttentionSpec",
            "block_size": 128,
            "num_kv_heads": 3,
            "head_size": 64,
            "dtype": "bfloat16",
            "layers": 30,
        }
    ],
}
MODEL_CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 576,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "head_dim": 64,
    "intermediate_size": 1536,
    "vocab_size": 49152,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": True,
}
