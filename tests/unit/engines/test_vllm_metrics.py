import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count, cycle

import prometheus_client
import pytest

from rtopt.engines import client
from rtopt.engines.client import open_client
from rtopt.engines.metrics_page import probe
from rtopt.engines.vllm_metrics import MetricsEngine
from rtopt.errors import EngineError, UsageError
from rtopt.metrics import measure
from rtopt.types import Change, Load, Trace

PAGE = """\
# TYPE process_start_time_seconds gauge
process_start_time_seconds {start}
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="/models/smol"}} 3.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{{engine="0",model_name="/models/smol"}} 1.0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{{engine="0",model_name="/models/smol"}} {tokens}
# TYPE vllm:request_success_total counter
vllm:request_success_total{{engine="0",finished_reason="stop"}} {finished}
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{{block_size="128",cache_dtype="auto",enable_prefix_caching="True",\
engine="0",gpu_memory_utilization="0.92",num_gpu_blocks="364",sliding_window="None"}} 1.0
"""
MODELS = {"data": [{"id": "/models/smol", "max_model_len": 2048}]}
Answer = tuple[int, str, dict[str, str]]


def page(start: float = 1.79607e9, tokens: float = 100.0, finished: float = 10.0) -> Answer:
    return 200, PAGE.format(start=start, tokens=tokens, finished=finished), {}


@dataclass
class FakeServer:
    """A server of a few pages on loopback."""

    metrics: Callable[[], Answer] = page
    others: dict[str, Answer] = field(
        default_factory=lambda: {
            "/version": (200, json.dumps({"version": "0.32.0"}), {}),
            "/v1/models": (200, json.dumps(MODELS), {}),
        }
    )
    asked: list[str] = field(default_factory=list)

    def answer(self, path: str) -> Answer:
        self.asked.append(path)
        return self.metrics() if path == "/metrics" else self.others.get(path, (404, "", {}))


