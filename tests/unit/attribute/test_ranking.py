"""On a toy engine with one known limit, `rank` names that limit and nothing else."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from rtopt.attribute import CHECKS, rank
from rtopt.types import (
    Cause,
    Change,
    Deviation,
    Estimate,
    Finding,
    Plan,
    Trace,
    Trial,
    Verdict,
)

Serve = Callable[..., Trace]
MATCHED = Deviation(unmatched_frac=0.0)

COMPUTE_BOUND = {"base_ms": 4.0, "decode_ms": 6.0, "rate": 6.0, "output": (8, 40), "slots": 16}
LONG_PROMPTS = {"rate": 1.6, "prompt": (32, 32, 32, 3000), "prefill_token_ms": 0.3}


@pytest.mark.parametrize(
    ("faults", "causes"),
    [
        ({"slots": 4, "clients": 16}, {Cause.SLOTS_FULL}),
        ({"slots": 4, "clients": 5}, {Cause.SLOTS_FULL}),
        (
            {"budget": 256, "clients": 40, "prompt": (600,), "output": (16, 24), "slots": 60},
            {Cause.TOKEN_BUDGET_FULL},
        ),
        ({"kv_tokens": 1500.0, "clients": 40}, {Cause.KV_CAPACITY, Cause.PREEMPTION}),
        ({"slots": 8, "rate": 12.0}, {Cause.SLOTS_FULL, Cause.QUEUE_GROWING}),
        ({"gap_ms": 30.0, "clients": 32}, {Cause.HOST_GAP}),
        ({"rate": 0.5}, {Cause.LOAD_TOO_LOW}),
        ({"clients": 16}, {Cause.LOAD_TOO_LOW}),
    ],
    ids=["slots", "one_waits", "budget", "kv", "overload", "host", "low_open", "low_closed"],
)
def test_the_known_limit_is_named(
    serve: Serve, faults: dict[str, float], causes: set[Cause]
) -> None:
    assert rank(serve(**faults), MATCHED).causes == causes


def test_an_engine_without_a_fault_gets_no_cause(serve: Serve) -> None:
    found = rank(serve(clients=32), MATCHED)
    assert found.findings == ()
    assert found.abstained is not None
    assert "nearest: time is lost between steps" in found.abstained


def test_low_load_is_not_called_a_host_gap_however_large_the_gap(serve: Serve) -> None:
    found = rank(serve(rate=1.0, gap_ms=40.0), MATCHED)
    assert found.causes == {Cause.LOAD_TOO_LOW}
    gap = _of(found.considered, Cause.HOST_GAP)
    assert gap.share > 0.15
    assert gap.evidence[-1].supports is False
    assert "callers set the throughput" in gap.evidence[-1].text


def test_long_prompts_are_named_for_latency_also_when_the_load_is_low(serve: Serve) -> None:
    found = rank(serve(**LONG_PROMPTS), MATCHED)
    assert found.findings[0].cause is Cause.LOAD_TOO_LOW
    assert Cause.LONG_PREFILL in found.causes


def test_a_run_that_grows_with_its_batch_is_seen_where_the_batch_varies(serve: Serve) -> None:
    found = rank(serve(**COMPUTE_BOUND), MATCHED)
    compute = _of((*found.findings, *found.considered), Cause.COMPUTE)
    run_ms = found.numbers["run_ms_mean"]
    # 4 ms of each step are fixed.
    assert compute.share == pytest.approx(1 - 4.0 / run_ms, abs=0.02)


def test_compute_is_not_guessed_when_the_batch_never_varied(serve: Serve) -> None:
    found = rank(serve(slots=4, clients=16), MATCHED)
    assert "cannot be told apart" in found.absent[Cause.COMPUTE]


def test_a_cap_that_moved_within_the_window_counts_from_then_on(serve: Serve) -> None:
    trace = serve(slots=4, clients=16)
    unbound = replace(
        trace, header=replace(trace.header, knobs={**trace.header.knobs, "max_num_active_seqs": 64})
    )
    assert Cause.SLOTS_FULL not in rank(unbound, MATCHED).causes


def test_shares_are_weighted_by_time_and_not_by_steps(serve: Serve) -> None:
    trace = serve(slots=4, clients=16)
    half = len(trace.steps) // 2
    # The first half of the steps lasts ten times as long and nobody waits in it.
    steps, at = [], trace.start_ns
    for i, step in enumerate(trace.steps):
        assert step.dur_ns is not None
        at += step.dur_ns * (10 if i < half else 1)
        steps.append(replace(step, t_ns=at, waiting=0 if i < half else step.waiting))
    slow = replace(trace, steps=tuple(steps), end=replace(trace.end, end_ns=at))
    found = rank(slow, MATCHED)
    slots = _of((*found.findings, *found.considered), Cause.SLOTS_FULL)
    assert slots.share == pytest.approx(1 / 11, abs=0.01)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda t: replace(t, header=replace(t.header, source="metrics")), "metrics only"),
        (lambda t: replace(t, steps=t.steps[:49]), "49 steps"),
        (lambda t: replace(t, steps=()), "0 steps"),
        (lambda t: replace(t, steps=t.steps[::3]), "not recorded"),
    ],
    ids=["metrics", "few", "none", "holes"],
)
def test_poor_evidence_gives_a_reason_and_no_cause(
    serve: Serve, spoil: Callable[[Trace], Trace], reason: str
) -> None:
    found = rank(spoil(serve(slots=4, clients=16)), MATCHED)
    assert found.findings == ()
    assert found.abstained is not None
    assert reason in found.abstained


def test_too_much_unmatched_time_gives_no_cause(serve: Serve) -> None:
    found = rank(serve(slots=4, clients=16), Deviation(unmatched_frac=0.11))
    assert found.findings == ()
    assert found.abstained is not None
    assert "11%" in found.abstained


def test_a_value_that_was_not_recorded_makes_its_check_absent_not_zero(serve: Serve) -> None:
    trace = serve(slots=4, clients=16)
    blind = replace(trace, steps=tuple(replace(s, kv_frac=None) for s in trace.steps))
    found = rank(blind, MATCHED)
    assert "recorded for 0%" in found.absent[Cause.KV_CAPACITY]
    assert "kv_mean" not in found.numbers
    assert found.unexplained_frac is None


def test_waiting_that_no_limit_explains_is_reported_as_unexplained(serve: Serve) -> None:
    trace = serve(clients=16)
    stuck = replace(trace, steps=tuple(replace(s, waiting=3) for s in trace.steps))
    assert rank(stuck, MATCHED).unexplained_frac == pytest.approx(1.0)


def test_asynchronous_runs_overlap_so_the_gap_between_them_is_absent(serve: Serve) -> None:
    found = rank(serve(clients=32, config={"async_scheduling": True}), MATCHED)
    assert "overlap" in found.absent[Cause.HOST_GAP]


def test_every_named_and_refused_cause_carries_its_numbers(serve: Serve) -> None:
    found = rank(serve(slots=8, rate=12.0), MATCHED)
    shown = (*found.findings, *found.considered)
    assert len(shown) + len(found.absent) == len(CHECKS)
    for finding in shown:
        assert finding.evidence
        assert all(e.text and found.numbers[e.measure] == e.value for e in finding.evidence)
    assert found.numbers["slots"] == 8


def test_what_an_earlier_trial_measured_stands_beside_the_rule(serve: Serve) -> None:
    change = Change(lever="max_num_active_seqs", knobs={"max_num_active_seqs": 8}, reason="")
    trial = Trial(
        id="1",
        plan=Plan(change=change, objective="throughput"),
        undo=change,
        blocks=(),
        verdict=Verdict(decision="restore", reason="", effect=Estimate(value=-0.05)),
    )
    found = rank(serve(slots=4, clients=16), MATCHED, [trial])
    last = _of(found.findings, Cause.SLOTS_FULL).evidence[-1]
    assert (last.value, last.supports) == (-0.05, False)


def test_each_cause_has_one_check() -> None:
    assert sorted(check.cause for check in CHECKS) == sorted(Cause)


def _of(findings: tuple[Finding, ...], cause: Cause) -> Finding:
    return next(f for f in findings if f.cause is cause)
