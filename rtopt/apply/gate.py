"""The gate: keep, restore, inconclusive or go on, after every pair of blocks.

The default is restore. A keep needs evidence for the objective and every guard held; evidence of
harm, a broken guard or the horizon restore.

The interval of the effect has level 1 - 2 alpha, so its near end is the one-sided bound at alpha:
where the objective passes, the interval leaves out "no effect".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rtopt.apply.guard import Pair, check, evidence
from rtopt.metrics import get
from rtopt.stats import HARM_E, Rule, Stop, confidence_sequence, log_e
from rtopt.types import Decision, Estimate, GuardResult, Interval, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the gate says after a pair."""

    decision: Decision | None
    """None: go on."""
    reason: str
    effect: Estimate | None = None
    e_value: float | None = None
    guards: tuple[GuardResult, ...] = ()


def rule_of(plan: Plan) -> Rule:
    """The plan's stopping rule; the simulation of `make_plan` runs the same one."""
    return Rule(
        alpha=plan.alpha,
        prior=plan.prior,
        min_pairs=plan.min_pairs,
        max_pairs=plan.max_pairs,
        min_gain=log_gain(plan.objective, plan.min_gain_frac),
    )


def log_gain(objective: str, gain_frac: float) -> float:
    """A gain as a log ratio, positive is better: 5 % less of a time, 5 % more of a rate."""
    if get(objective).better == "higher":
        return math.log1p(gain_frac)
    return -math.log1p(-gain_frac)


def judge(plan: Plan, pairs: Sequence[Pair], *, restarted: bool = False) -> Reading:
    """Weigh the complete pairs so far; both blocks of each have the objective."""
    guards = check(plan, pairs, restarted=restarted)
    gains = _gains(plan, pairs)
    effect = _effect(plan, gains)
    e_value = evidence(log_e(gains, prior=plan.prior)) if gains else None
    decision, reason = _decide(plan, gains, guards, effect, e_value)
    return Reading(decision=decision, reason=reason, effect=effect, e_value=e_value, guards=guards)


def stopped(plan: Plan, pairs: Sequence[Pair], reason: str) -> Reading:
    """Inconclusive for a reason outside the statistics, with what was measured so far."""
    gains = _gains(plan, pairs)
    return Reading(
        decision="inconclusive",
        reason=reason,
        effect=_effect(plan, gains),
        e_value=evidence(log_e(gains, prior=plan.prior)) if gains else None,
        guards=check(plan, pairs, restarted=False),
    )


def _decide(
    plan: Plan,
    gains: Sequence[float],
    guards: Sequence[GuardResult],
    effect: Estimate | None,
    e_value: float | None,
) -> tuple[Decision | None, str]:
    broken = [guard for guard in guards if guard.state == "violated"]
    if broken:
        return "restore", f"guard {broken[0].name}: {broken[0].text}"
    if effect is None or e_value is None:
        return None, "no pair is complete"
    rule = rule_of(plan)
    told = f"{plan.objective} {_percent(effect)} after {len(gains)} pairs, e={e_value:.3g}"
    stop = rule.stops(np.asarray(gains))[-1]
    open_guards = [guard for guard in guards if guard.state != "held"]
    if stop == Stop.KEEP and not open_guards:
        return "keep", f"{told} (needs {rule.keep_e:g}), every guard held"
    if stop == Stop.HARM:
        return "restore", f"harm: {told} (stops at {HARM_E:g})"
    blind = [guard for guard in guards if guard.state == "no_data"]
    if blind and len(gains) >= plan.min_pairs:
        return "inconclusive", f"guard {blind[0].name}: {blind[0].text}; no data is not a pass"
    if len(gains) < plan.max_pairs:
        return None, told
    if stop == Stop.KEEP:
        names = "; ".join(guard.text for guard in open_guards)
        return "restore", f"{told}, but {names}"
    if plan.min_gain_frac > 0 and e_value >= rule.keep_e:
        return "restore", f"{told}: better, but by less than the {plan.min_gain_frac:.1%} wanted"
    return "restore", f"not proven better: {told} (needs {rule.keep_e:g})"


def _gains(plan: Plan, pairs: Sequence[Pair]) -> list[float]:
    """Log ratio candidate / base of the objective per pair, turned so that positive is better."""
    sign = 1.0 if get(plan.objective).better == "higher" else -1.0
    return [
        sign * math.log(candidate.metrics[plan.objective] / base.metrics[plan.objective])
        for base, candidate in pairs
    ]


def _effect(plan: Plan, gains: Sequence[float]) -> Estimate | None:
    """Ratio candidate / base - 1, with its confidence sequence at level 1 - 2 alpha."""
    if not gains:
        return None
    sign = 1.0 if get(plan.objective).better == "higher" else -1.0
    sequence = confidence_sequence(gains, alpha=2 * plan.alpha, prior=plan.prior)
    value = math.expm1(sign * sum(gains) / len(gains))
    if sequence is None or max(abs(sequence.low), abs(sequence.high)) > 700:
        return Estimate(value=value)
    ends = sorted(math.expm1(sign * end) for end in (sequence.low, sequence.high))
    return Estimate(value=value, interval=Interval(low=ends[0], high=ends[1], level=sequence.level))


def _percent(effect: Estimate) -> str:
    if effect.interval is None:
        return f"{effect.value:+.1%}"
    return f"{effect.value:+.1%} [{effect.interval.low:+.1%}, {effect.interval.high:+.1%}]"
