"""Measured against predicted."""

from dataclasses import replace

import pytest

from rtopt.predict import compare
from rtopt.types import (
    Clock,
    End,
    EngineInfo,
    Estimate,
    Header,
    Machine,
    Prediction,
    Step,
    Trace,
)

NOW = Clock(mono_ns=0, unix_ns=0)
PREDICTION = Prediction(
    method="replay",
    knobs={},
    metrics={
        "throughput": Estimate(value=64.0),
        "itl_mean": Estimate(value=62.5),
        "waiting_mean": Estimate(value=0.0),
        "ttft_mean": Estimate(value=100.0),
    },
    terms={
        "step_base_ms": Estimate(value=42.0),
        "step_decode_ms": Estimate(value=2.0),
        "step_prefill_token_ms": Estimate(value=0.3),
        "step_prefill_request_ms": Estimate(value=3.0),
    },
)


def steady(seconds: int, *, slow: range = range(0), by: float = 1.5) -> Trace:
    """20 steps of 50 ms a second, 4 requests decoding, slow in some seconds."""
    steps, t_ns = [], 0
    while t_ns < seconds * 10**9:
        dur_ns = round(50e6 * (by if t_ns // 10**9 in slow else 1))
        t_ns += dur_ns
        steps.append(
            Step(
                t_ns=t_ns,
                dur_ns=dur_ns,
                prefill_requests=0,
                prefill_tokens=0,
                decode_requests=4,
                decode_tokens=4,
                running=4,
                waiting=2,
                output_tokens=4,
                itl_ms=(dur_ns / 1e6,) * 4,
            )
        )
    header = Header(
        source="overlay",
        engine=EngineInfo(name="vllm", version="0.32.0", model="m"),
        machine=Machine(cpu="x", num_cpus=2),
        clock=NOW,
        start_ns=0,
        knobs={},
    )
    return Trace(header=header, end=End(end_ns=t_ns, clock=NOW), steps=tuple(steps))


def test_gaps_are_measured_over_predicted_minus_one() -> None:
    deviation = compare(steady(10), PREDICTION)

    assert deviation.metrics["throughput"].rel == pytest.approx(80 / 64 - 1)
    assert deviation.metrics["itl_mean"].rel == pytest.approx(50 / 62.5 - 1)
    assert deviation.step_residual_sd_frac == pytest.approx(0)
    assert deviation.windows == ()
    assert deviation.unmatched_frac == 0


def test_what_cannot_be_compared_is_named_with_its_reason() -> None:
    absent = compare(steady(10), PREDICTION).absent

    assert absent["ttft_mean"] == "not measured in this trace"
    assert absent["waiting_mean"] == "predicted 0, measured 2: no ratio"
    for plane in ("kernel_time", "memory_traffic", "stream_concurrency"):
        assert absent[plane] == "no event plane in this trace"


@pytest.mark.parametrize(("by", "rel"), [(1.5, 0.5), (0.6, -0.4)])
def test_slow_and_fast_spells_are_odd_windows(by: float, rel: float) -> None:
    (window,) = compare(steady(30, slow=range(10, 14), by=by), PREDICTION).windows

    assert (window.start_ns, window.end_ns) == (10 * 10**9, 14 * 10**9)
    assert window.rel == pytest.approx(rel, abs=0.05)


def test_one_slow_second_and_a_small_shift_are_not_odd() -> None:
    assert compare(steady(30, slow=range(10, 11)), PREDICTION).windows == ()
    assert compare(steady(30, slow=range(10, 14), by=1.2), PREDICTION).windows == ()


def test_steps_without_their_work_are_the_unmatched_share() -> None:
    trace = steady(10)
    half = len(trace.steps) // 2
    blind = tuple(replace(step, decode_requests=None) for step in trace.steps[:half])

    deviation = compare(replace(trace, steps=(*blind, *trace.steps[half:])), PREDICTION)
    assert deviation.unmatched_frac == pytest.approx(0.5, abs=0.01)


def test_a_refusal_or_a_prediction_without_coefficients_says_so() -> None:
    refused = compare(steady(5), Prediction(method="replay", knobs={}, refusal="too few steps"))
    assert refused.metrics == {}
    assert refused.absent["metrics"] == "no prediction: too few steps"

    bare = compare(steady(5), replace(PREDICTION, terms={}))
    assert "throughput" in bare.metrics
    assert bare.absent["step_time"] == "the prediction has no step-time coefficients"