@contextmanager
def running(fake: FakeServer) -> Iterator[str]:
    """Serve it and give the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, text, headers = fake.answer(self.path)
            body = text.encode()
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def refusal(fake: FakeServer) -> str:
    with running(fake) as url, closing(MetricsEngine(url)) as engine:
        with pytest.raises(EngineError) as caught:
            engine.state()
        assert caught.value.exit_code == 5
        return str(caught.value)


def test_a_server_without_the_overlay_says_what_it_is_and_why_it_is_read_only() -> None:
    with running(FakeServer()) as url, closing(MetricsEngine(url)) as engine:
        state = engine.state()
    assert state.info.version == "0.32.0"
    assert state.info.model == "smol", "of a path only the last part"
    assert state.info.config == {
        "block_size": 128,
        "cache_dtype": "auto",
        "enable_prefix_caching": True,
        "gpu_memory_utilization": 0.92,
        "num_gpu_blocks": 364,
        "sliding_window": None,
        "max_model_len": 2048,
    }
    assert state.info.kv == {"num_blocks": 364, "block_size": 128}
    assert (state.running, state.waiting, state.knobs) == (3, 1, ())
    assert state.read_only is not None
    assert "rtopt overlay-path" in state.read_only


def test_behind_an_api_key_the_model_comes_from_the_labels() -> None:
    fake = FakeServer(others={"/v1/models": (401, '{"error": "Unauthorized"}', {})})
    with running(fake) as url, closing(MetricsEngine(url)) as engine:
        info = engine.state().info
    assert (info.model, info.version) == ("smol", "unknown")
    assert "max_model_len" not in info.config


def test_nothing_can_be_changed_and_nothing_is_asked_of_the_server_for_it() -> None:
    fake = FakeServer()
    with running(fake) as url, closing(MetricsEngine(url)) as engine:
        with pytest.raises(EngineError, match=r"without rtopt's overlay.*Nothing was changed"):
            engine.apply(Change(lever="l", knobs={"a": 1}, reason="r"))
        with pytest.raises(EngineError, match="nothing to restore"):
            engine.settle(keep=False)
    assert fake.asked == []


def test_a_port_where_nobody_listens_is_named() -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with closing(MetricsEngine(url)) as engine, pytest.raises(EngineError) as caught:
            engine.state()
    assert url in str(caught.value)
    assert "nobody listens" in str(caught.value)


def test_a_port_that_speaks_no_http_is_named() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def greet() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with closing(MetricsEngine(url)) as engine, pytest.raises(EngineError, match="HTTP"):
            engine.state()
        thread.join()


def test_a_404_on_metrics_asks_for_the_prefix() -> None:
    assert "path prefix" in refusal(FakeServer(metrics=lambda: (404, "", {})))


def test_a_prefix_in_the_address_is_kept() -> None:
    class Prefixed(FakeServer):
        def answer(self, path: str) -> Answer:
            return (
                super().answer(path.removeprefix("/llm")) if path[:5] == "/llm/" else (404, "", {})
            )

    with running(Prefixed()) as url, closing(MetricsEngine(f"{url}/llm/")) as engine:
        assert engine.state().info.version == "0.32.0"


def test_another_status_is_named() -> None:
    assert "answered 503" in refusal(FakeServer(metrics=lambda: (503, "", {})))


def test_another_programs_metrics_are_not_vllm() -> None:
    message = refusal(FakeServer(metrics=lambda: (200, "# TYPE up gauge\nup 1\n", {})))
    assert "not vLLM" in message
    assert "--disable-log-stats" in message


def test_a_web_page_is_not_vllm() -> None:
    assert "not a Prometheus page" in refusal(FakeServer(metrics=lambda: (200, "<html>x", {})))


def test_a_redirect_is_not_followed_and_its_target_is_named() -> None:
    with running(FakeServer()) as target:
        fake = FakeServer(metrics=lambda: (307, "", {"location": f"{target}/metrics"}))
        assert target in refusal(fake)


def test_an_answer_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_ANSWER_BYTES", 1000)
    assert "without end" in refusal(FakeServer(metrics=lambda: (200, "#" * 5000, {})))


def test_an_answer_that_trickles_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_ANSWER_S", -1.0)
    assert "no whole answer" in refusal(FakeServer())


def test_two_servers_that_take_turns_are_a_load_balancer() -> None:
    starts = cycle([1.79607e9, 1.79608e9])
    message = refusal(FakeServer(metrics=lambda: page(start=next(starts))))
    assert "a load balancer in front of several servers" in message


def test_two_servers_that_do_not_say_their_start_differ_in_their_counters() -> None:
    tokens = cycle([500.0, 100.0])

    def without_start() -> Answer:
        status, text, headers = page(tokens=next(tokens))
        return status, text.replace("process_start_time_seconds", "other_seconds"), headers

    assert "a load balancer" in refusal(FakeServer(metrics=without_start))


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://a", "http://", "http://a:b", "http://[::1", "http://a:0", ""]
)
def test_what_is_no_address_of_a_server_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError, match="wanted http://HOST:PORT"):
        MetricsEngine(url)


def test_a_password_in_the_address_is_in_no_message() -> None:
    with closing(MetricsEngine("http://me:hunter2@127.0.0.1:9")) as engine:
        assert engine.url == "http://127.0.0.1:9"


def test_the_probe_tells_the_kind_of_server() -> None:
    with running(FakeServer()) as url, open_client(url) as client:
        kind = probe(client)
    assert (kind.version, kind.model, kind.max_model_len) == ("0.32.0", "smol", 2048)


def record(fake: FakeServer, duration_s: float = 0.2, max_requests: int | None = None) -> Trace:
    with running(fake) as url, closing(MetricsEngine(url, period_s=0.05)) as engine:
        return engine.record(duration_s, load=Load(kind="open"), max_requests=max_requests)


def test_a_recording_holds_a_sample_per_period_and_measures() -> None:
    tokens = count(100.0, 10.0)
    trace = record(FakeServer(metrics=lambda: page(tokens=next(tokens))))
    assert trace.header.source == "metrics"
    assert trace.header.load == Load(kind="open")
    assert trace.end.reason == "duration"
    assert trace.end.failed_reads == {}
    assert 3 <= len(trace.samples) <= 5
    times = [sample.t_ns for sample in trace.samples]
    assert times == sorted(times)
    assert trace.start_ns < times[0] < times[-1] <= trace.end_ns
    assert measure(trace)["throughput"] > 0
    assert measure(trace)["running_mean"] == 3.0


def test_a_recording_ends_after_so_many_requests() -> None:
    finished = count(10.0, 2.0)
    trace = record(FakeServer(metrics=lambda: page(finished=next(finished))), 30.0, max_requests=5)
    assert trace.end.reason == "requests"
    assert len(trace.samples) == 4


def test_a_failed_reading_is_counted_and_the_next_one_is_taken() -> None:
    answers = count()
    fake = FakeServer(metrics=lambda: (500, "", {}) if next(answers) == 5 else page())
    trace = record(fake)
    assert trace.end.failed_reads == {"metrics": 1}
    assert trace.end.reason == "duration"
    assert len(trace.samples) >= 2


def test_a_server_that_went_away_ends_the_recording_and_keeps_it() -> None:
    answers = count()
    trace = record(FakeServer(metrics=lambda: page() if next(answers) < 7 else (502, "", {})), 30.0)
    assert trace.end.reason == "disconnected"
    assert trace.end.failed_reads == {"metrics": 3}
    assert len(trace.samples) == 3


def test_a_server_that_was_started_again_ends_the_recording_and_keeps_it() -> None:
    answers = count()

    def restarted() -> Answer:
        return page() if next(answers) < 7 else page(start=1.8e9, tokens=0.0, finished=0.0)

    trace = record(FakeServer(metrics=restarted), 30.0)
    assert trace.end.reason == "disconnected"
    assert len(trace.samples) == 3


def test_a_second_server_that_shows_itself_later_is_a_load_balancer() -> None:
    answers, starts = count(), cycle([1.8e9, 1.79607e9])
    fake = FakeServer(metrics=lambda: page() if next(answers) < 7 else page(start=next(starts)))
    with pytest.raises(EngineError, match="a load balancer"):
        record(fake, 30.0)


def test_an_interrupt_keeps_what_was_recorded() -> None:
    main = threading.get_ident()
    timer = threading.Timer(1.0, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    started_s = time.monotonic()
    trace = record(FakeServer(), 30.0)
    timer.join()
    assert time.monotonic() - started_s < 10
    assert trace.end.reason == "interrupted"
    assert len(trace.samples) >= 2


def test_a_server_is_local_when_a_process_here_started_when_it_did() -> None:
    # Of this process, as the library that vLLM uses tells it.
    ours_s = prometheus_client.REGISTRY.get_sample_value("process_start_time_seconds")
    assert ours_s is not None
    for start_s, is_local in ((ours_s, True), (1.0, False)):
        fake = FakeServer(metrics=partial(page, start=start_s))
        with running(fake) as url, closing(MetricsEngine(url)) as engine:
            assert engine.is_local() == is_local
