"""Run every check and put the causes in order, or abstain."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rtopt.attribute.checks import CHECKS
from rtopt.attribute.checks.budget import budget_full
from rtopt.attribute.checks.kv import kv_full
from rtopt.attribute.checks.slots import slots_full
from rtopt.attribute.tried import trial_evidence
from rtopt.attribute.window import Window, open_window
from rtopt.errors import EvidenceError
from rtopt.types import Attribution, Cause, Deviation, Evidence, Finding, Trace, Trial

METHOD = "rules"
MIN_STEPS = 50
"""With fewer, a share of 0.2 has a standard error above 5 points even if steps were independent."""
MAX_UNMATCHED_FRAC = 0.1
"""A tenth of the time that nobody can account for could hold a cause of its own."""

HIDDEN_BY_LOW_LOAD = frozenset({Cause.COMPUTE, Cause.HOST_GAP, Cause.QUEUE_GROWING})
"""Throughput is set by the callers then: none of these can be what limits it. Long prefill stays,
it is about the latency of those who are there."""


def rank(trace: Trace, deviation: Deviation, trials: Sequence[Trial] = ()) -> Attribution:
    """Causes by share of the busy time, largest first, or the reason why none is named.

    Args:
        trace: Needs step records.
        deviation: The trace against its prediction; says how much of it is accounted for.
        trials: Earlier trials of the same run, as further evidence.
    """
    if trace.header.source == "metrics":
        return _abstain("the trace holds metrics only; the rules need step records (the overlay)")
    if len(trace.steps) < MIN_STEPS:
        return _abstain(
            f"{len(trace.steps)} steps in {trace.duration_s:.3g} s, at least {MIN_STEPS} wanted"
        )
    if (deviation.unmatched_frac or 0.0) > MAX_UNMATCHED_FRAC:
        return _abstain(
            f"{deviation.unmatched_frac:.0%} of the steps' time could not be compared with the "
            f"fit, at most {MAX_UNMATCHED_FRAC:.0%} wanted"
        )
    try:
        window = open_window(trace)
    except EvidenceError as error:
        return _abstain(str(error))
    if window.hole_frac > MAX_UNMATCHED_FRAC:
        return _abstain(
            f"{window.hole_frac:.0%} of the time lies next to steps that were not recorded, "
            f"at most {MAX_UNMATCHED_FRAC:.0%} wanted"
        )
    return _judge(window, trials)


def _judge(window: Window, trials: Sequence[Trial]) -> Attribution:
    named: list[Finding] = []
    considered: list[Finding] = []
    absent: dict[Cause, str] = {}
    for check in CHECKS:
        try:
            found = check.look(window)
        except EvidenceError as error:
            absent[check.cause] = str(error)
            continue
        found = replace(found, evidence=found.evidence + trial_evidence(check.cause, trials))
        (named if found.share >= check.names_from else considered).append(found)
    low = next((f for f in named if f.cause is Cause.LOAD_TOO_LOW), None)
    if low is not None:
        considered += [_hide(f, low) for f in named if f.cause in HIDDEN_BY_LOW_LOAD]
        named = [f for f in named if f.cause not in HIDDEN_BY_LOW_LOAD]
    named.sort(key=lambda f: f.share, reverse=True)
    considered.sort(key=lambda f: f.share, reverse=True)
    return Attribution(
        method=METHOD,
        findings=tuple(named),
        abstained=None if named else _nothing(considered, absent),
        considered=tuple(considered),
        absent=absent,
        numbers=_numbers(window, (*named, *considered)),
        unexplained_frac=_unexplained(window),
    )


def _abstain(reason: str) -> Attribution:
    return Attribution(method=METHOD, abstained=reason)


def _hide(finding: Finding, low: Finding) -> Finding:
    """The finding with the reason why it is not named while the load is low."""
    against = Evidence(
        measure="unasked_frac",
        value=low.share,
        unit="frac",
        supports=False,
        text=f"nobody waited and slots were free for {low.share:.0%} of the window, so the "
        "callers set the throughput",
    )
    return replace(finding, evidence=(*finding.evidence, against))


def _nothing(considered: Sequence[Finding], absent: dict[Cause, str]) -> str:
    """Why no cause is named although the checks ran."""
    reason = f"none of {len(considered)} checks reached its threshold"
    if considered:
        limits = {c.cause: c.names_from for c in CHECKS}
        nearest = max(considered, key=lambda f: f.share / limits[f.cause])
        reason += (
            f"; nearest: {nearest.cause.label} ({nearest.share:.0%}, named from "
            f"{limits[nearest.cause]:.0%})"
        )
    return reason + (f"; {len(absent)} could not be checked" if absent else "")


def _unexplained(w: Window) -> float | None:
    """Share of the busy time in which requests wait with no limit reached; None when unknown."""
    needs = (
        *(w.batch_N, w.slots_N, w.prefill_tokens_N, w.decode_tokens_N, w.budget_N),
        *(w.kv_N, w.preempted_N, w.waiting_N),
    )
    reached_N = slots_full(w) | budget_full(w) | kv_full(w)
    try:
        return w.share((w.waiting_N > 0) & ~reached_N, *needs, what="all limits were")
    except EvidenceError:
        return None


def _numbers(w: Window, findings: Sequence[Finding]) -> dict[str, float]:
    numbers = {
        "steps": float(len(w.wall_N)),
        "busy_s": w.busy_s,
        "idle_frac": w.idle_frac,
        "step_wall_ms_mean": float(w.wall_N.mean()) * 1e3,
    }
    for name, y_N in (("slots", w.slots_N), ("token_budget", w.budget_N)):
        if np.isfinite(y_N).any():
            numbers[name] = float(np.nanmean(y_N))
    return numbers | {e.measure: e.value for f in findings for e in f.evidence}
