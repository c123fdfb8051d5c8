"""Guards: what must not get worse while the objective gets better.

- A limit that the user gave (`Slo`) and a share that a metric may lose (`Margin`) are *certified*:
  a keep needs evidence that they hold, evidence of the opposite restores at once.
- Errors, a restart and preemptions are *hard*: plain counts, no statistics.

No data is not a pass.
"""

# Shapes: pairs of (base block, candidate block), complete ones only.

import math
from collections.abc import Callable, Iterator, Sequence

from rtopt.metrics import METRICS, get
from rtopt.stats import HARM_E, log_e
from rtopt.types import Block, GuardResult, Margin, Plan, Slo

Pair = tuple[Block, Block]
"""Base block and candidate block of one pair."""

GUARD_PRIOR = 0.3
"""Variance of the standardised room; it decides only how soon a guard speaks."""
CERTIFY_E = 10.0
"""Evidence that a guard holds: one-sided level 5 %."""
ERROR_RATE_MORE = 0.001
MIN_ERRORS = 3
PREEMPTIONS_TIMES = 2.0
MIN_PREEMPTIONS = 3

_ITL = tuple(name for name in METRICS if name.startswith("itl_"))
_TTFT = tuple(name for name in METRICS if name.startswith("ttft_"))
_E2E = tuple(name for name in METRICS if name.startswith("e2e_"))

TRADED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("throughput", "prompt_throughput", "request_rate"), _ITL + _TTFT + _E2E),
    **dict.fromkeys(_E2E, _ITL + _TTFT),
}
"""Objective to the metrics it may cost: only limits that the user gives guard those."""

MARGINS = (
    Margin(metric="itl_mean", worse_frac=0.02),
    Margin(metric="itl_p95", worse_frac=0.05),
    Margin(metric="ttft_mean", worse_frac=0.10),
    Margin(metric="ttft_p95", worse_frac=0.25, certify=False),
    Margin(metric="ttft_p99", worse_frac=0.25, certify=False),
    Margin(metric="throughput", worse_frac=0.02),
)
"""Shares that can be certified in 60 pairs on live traffic; the noisiest metrics only veto."""


def default_margins(objective: str) -> tuple[Margin, ...]:
    """Margins for every guarded metric that the objective does not trade."""
    spared = {objective, *TRADED.get(objective, ())}
    return tuple(margin for margin in MARGINS if margin.metric not in spared)


def check(plan: Plan, pairs: Sequence[Pair], *, restarted: bool) -> tuple[GuardResult, ...]:
    """What every guard says after these pairs."""
    hard = (guard(pairs) for guard in HARD)
    return (_engine_restart(restarted), *hard, *_limits(plan, pairs), *_margins(plan, pairs))


def is_ratio(metric: str) -> bool:
    """Whether the metric is compared by ratio: times and rates; counts and shares may be 0."""
    unit = get(metric).unit
    return unit == "ms" or unit.endswith("/s")


def _limits(plan: Plan, pairs: Sequence[Pair]) -> Iterator[GuardResult]:
    for slo in plan.slos:
        found = [candidate.metrics.get(slo.metric) for _, candidate in pairs]
        rooms = [_room(slo, value) for value in found]
        sign = "<=" if get(slo.metric).better == "lower" else ">="
        known = [value for value in found if value is not None]
        told = f", candidate mean {sum(known) / len(known):.4g}" if known else ""
        yield _judged(
            f"slo {slo.metric}",
            rooms,
            what=f"{slo.metric} {sign} {slo.limit:g} {get(slo.metric).unit}{told}",
            certify=True,
        )


def _room(slo: Slo, value: float | None) -> float | None:
    """Room to the limit, positive inside it; a log ratio for times and rates."""
    sign = 1.0 if get(slo.metric).better == "lower" else -1.0
    if value is None:
        return None
    if not is_ratio(slo.metric):
        return sign * (slo.limit - value)
    return sign * math.log(slo.limit / value) if value > 0 else None


