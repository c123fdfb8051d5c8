"""The plan of a trial: everything fixed before the first block, with what it can and cannot see."""

import math
from collections.abc import Sequence
from itertools import pairwise

from rtopt.apply.gate import log_gain
from rtopt.apply.guard import default_margins, is_ratio
from rtopt.apply.settings import GateSettings
from rtopt.errors import EvidenceError, UsageError
from rtopt.metrics import cut, get
from rtopt.stats import Rule, simulate
from rtopt.types import Change, Margin, Plan, Slo, Trace

EFFECTS = {"0": 0.0, "-2%": 0.02, "-5%": 0.05}
"""Label to how much worse the change truly is."""
MIN_DIFFERENCES = 3
"""A spread from fewer A/A differences is a guess."""
MIN_RATIO = 0.7
"""Smallest gain of interest over noise per pair that a trial can be expected to see."""
MIN_POWER = 0.8


def make_plan(
    change: Change,
    settings: GateSettings,
    *,
    objective: str,
    slos: Sequence[Slo] = (),
    num_levers: int = 1,
    baseline: Trace | None = None,
    margins: Sequence[Margin] | None = None,
) -> Plan:
    """Fix a trial, and simulate how often these very settings keep a change that is no better.

    Args:
        change: What to try.
        settings: Of the gate.
        objective: Metric id; what a gain is measured in.
        slos: Absolute limits that a keep must meet.
        num_levers: Trials that the run may make; alpha is split over them.
        baseline: A recording without any change. Its neighbouring blocks give the noise; without
            it the noise stays unknown and only the false-keep figure that needs none is given.
        margins: Relative guards; None takes the defaults for all that the objective doesn't trade.

    Raises:
        UsageError: A metric is unknown, a limit impossible, or `max_pairs` too few for any keep.
        EvidenceError: The smallest gain worth having would drown in the noise.
    """
    _check_margins(margins or ())
    rule = check(settings, objective=objective, slos=slos, num_levers=num_levers)
    sd = None if baseline is None else noise_sd(baseline, settings, objective)
    wanted = log_gain(objective, settings.min_gain_frac)
    if sd is not None and wanted > 0:
        _refuse_hopeless(rule, wanted, sd, settings, objective)
    return Plan(
        change=change,
        objective=objective,
        slos=tuple(slos),
        margins=default_margins(objective) if margins is None else tuple(margins),
        alpha=rule.alpha,
        prior=settings.prior,
        min_pairs=settings.min_pairs,
        max_pairs=settings.max_pairs,
        block_s=settings.block_s,
        washout_s=settings.washout_s,
        seed=settings.seed,
        min_gain_frac=settings.min_gain_frac,
        noise_sd=sd,
        false_keep=_false_keep(rule, sd, settings.seed),
    )


def check(
    settings: GateSettings, *, objective: str, slos: Sequence[Slo] = (), num_levers: int = 1
) -> Rule:
    """Give the rule of the trials, or refuse settings with which none could ever be kept.

    Raises:
        UsageError: A metric is unknown, a limit impossible, or `max_pairs` too few for any keep.
    """
    _check(objective, slos, num_levers, settings)
    rule = Rule(
        alpha=settings.alpha / num_levers,
        prior=settings.prior,
        min_pairs=settings.min_pairs,
        max_pairs=settings.max_pairs,
    )
    if rule.fewest_pairs > settings.max_pairs:
        raise UsageError(
            f"gate settings: max_pairs={settings.max_pairs}, and a keep at alpha={rule.alpha:g}"
            f" needs at least {rule.fewest_pairs} pairs even without noise. Nothing was changed."
        )
    return rule


def noise_sd(baseline: Trace, settings: GateSettings, objective: str) -> float | None:
    """Standard deviation of the log ratio of an A/A pair, from neighbouring baseline blocks.

    Each block is cut like one of the trial. The true mean of an A/A difference is 0, so the spread
    is about 0. None when the baseline has fewer than `MIN_DIFFERENCES` neighbours with data.
    """
    block_ns, washout_ns = int(settings.block_s * 1e9), int(settings.washout_s * 1e9)
    values = [
        get(objective).of(cut(baseline, start + washout_ns, start + block_ns))
        for start in range(baseline.start_ns, baseline.end_ns - block_ns + 1, block_ns)
    ]
    squares = [
        math.log(after / before) ** 2
        for before, after in pairwise(values)
        if before is not None and after is not None and before > 0 and after > 0
    ]
    if len(squares) < MIN_DIFFERENCES:
        return None
    return math.sqrt(sum(squares) / len(squares))


def _check(
    objective: str,
    slos: Sequence[Slo],
    num_levers: int,
    settings: GateSettings,
) -> None:
    if not is_ratio(objective):
        raise UsageError(
            f"objective {objective}: a gain is a ratio, so the objective must be a time or a rate,"
            " for example throughput or itl_mean. Nothing was changed."
        )
    if get(objective).better == "lower" and settings.min_gain_frac >= 1:
        raise UsageError(
            f"min_gain_frac={settings.min_gain_frac}: {objective} can't fall by all of itself."
            " Nothing was changed."
        )
    if num_levers < 1:
        raise UsageError(f"num_levers={num_levers}: must be at least 1. Nothing was changed.")
    for slo in slos:
        if is_ratio(slo.metric) and not slo.limit > 0:
            raise UsageError(
                f"SLO {slo.metric}: limit {slo.limit:g} must be above 0. Nothing was changed."
            )


def _check_margins(margins: Sequence[Margin]) -> None:
    for margin in margins:
        get(margin.metric)
        if not 0 <= margin.worse_frac < 1:
            raise UsageError(
                f"margin {margin.metric}: {margin.worse_frac} must be a share from 0 up to 1."
                " Nothing was changed."
            )


def _refuse_hopeless(
    rule: Rule, wanted: float, sd: float, settings: GateSettings, objective: str
) -> None:
    """Refuse a trial that can't be expected to see the smallest gain worth having.

    Source:
        Ratio of effect to noise against the pairs a keep takes: rtopt's own simulations of this
        rule; at .7 and 60 pairs nine of ten trials see the gain.
    """
    power = simulate(rule, effect=wanted, sd=sd, seed=settings.seed).keep
    ratio = wanted / sd if sd > 0 else math.inf
    if ratio >= MIN_RATIO and power >= MIN_POWER:
        return
    raise EvidenceError(
        f"{objective}: a gain of {settings.min_gain_frac:.1%} would be seen in {power:.0%} of"
        f" trials of {rule.max_pairs} pairs, because A/A pairs of {settings.block_s:g} s vary by"
        f" {sd:.1%} (gain / noise {ratio:.2f}, wanted {MIN_RATIO}). Use longer blocks, more pairs"
        " or a larger min_gain_frac. Nothing was changed.",
        noise_sd=sd,
        power=power,
    )


def _false_keep(rule: Rule, sd: float | None, seed: int) -> dict[str, float]:
    """Share of trials kept per true effect; only at 0 does the noise not matter.

    `min_gain_frac` is left out: it only turns keeps into restores, so the figures are upper ones.
    """
    return {
        label: simulate(
            rule, effect=math.log1p(-worse), sd=1.0 if sd is None else sd, seed=seed
        ).keep
        for label, worse in EFFECTS.items()
        if worse == 0 or sd is not None
    }
