"""The replay engine answers like a live one."""

from collections.abc import Mapping

import pytest

from rtopt.cost import StepTime
from rtopt.engines.replay import ReplayEngine
from rtopt.errors import EngineError, KnobError
from rtopt.metrics import measure
from rtopt.types import Ask, Change, Engine, EngineInfo, Load, Value, Workload

LINE = StepTime(base_ms=41, decode_ms=1.5, prefill_token_ms=0.3, prefill_request_ms=3)
CLIENTS = Load(kind="closed", clients=16)
TRAFFIC = Workload(
    load=CLIENTS,
    asks=tuple(
        Ask(arrival_ns=i, prompt_tokens=32 + i % 5, output_tokens=12 + i % 7) for i in range(35)
    ),
    duration_ns=10**10,
)


@pytest.fixture
def engine(info: EngineInfo) -> ReplayEngine:
    return ReplayEngine(info, LINE, TRAFFIC, knobs={"max_num_active_seqs": 4})


def active(value: Value) -> Change:
    return Change(lever="max_num_active_seqs", knobs={"max_num_active_seqs": value}, reason="test")


def knob(engine: Engine) -> tuple[Value, Value]:
    found = {k.name: k for k in engine.state().knobs}["max_num_active_seqs"]
    return found.value, found.snapshot


def test_a_change_on_trial_is_faster_and_its_undo_takes_it_back(engine: ReplayEngine) -> None:
    before = measure(engine.record(30))["throughput"]
    undo = engine.apply(active(16))
    engine.record(6)
    during = measure(engine.record(30))["throughput"]
    engine.apply(undo)

    assert during > 1.8 * before
    assert undo.knobs == {"max_num_active_seqs": 4}
    assert knob(engine) == (4, 4)


def test_restoring_returns_to_the_snapshot_and_committing_makes_a_new_one(
    engine: ReplayEngine,
) -> None:
    engine.apply(active(8))
    assert engine.state().held is not None
    engine.settle(keep=False)
    assert knob(engine) == (4, 4)

    engine.apply(active(8))
    engine.settle(keep=True)
    engine.apply(active(16))
    assert knob(engine) == (16, 8)
    state = engine.settle(keep=False)
    assert state.held is None
    assert knob(engine) == (8, 8)


def test_a_change_is_refused_whole_when_one_of_its_values_is_outside(engine: ReplayEngine) -> None:
    change = Change(
        lever="x", knobs={"max_num_active_seqs": 8, "max_num_scheduled_tokens": 1}, reason="test"
    )

    with pytest.raises(KnobError, match="from 64 to 2048"):
        engine.apply(change)

    assert knob(engine) == (4, 4)
    assert engine.state().held is None


def test_what_was_done_is_marked_in_the_next_recording(engine: ReplayEngine) -> None:
    engine.apply(active(8))
    first = engine.record(5)
    engine.settle(keep=False)
    second = engine.record(5)

    assert [(mark.what, mark.knobs["max_num_active_seqs"]) for mark in first.marks] == [("set", 8)]
    assert [mark.what for mark in second.marks] == ["restore"]
    assert first.header.knobs["max_num_active_seqs"] == 8
    assert first.end_ns == second.start_ns


def test_effects_are_the_truth_that_a_gate_has_to_find(info: EngineInfo) -> None:
    def slower_above_four(knobs: Mapping[str, Value]) -> float:
        return 1.5 if knobs["max_num_active_seqs"] != 4 else 1.0

    engine = ReplayEngine(
        info, LINE, TRAFFIC, knobs={"max_num_active_seqs": 4}, effects=slower_above_four
    )
    plain = measure(engine.record(60))["itl_mean"]
    engine.apply(active(3))
    engine.record(5)

    assert measure(engine.record(60))["itl_mean"] > 1.4 * plain


def test_a_recording_can_end_after_some_requests(engine: ReplayEngine) -> None:
    trace = engine.record(60, max_requests=5)

    assert 5 <= len(trace.requests) < 9
    assert trace.end.reason == "requests"
    assert trace.duration_s < 60
    assert engine.record(1).start_ns == trace.end_ns


def test_load_that_is_not_offered_is_refused(engine: ReplayEngine) -> None:
    assert engine.record(1, load=CLIENTS).header.load == CLIENTS
    with pytest.raises(EngineError, match="No time has passed"):
        engine.record(1, load=Load(kind="open"))