def _margins(plan: Plan, pairs: Sequence[Pair]) -> Iterator[GuardResult]:
    for margin in plan.margins:
        rooms = [_spare(margin, base, candidate) for base, candidate in pairs]
        yield _judged(
            f"margin {margin.metric}",
            rooms,
            what=f"{margin.metric} at most {margin.worse_frac:.0%} worse than the baseline",
            certify=margin.certify,
        )


def _spare(margin: Margin, base: Block, candidate: Block) -> float | None:
    """Log ratio left until the candidate is worse by the margin; positive inside it."""
    before, after = base.metrics.get(margin.metric), candidate.metrics.get(margin.metric)
    if before is None or after is None or before <= 0 or after <= 0:
        return None
    if get(margin.metric).better == "lower":
        return math.log1p(margin.worse_frac) - math.log(after / before)
    return math.log(after / before) - math.log1p(-margin.worse_frac)


def _judged(name: str, rooms: Sequence[float | None], *, what: str, certify: bool) -> GuardResult:
    """Weigh one room per pair: enough of them above 0 hold, below 0 violate."""
    known = [room for room in rooms if room is not None]
    if len(known) < len(rooms) or not rooms:
        lacking = len(rooms) - len(known)
        return GuardResult(
            name=name, state="no_data", text=f"{what}: no data in {lacking} of {len(rooms)} pairs"
        )
    mean = sum(known) / len(known)
    e_value = evidence(log_e(known, prior=GUARD_PRIOR))
    if mean < 0 and e_value >= HARM_E:
        return GuardResult(name=name, state="violated", text=f"{what}: broken", e_value=e_value)
    if mean > 0 and e_value >= CERTIFY_E:
        return GuardResult(name=name, state="held", text=f"{what}: proven", e_value=e_value)
    if not certify:
        return GuardResult(
            name=name, state="held", text=f"{what}: no evidence against it", e_value=e_value
        )
    return GuardResult(name=name, state="uncertain", text=f"{what}: not proven", e_value=e_value)


def evidence(log_value: float) -> float:
    """E-value from its log, below the largest float."""
    return math.exp(min(log_value, 700.0))


def _engine_restart(restarted: bool) -> GuardResult:
    text = "the engine was started anew within the trial" if restarted else "no restart"
    return GuardResult(name="engine_restart", state="violated" if restarted else "held", text=text)


def _errors(pairs: Sequence[Pair]) -> GuardResult:
    """Violated by any error where the baseline has none, or by a higher rate of at least 3.

    Higher means by a tenth of a point of the finished requests.
    """
    counts = _counts("errors", pairs)
    if counts is None:
        return GuardResult(name="errors", state="no_data", text="no finished request to count")
    base, candidate = counts
    requests = [sum(block.requests for block in blocks) for blocks in zip(*pairs, strict=True)]
    rates = [n / max(of, 1) for n, of in zip(counts, requests, strict=True)]
    is_new = base == 0 and candidate > 0
    is_more = candidate >= MIN_ERRORS and rates[1] > rates[0] + ERROR_RATE_MORE
    return GuardResult(
        name="errors",
        state="violated" if is_new or is_more else "held",
        text=f"{candidate:.0f} requests ended in an error, baseline {base:.0f}",
    )


def _preemptions(pairs: Sequence[Pair]) -> GuardResult:
    counts = _counts("preemptions", pairs)
    if counts is None:
        return GuardResult(name="preemptions", state="no_data", text="preemptions are not known")
    base, candidate = counts
    is_more = candidate >= MIN_PREEMPTIONS and candidate > PREEMPTIONS_TIMES * base
    return GuardResult(
        name="preemptions",
        state="violated" if is_more else "held",
        text=f"{candidate:.0f} preemptions, baseline {base:.0f}",
    )


def _counts(metric: str, pairs: Sequence[Pair]) -> tuple[float, float] | None:
    """Sum over the base and the candidate blocks; None where one side has no block with data."""
    sides = []
    for blocks in zip(*pairs, strict=True):
        known = [block.metrics[metric] for block in blocks if metric in block.metrics]
        if not known:
            return None
        sides.append(sum(known))
    return (sides[0], sides[1]) if sides else None


HARD: tuple[Callable[[Sequence[Pair]], GuardResult], ...] = (_errors, _preemptions)
"""Guards without statistics; one function each."""
