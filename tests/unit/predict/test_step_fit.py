"""Fits to traces whose truth is known."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from rtopt.cost import StepLoad, StepTime
from rtopt.errors import EvidenceError
from rtopt.predict import fit_step_time
from rtopt.predict.busy import busy_steps
from rtopt.types import Clock, End, EngineInfo, Header, Machine, Step, Trace

TRUTH = StepTime(base_ms=41, decode_ms=1.5, prefill_token_ms=0.3, prefill_request_ms=3)
NOW = Clock(mono_ns=0, unix_ns=0)


def trace_of(steps: Sequence[Step]) -> Trace:
    header = Header(
        source="overlay",
        engine=EngineInfo(name="vllm", version="0.32.0", model="m"),
        machine=Machine(cpu="x", num_cpus=2),
        clock=NOW,
        start_ns=0,
        knobs={},
    )
    end_ns = steps[-1].t_ns if steps else 1
    return Trace(header=header, end=End(end_ns=end_ns, clock=NOW), steps=tuple(steps))


def busy_trace(
    loads: Sequence[StepLoad], *, sd: float = 0.05, jitter_ms: float = 0, stall: float = 0
) -> Trace:
    """Steps of a busy engine; the front end sees each up to `jitter_ms` late."""
    rng = np.random.default_rng(3)
    steps, end_ms = [], 0.0
    for number, load in enumerate(loads):
        dur_ms = TRUTH.mean_ms(load) * float(np.exp(sd * rng.standard_normal()))
        dur_ms *= 8 if rng.random() < stall else 1
        end_ms += dur_ms
        seen_ms = end_ms + jitter_ms * rng.random()
        steps.append(
            Step(
                t_ns=round(seen_ms * 1e6),
                index=number,
                dur_ns=round((dur_ms - 4) * 1e6),
                prefill_requests=load.prefill_requests,
                prefill_tokens=load.prefill_tokens,
                decode_requests=load.decode_requests,
                decode_tokens=load.decode_requests,
                running=9,
                waiting=0,
                itl_ms=(dur_ms,) * load.decode_requests,
            )
        )
    return trace_of(steps)


def varied(num: int, *, top: int = 30) -> list[StepLoad]:
    rng = np.random.default_rng(1)
    loads = []
    for _ in range(num):
        prompts = int(rng.integers(0, 3))
        loads.append(
            StepLoad(
                prefill_requests=prompts,
                prefill_tokens=sum(int(rng.integers(10, 200)) for _ in range(prompts)),
                decode_requests=int(rng.integers(1, top)),
            )
        )
    return loads


def saturated(num: int, *, cap: int = 8) -> list[StepLoad]:
    """A full engine: whoever does not decode computes a prompt of always the same length."""
    rng = np.random.default_rng(2)
    prompts = [int(rng.random() < 0.2) for _ in range(num)]
    return [
        StepLoad(prefill_requests=p, prefill_tokens=32 * p, decode_requests=cap - p)
        for p in prompts
    ]


def test_a_varied_load_gives_the_coefficients_back() -> None:
    fit = fit_step_time(busy_trace(varied(800)))

    assert fit.coefficients == pytest.approx(TRUTH.coefficients, rel=0.15, abs=1)
    assert fit.decode_ms == pytest.approx(1.5, rel=0.1)
    assert fit.decode_origin == "observed"
    assert fit.max_decode == 29
    assert np.std(fit.residuals) == pytest.approx(0.05, rel=0.1)


def test_intervals_cover_the_truth_and_are_narrow_where_the_data_speak() -> None:
    intervals = fit_step_time(busy_trace(varied(800))).intervals(0.98)

    assert intervals is not None
    for interval, truth in zip(intervals, TRUTH.coefficients, strict=True):
        assert interval.low <= truth <= interval.high
    assert intervals[1].high - intervals[1].low < 0.3


@pytest.mark.parametrize("stall", [0.0, 0.01])
def test_fitted_times_add_up_to_the_wall_time(stall: float) -> None:
    trace = busy_trace(varied(600), jitter_ms=20, stall=stall)
    fit = fit_step_time(trace)

    steps = busy_steps(trace).steps
    fitted_ms = sum(fit.mean_ms(step.load) for step in steps)
    assert fitted_ms == pytest.approx(sum(step.wall_ms for step in steps))
    assert fitted_ms == pytest.approx((trace.end_ns - trace.steps[0].t_ns) / 1e6, rel=0.005)
    assert np.mean(fit.residuals) == pytest.approx(1)


def test_stalls_do_not_tilt_the_line() -> None:
    fit = fit_step_time(busy_trace(varied(1500), stall=0.01))

    assert fit.decode_ms / fit.base_ms == pytest.approx(1.5 / 41, rel=0.3)


def test_a_saturated_cap_rests_on_the_assumed_ratio_and_says_so() -> None:
    fit = fit_step_time(busy_trace(saturated(800)))

    assert fit.decode_origin == "seed"
    at_cap = StepLoad(prefill_requests=0, prefill_tokens=0, decode_requests=8)
    assert fit.mean_ms(at_cap) == pytest.approx(TRUTH.mean_ms(at_cap), rel=0.02)
    at_32 = StepLoad(prefill_requests=0, prefill_tokens=0, decode_requests=32)
    times = sorted(fit.with_coefficients(draw).mean_ms(at_32) for draw in fit.draws)
    assert times[10] < TRUTH.mean_ms(at_32) < times[-10]
    assert times[10] > 1.05 * fit.mean_ms(at_cap)
    assert fit.mean_ms(at_32) == pytest.approx(TRUTH.mean_ms(at_32), rel=0.25)


@pytest.mark.parametrize("loads", [varied(60, top=3), saturated(60, cap=2), saturated(60, cap=200)])
def test_coefficients_stay_physical_when_there_is_little_to_go_by(loads: list[StepLoad]) -> None:
    fit = fit_step_time(busy_trace(loads, sd=0.3))

    for base, decode, token, request in (fit.coefficients, *fit.draws):
        assert min(base, decode, token, request) >= 0
        assert decode >= token
        assert base + decode * fit.max_decode < 3 * TRUTH.mean_ms(loads[0]) + 200


def test_without_token_times_the_wall_clock_of_the_front_end_is_used() -> None:
    trace = busy_trace(varied(800), jitter_ms=15)
    blind = replace(trace, steps=tuple(replace(step, itl_ms=()) for step in trace.steps))

    assert fit_step_time(blind).coefficients == pytest.approx(TRUTH.coefficients, rel=0.25, abs=2)


def test_a_step_after_idleness_takes_its_own_time_plus_the_usual_gap() -> None:
    loads = varied(200)
    trace = busy_trace(loads, sd=0)
    # After every tenth step the engine is idle for a second.
    steps = [
        replace(
            step,
            t_ns=step.t_ns + (i // 10) * 10**9,
            running=0 if i % 10 == 9 else 9,
            itl_ms=() if i % 10 == 0 else step.itl_ms,
        )
        for i, step in enumerate(trace.steps)
    ]
    timed = busy_steps(trace_of(steps)).steps

    assert len(timed) == 200
    assert sum(not step.has_predecessor for step in timed) == 20
    for step in timed:
        assert step.wall_ms == pytest.approx(TRUTH.mean_ms(step.load), abs=0.1)


def test_a_gap_in_the_record_is_not_a_long_step() -> None:
    trace = busy_trace(varied(200), sd=0)
    kept = tuple(step for step in trace.steps if not 80 <= (step.index or 0) < 120)
    blind = tuple(replace(step, itl_ms=()) for step in kept)

    walls = [step.wall_ms for step in busy_steps(replace(trace, steps=blind)).steps]
    assert max(walls) < 300


def test_too_few_steps_are_refused_with_their_number() -> None:
    with pytest.raises(EvidenceError, match="49 steps in the trace, 49 of them"):
        fit_step_time(busy_trace(varied(49)))


def test_an_engine_that_was_never_busy_is_refused() -> None:
    trace = busy_trace(varied(100))
    idle = tuple(replace(step, running=0, waiting=0) for step in trace.steps)

    with pytest.raises(EvidenceError, match="0 of those right after another step"):
        fit_step_time(replace(trace, steps=idle))


def test_steps_without_their_work_are_counted_as_unusable() -> None:
    trace = busy_trace(varied(100), sd=0)
    blind = tuple(
        replace(step, prefill_tokens=None) if i < 40 else step for i, step in enumerate(trace.steps)
    )

    busy = busy_steps(replace(trace, steps=blind))
    assert (busy.total, len(busy.steps)) == (100, 60)
    assert busy.unusable_ms == pytest.approx(
        sum(step.itl_ms[0] for step in trace.steps[:40]), rel=0.03
    )
