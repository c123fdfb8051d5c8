"""What a workload looks like: counts, rates, lengths, bursts, and how much of it repeats."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, pstdev

from rtopt.traffic.tally import spread
from rtopt.types import Workload

_MIN_GAPS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Portrait:
    """A workload in a few numbers."""

    source: str
    requests: int
    duration_s: float
    rate_per_s: float
    peak_per_s: int
    """Most arrivals within one second of the clock."""
    prompt_tokens: dict[str, float] = field(default_factory=dict)
    """Mean and quantiles."""
    output_tokens: dict[str, float] = field(default_factory=dict)
    gap_cv: float | None = None
    """Standard deviation of the gaps over their mean: 1 for Poisson; absent with too few."""
    dispersion: float | None = None
    """Variance over mean of the arrivals in each second: 1 for Poisson."""
    block_tokens: int | None = None
    reused_frac: float | None = None
    """Share of prompt tokens in blocks that an earlier request had at the same place, after the
    same blocks; absent when prefixes are not known."""
    missed_frac: float | None = None
    notes: tuple[str, ...] = ()


def describe(workload: Workload) -> Portrait:
    """Look at a workload."""
    asks = workload.asks
    duration_s = workload.duration_ns / 1e9
    gaps = [b.arrival_ns - a.arrival_ns for a, b in pairwise(asks)]
    per_second = Counter(ask.arrival_ns // 10**9 for ask in asks)
    seconds = [per_second[second] for second in range(int(duration_s))]
    is_open = workload.load.kind == "open"
    return Portrait(
        source=workload.source,
        requests=len(asks),
        duration_s=duration_s,
        rate_per_s=len(asks) / duration_s if duration_s > 0 else 0.0,
        peak_per_s=max(per_second.values(), default=0),
        prompt_tokens=spread([ask.prompt_tokens for ask in asks]),
        output_tokens=spread([ask.output_tokens for ask in asks]),
        gap_cv=pstdev(gaps) / fmean(gaps)
        if is_open and len(gaps) >= _MIN_GAPS and any(gaps)
        else None,
        dispersion=pstdev(seconds) ** 2 / fmean(seconds) if is_open and any(seconds) else None,
        block_tokens=workload.block_tokens,
        reused_frac=_reused_frac(workload),
        missed_frac=workload.missed_frac,
        notes=workload.notes,
    )


def portrait_rows(found: Portrait) -> list[tuple[str, str]]:
    """The portrait as a table of two columns."""
    made = [
        ("source", found.source or "unknown"),
        ("requests", str(found.requests)),
        ("duration", f"{found.duration_s:.1f} s"),
        ("rate", f"{found.rate_per_s:.3g} per s, at most {found.peak_per_s} in one second"),
        ("prompt tokens", spread_text(found.prompt_tokens)),
        ("output tokens", spread_text(found.output_tokens)),
    ]
    if found.gap_cv is not None:
        made.append(("gaps", f"variation {found.gap_cv:.2f} (Poisson 1)"))
    if found.dispersion is not None:
        made.append(("bursts", f"dispersion of 1-s counts {found.dispersion:.2f} (Poisson 1)"))
    if found.reused_frac is None:
        made.append(("prefix reuse", "not known: no blocks in this file"))
    else:
        size = found.block_tokens
        made.append(("prefix reuse", f"{found.reused_frac:.1%} of prompt tokens, blocks of {size}"))
    if found.missed_frac is not None:
        made.append(("not seen whole", f"{found.missed_frac:.1%} of the requests"))
    return made


def spread_text(found: dict[str, float], digits: int = 0) -> str:
    """Mean and quantiles in one line."""
    return ", ".join(f"{name} {value:.{digits}f}" for name, value in found.items()) or "none"


def _reused_frac(workload: Workload) -> float | None:
    if workload.block_tokens is None:
        return None
    nodes: dict[tuple[int, int], int] = {}
    reused = 0
    for ask in workload.asks:
        parent = -1
        for block in ask.blocks:
            known = nodes.get((parent, block))
            reused += known is not None
            parent = nodes.setdefault((parent, block), len(nodes))
    total = sum(ask.prompt_tokens for ask in workload.asks)
    return reused * workload.block_tokens / total if total else None
