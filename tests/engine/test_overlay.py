"""The overlay inside a real vLLM: limits, lease, token, border."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from rtopt.engines.secret import find_token
from rtopt.engines.vllm_process import VllmProcess
from rtopt.engines.vllm_server import VllmServer
from rtopt.errors import EngineError, HeldError, KnobError, UsageError
from rtopt.loop import undisturbed
from rtopt.traffic import LoadProcess
from rtopt.types import Change

LEASE_S = 3.0
STEP_S = 1.0
"""Far more than one step takes here."""


def active(value: int) -> Change:
    return Change(lever="test", knobs={"max_num_active_seqs": value}, reason="a test")


def value_of(engine: VllmServer, name: str = "max_num_active_seqs") -> object:
    return engine.state().values()[name]


def completion(server: VllmProcess) -> httpx.Response:
    body = {"model": "SmolLM2-135M-Instruct", "prompt": "The capital of France is", "max_tokens": 4}
    return httpx.post(f"{server.url}/v1/completions", json=body, timeout=120)


def wait_until(engine: VllmServer, value: int, seconds: float) -> float:
    began = time.monotonic()
    while value_of(engine) != value:
        assert time.monotonic() - began < seconds, f"still not {value} after {seconds} s"
        time.sleep(0.02)
    return time.monotonic() - began


def test_state_names_the_knobs_with_floor_ceiling_and_start(engine: VllmServer) -> None:
    knobs = {k.name: k for k in engine.state().knobs}
    slots = knobs["max_num_active_seqs"]
    assert (slots.value, slots.start, slots.low, slots.high) == (4, 4, 1, 32)
    budget = knobs["max_num_scheduled_tokens"]
    assert budget.low == 32, "below the slots the budget would block the queue"
    assert budget.high == budget.value


def test_apply_changes_the_knob_and_returns_its_inverse(engine: VllmServer) -> None:
    undo = engine.apply(active(16))
    assert value_of(engine) == 16
    assert undo.knobs == {"max_num_active_seqs": 4}
    engine.settle(keep=False)
    assert value_of(engine) == 4


@pytest.mark.parametrize("value", [0, -5, 33, 10**9, True, 2.5, "8"])
def test_a_value_outside_floor_and_ceiling_is_refused(engine: VllmServer, value: object) -> None:
    change = Change(lever="test", knobs={"max_num_active_seqs": value}, reason="x")  # type: ignore[dict-item]  # wrong on purpose
    with pytest.raises(KnobError, match=r"from 1 to 32 .*Nothing was changed"):
        engine.apply(change)
    assert value_of(engine) == 4
    assert engine.state().held is None


def test_an_unknown_knob_is_refused_with_the_known_ones(engine: VllmServer) -> None:
    with pytest.raises(KnobError, match=r"'max_num_seqs': unknown knob.*max_num_active_seqs"):
        engine.apply(Change(lever="test", knobs={"max_num_seqs": 8}, reason="x"))


def test_one_bad_value_leaves_the_good_one_beside_it_unchanged(engine: VllmServer) -> None:
    both = {"max_num_active_seqs": 8, "max_num_scheduled_tokens": 1}
    with pytest.raises(KnobError):
        engine.apply(Change(lever="test", knobs=both, reason="x"))
    assert value_of(engine) == 4


def test_a_second_controller_is_refused_with_the_holders_name(
    engine: VllmServer, server: VllmProcess
) -> None:
    engine.apply(active(8))
    other = VllmServer(server.url, token=find_token(server.url))
    with pytest.raises(HeldError, match=engine.holder):
        other.apply(active(2))
    with pytest.raises(HeldError):
        other.restore_start()
    assert value_of(engine) == 8
    other.close()


def test_a_committed_value_is_the_new_snapshot_and_start_restores(engine: VllmServer) -> None:
    engine.apply(active(8))
    state = engine.settle(keep=True)
    assert state.held is None
    knob = {k.name: k for k in state.knobs}["max_num_active_seqs"]
    assert (knob.value, knob.snapshot, knob.start) == (8, 8, 4)
    engine.apply(active(16))
    engine.settle(keep=False)
    assert value_of(engine) == 8, "a restore returns to the committed value"
    engine.restore_start()
    assert value_of(engine) == 4


@pytest.mark.parametrize(
    ("lease_s", "wanted"), [(0, "above 0"), (-1, "above 0"), (10**6, "at most 60"), ("x", "above")]
)
def test_an_impossible_lease_is_refused(
    engine: VllmServer, server: VllmProcess, lease_s: object, wanted: str
) -> None:
    answer = httpx.post(
        f"{server.url}/rtopt/set",
        json={"knobs": {"max_num_active_seqs": 8}, "holder": "t", "lease_s": lease_s},
        headers={"x-rtopt-token": find_token(server.url) or ""},
    )
    assert answer.status_code == 400
    assert wanted in answer.json()["error"]["message"]
    assert value_of(engine) == 4


def test_a_lease_runs_out_on_an_idle_engine(server: VllmProcess, engine: VllmServer) -> None:
    dying = VllmServer(server.url, token=find_token(server.url), lease_s=1.0)
    dying.apply(active(16))
    dying.close()  # nobody renews from here on
    wait_until(engine, 4, 1.0 + STEP_S)
    assert engine.state().held is None
    late = VllmServer(server.url, token=find_token(server.url), holder=dying.holder)
    with pytest.raises(HeldError, match="ran out"):
        late.settle(keep=True)
    late.close()
    assert completion(server).status_code == 200


CONTROLLER = """
import sys, time
from rtopt.engines.vllm_server import VllmServer
from rtopt.engines.secret import find_token
from rtopt.types import Change
url = sys.argv[1]
engine = VllmServer(url, token=find_token(url), lease_s=float(sys.argv[2]))
engine.apply(Change(lever="test", knobs={"max_num_active_seqs": 16}, reason="x"))
print("set", flush=True)
time.sleep(120)
"""


def test_a_killed_controller_leaves_nothing_behind_and_no_request_fails(
    server: VllmProcess, engine: VllmServer, load: LoadProcess
) -> None:
    command = [sys.executable, "-c", CONTROLLER, server.url, str(LEASE_S)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as controller:
        assert controller.stdout is not None
        assert controller.stdout.readline() == b"set\n"
        time.sleep(LEASE_S + 1)
        assert value_of(engine) == 16, "renewed while the controller lives"
        controller.send_signal(signal.SIGKILL)
    waited = wait_until(engine, 4, LEASE_S + STEP_S)
    assert waited > 0
    tally = load.stop()
    assert tally.failed == 0
    assert tally.finished > 0


def test_a_recording_holds_every_token_that_the_server_counted(
    server: VllmProcess, engine: VllmServer, load: LoadProcess
) -> None:
    time.sleep(2)
    trace = engine.record(4.0)
    assert trace.end.reason == "duration"
    assert not trace.end.dropped
    inside = [s for s in trace.steps if s.index is not None]
    assert len(inside) > 20
    indices = [s.index for s in inside if s.index is not None]
    assert indices == list(range(indices[0], indices[0] + len(indices))), "no step is missing"
    for step in inside:
        assert step.running is not None
        assert step.running <= 4
        assert step.dur_ns is not None
        assert 0 < step.dur_ns < 5e9
        made = len(step.ttft_ms) + len(step.itl_ms)
        assert step.output_tokens == made, "one token each, without speculation"
    assert trace.requests
    for request in trace.requests:
        assert request.finish == "length"
        assert request.output_tokens == request.max_tokens
        assert request.arrival_ns < request.finished_ns
    assert {f.edge for f in trace.in_flight} == {"start", "end"}
    assert sum(f.edge == "end" for f in trace.in_flight) <= 32


def test_recording_adds_no_line_per_step_to_the_servers_log(
    server: VllmProcess, engine: VllmServer, load: LoadProcess, capfd: pytest.CaptureFixture[str]
) -> None:
    engine.record(2.0)
    assert server.log is not None
    assert "Iteration(" not in server.log.read_text(encoding="utf-8")


def test_after_a_recording_the_engine_stops_making_step_details(
    server: VllmProcess, engine: VllmServer, load: LoadProcess
) -> None:
    first = engine.record(1.5)
    time.sleep(2)
    second = engine.record(1.5)
    last = max(s.index for s in first.steps if s.index is not None)
    again = min(s.index for s in second.steps if s.index is not None)
    # About 40 steps were made in between; those that nobody listened to are not numbered.
    assert again - last <= 12


def test_a_listener_that_hangs_up_leaves_recording_off(
    server: VllmProcess, engine: VllmServer, load: LoadProcess
) -> None:
    with httpx.stream("GET", f"{server.url}/rtopt/trace?seconds=60", timeout=30) as stream:
        next(stream.iter_lines())
    time.sleep(1.5)
    first = engine.overlay_cost()["steps"]
    time.sleep(1.0)
    assert engine.overlay_cost()["steps"] == first


def test_overlay_costs_at_most_half_a_percent_of_a_step(
    engine: VllmServer, load: LoadProcess
) -> None:
    time.sleep(2)
    before = engine.overlay_cost()
    trace = engine.record(8.0)
    after = engine.overlay_cost()
    spent_ns = after["record_ns"] - before["record_ns"]
    assert spent_ns > 0
    assert spent_ns / (trace.end_ns - trace.start_ns) <= 0.005


def test_without_a_token_nothing_can_be_changed(server: VllmProcess, engine: VllmServer) -> None:
    body = {"knobs": {"max_num_active_seqs": 8}, "holder": "t", "lease_s": 5}
    for verb in ("set", "renew", "commit", "restore"):
        for headers in ({}, {"x-rtopt-token": "wrong"}):
            answer = httpx.post(f"{server.url}/rtopt/{verb}", json=body, headers=headers)
            assert answer.status_code == 401, verb
    assert value_of(engine) == 4
    stranger = VllmServer(server.url, token="wrong")
    with pytest.raises(EngineError, match="missing or wrong"):
        stranger.apply(active(8))
    stranger.close()


def test_the_token_is_nowhere_to_be_read(server: VllmProcess, engine: VllmServer) -> None:
    token = find_token(server.url)
    assert token
    engine.apply(active(8))
    engine.settle(keep=False)
    assert server.log is not None
    assert token not in server.log.read_text(encoding="utf-8", errors="replace")
    assert token not in json.dumps(httpx.get(f"{server.url}/rtopt/state").json())
    arguments = b"".join(
        path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.is_file()
    )
    assert token.encode() not in arguments


def test_a_body_that_is_not_an_object_is_refused(server: VllmProcess, engine: VllmServer) -> None:
    headers = {"x-rtopt-token": find_token(server.url) or ""}
    for body in (b"[]", b"{", b"\xff"):
        answer = httpx.post(f"{server.url}/rtopt/set", content=body, headers=headers)
        assert answer.status_code == 400
    with pytest.raises(UsageError):
        engine.apply(Change(lever="test", knobs={}, reason="x"))


@pytest.mark.parametrize(
    "hook",
    [
        "record",
        "rtopt_call",
        "rtopt_expire",
        "watchdog",
        "lines",
        "route_state",
        "route_trace",
        "route_set",
        "route_renew",
        "route_commit",
        "route_restore",
    ],
)
def test_an_exception_in_a_hook_leaves_the_engine_serving(
    hook: str, server: VllmProcess, engine: VllmServer, fail_file: Path
) -> None:
    dying = VllmServer(server.url, token=find_token(server.url), lease_s=0.5)
    dying.apply(active(8))
    fail_file.write_text(hook)
    try:
        dying.close()
        headers = {"x-rtopt-token": find_token(server.url) or ""}
        with httpx.Client(base_url=server.url, headers=headers, timeout=30) as client:
            client.get("/rtopt/state")
            client.get("/rtopt/trace", params={"seconds": 0.5})
            for verb in ("set", "renew", "commit", "restore"):
                client.post(f"/rtopt/{verb}", json={"holder": "t", "lease_s": 1})
        time.sleep(0.8)  # the lease runs out while the hook fails
        answer = completion(server)
        assert answer.status_code == 200
        assert re.search(r"\w", answer.json()["choices"][0]["text"])
    finally:
        fail_file.write_text("")
    wait_until(engine, 4, 2.0)  # and once the hook works again, the lease is honoured
    assert server.log is not None
    assert f"rtopt overlay: {hook} failed (InjectedError)" in server.log.read_text()


@pytest.mark.parametrize(
    "body",
    [
        b'{"holder":"\\ud800","lease_s":5,"knobs":{"max_num_active_seqs":8}}',
        b'{"holder":"' + b"x" * 65 + b'","lease_s":5,"knobs":{"max_num_active_seqs":8}}',
        b'{"holder":["a"],"lease_s":5,"knobs":{"max_num_active_seqs":8}}',
        b'{"holder":"t","lease_s":true,"knobs":{"max_num_active_seqs":8}}',
        b'{"holder":"t","lease_s":5,"knobs":{"\\ud800":8}}',
        b'{"holder":"t","lease_s":5,"self":1,"knobs":{"max_num_active_seqs":99}}',
        b"[" * 2000 + b"]" * 2000,
    ],
)
def test_a_hostile_body_is_refused_in_a_few_words(
    body: bytes, server: VllmProcess, engine: VllmServer
) -> None:
    headers = {"x-rtopt-token": find_token(server.url) or ""}
    answer = httpx.post(f"{server.url}/rtopt/set", content=body, headers=headers)
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert message.isascii()
    assert len(message) < 300
    assert engine.state().held is None
    assert value_of(engine) == 4


@pytest.mark.parametrize("args", [{"to": "START"}, {"to": ["start"]}, {"force": "false"}])
def test_a_restore_that_is_not_understood_restores_nothing(
    args: dict[str, object], server: VllmProcess, engine: VllmServer
) -> None:
    engine.apply(active(8))
    headers = {"x-rtopt-token": find_token(server.url) or ""}
    answer = httpx.post(
        f"{server.url}/rtopt/restore", json={"holder": "t", **args}, headers=headers
    )
    assert answer.status_code == 400
    assert value_of(engine) == 8


def test_a_baseline_that_somebody_else_disturbs_is_refused(
    server: VllmProcess, engine: VllmServer, load: LoadProcess
) -> None:
    other = VllmServer(server.url, token=find_token(server.url))
    mover = threading.Timer(1.5, lambda: other.apply(active(8)))
    mover.start()
    trace = engine.record(3.0)
    mover.join()
    other.settle(keep=False)
    other.close()
    assert [m.by for m in trace.marks][:1] == [other.holder]
    with pytest.raises(HeldError, match="changed the engine"):
        undisturbed(trace)


def test_a_lease_that_was_lost_while_frozen_is_noticed_at_the_end_of_a_recording(
    server: VllmProcess, engine: VllmServer
) -> None:
    engine.apply(active(8))
    thief = VllmServer(server.url, token=find_token(server.url))
    thief.restore_start(force=True)
    thief.close()
    with pytest.raises(HeldError):
        engine.record(0.5)
