"""Predictions by replay, against engines that are simulated and so known."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from rtopt import predict
from rtopt.cost import StepTime
from rtopt.errors import EvidenceError, KnobError, UnavailableError
from rtopt.metrics import measure
from rtopt.sim import Simulator, installed_version
from rtopt.types import Ask, EngineInfo, Load, Trace, Workload

_NOISE = np.exp(0.05 * np.random.default_rng(0).standard_normal(400))
TRUTH = StepTime(
    base_ms=41,
    decode_ms=1.5,
    prefill_token_ms=0.3,
    prefill_request_ms=3,
    residuals=tuple(float(r) for r in _NOISE / _NOISE.mean()),
)
CLOSED = Workload(
    load=Load(kind="closed", clients=32),
    asks=tuple(
        Ask(arrival_ns=i, prompt_tokens=24 + i * 7 % 17, output_tokens=8 + i * 5 % 9)
        for i in range(300)
    ),
    duration_ns=10**10,
    think_ns=8_000_000,
)
Engine = Callable[[int, Workload, int], Trace]


@pytest.fixture(scope="module")
def info_here(info: EngineInfo) -> EngineInfo:
    return replace(info, version=installed_version())


@pytest.fixture(scope="module")
def record(info_here: EngineInfo) -> Engine:
    """What an engine of the true step time does with a cap, as the overlay would record it."""

    def run(cap: int, workload: Workload, seed: int) -> Trace:
        simulator = Simulator(info_here, {"max_num_active_seqs": cap}, TRUTH, seed=seed)
        simulator.run(workload, 20)
        trace = simulator.advance(40)
        return replace(trace, header=replace(trace.header, source="overlay"))

    return run


@pytest.fixture(scope="module")
def baseline(record: Engine) -> Trace:
    return record(8, CLOSED, 5)


def test_at_the_recorded_knobs_the_replay_reproduces_the_metrics(baseline: Trace) -> None:
    prediction = predict.run(baseline)
    gaps = predict.compare(baseline, prediction).metrics

    assert prediction.knobs["max_num_active_seqs"] == 8
    assert not prediction.is_extrapolated
    for name in ("throughput", "request_rate", "itl_mean", "e2e_mean", "ttft_mean", "kv_mean"):
        assert abs(gaps[name].rel) < 0.01, name
    assert abs(gaps["itl_p95"].rel) < 0.05
    measured = measure(baseline)
    for name, estimate in prediction.metrics.items():
        assert estimate.interval is not None
        assert estimate.interval.low <= estimate.value <= estimate.interval.high, name
    throughput = prediction.metrics["throughput"].interval
    assert throughput is not None
    assert throughput.low <= measured["throughput"] <= throughput.high


def test_an_untried_cap_lies_within_the_interval_and_is_labelled(
    record: Engine, baseline: Trace
) -> None:
    prediction = predict.by_replay(baseline, set={"max_num_active_seqs": 32})
    truth = measure(record(32, CLOSED, 9))

    assert prediction.is_extrapolated
    assert prediction.metrics["throughput"].origin == "seed"
    assert any("extrapolated" in note for note in prediction.assumptions)
    for name in ("throughput", "itl_mean", "e2e_mean"):
        interval = prediction.metrics[name].interval
        assert interval is not None
        assert interval.low <= truth[name] <= interval.high, name
    now = predict.run(baseline).metrics["throughput"].value
    assert prediction.metrics["throughput"].value > 1.5 * now


def test_a_smaller_cap_from_a_varied_trace_is_no_extrapolation(record: Engine) -> None:
    prediction = predict.by_replay(record(32, CLOSED, 6), set={"max_num_active_seqs": 24})

    assert not prediction.is_extrapolated
    assert prediction.metrics["throughput"].value == pytest.approx(
        measure(record(24, CLOSED, 10))["throughput"], rel=0.05
    )


def test_open_arrivals_are_replayed_from_the_state_at_the_start(record: Engine) -> None:
    rng = np.random.default_rng(4)
    arrivals = np.cumsum(rng.exponential(0.25, size=400))
    traffic = Workload(
        load=Load(kind="open"),
        asks=tuple(
            Ask(
                arrival_ns=int(t * 1e9),
                prompt_tokens=int(rng.integers(20, 400)),
                output_tokens=int(rng.integers(5, 60)),
            )
            for t in arrivals
        ),
        duration_ns=int(arrivals[-1] * 1e9) + 1,
    )
    trace = record(8, traffic, 5)
    gaps = predict.compare(trace, predict.run(trace)).metrics

    for name in ("throughput", "itl_mean", "e2e_mean", "running_mean"):
        assert abs(gaps[name].rel) < 0.03, name
    assert abs(gaps["ttft_mean"].rel) < 0.15


def test_a_larger_start_up_limit_can_be_asked_for(baseline: Trace) -> None:
    prediction = predict.by_replay(baseline, set={"max_num_seqs": 128}, seeds=2)

    assert prediction.knobs["max_num_seqs"] == 128
    # The cap below it is still the recorded one.
    assert prediction.metrics["running_mean"].value < 8


def test_a_trace_without_steps_says_how_to_get_them(baseline: Trace) -> None:
    bare = replace(baseline, steps=(), header=replace(baseline.header, source="metrics"))

    with pytest.raises(EvidenceError, match=r"rtopt serve.*overlay-path"):
        predict.run(bare)


def test_another_engine_version_is_refused_unless_allowed(baseline: Trace) -> None:
    engine = replace(baseline.header.engine, version="0.26.1")
    old = replace(baseline, header=replace(baseline.header, engine=engine))

    with pytest.raises(UnavailableError, match=r"0\.26\.1"):
        predict.run(old)
    allowed = predict.by_replay(old, seeds=2, allow_version=True)
    assert any("the engine runs 0.26.1" in note for note in allowed.assumptions)


@pytest.mark.parametrize("knobs", [{"max_nun_seqs": 3}, {"max_num_active_seqs": 1000}])
def test_an_impossible_knob_is_refused(baseline: Trace, knobs: dict[str, int]) -> None:
    with pytest.raises(KnobError, match="Nothing was changed"):
        predict.by_replay(baseline, set=knobs)
