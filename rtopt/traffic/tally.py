"""What came of a load as a whole."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rtopt.errors import UsageError
from rtopt.traffic.answer import Answer

LATE_MS: Final = 5.0
"""An arrival sent later than this was not on schedule."""
GOODPUT_METRICS: Final = ("ttft", "itl", "e2e")


@dataclass(slots=True, kw_only=True)
class Tally:
    """What came of it."""

    finished: int = 0
    failed: int = 0
    unfinished: int = 0
    """Sent, and given up when the time to wait for answers was over."""
    unsent: int = 0
    """Of the workload; the load was stopped before their time."""
    output_tokens: int = 0
    """As the server counted them."""
    prompt_tokens: int = 0
    uncounted: int = 0
    """Finished without the server's count of tokens."""
    late: int = 0
    """Sent more than 5 ms after their time."""
    late_ms: dict[str, float] = field(default_factory=dict)
    """Quantiles, as in the others: mean, p50, p95, p99, max. Empty in a closed loop."""
    ttft_ms: dict[str, float] = field(default_factory=dict)
    itl_ms: dict[str, float] = field(default_factory=dict)
    """Over all gaps between outputs."""
    e2e_ms: dict[str, float] = field(default_factory=dict)
    good: int | None = None
    """Finished within every limit of the goodput; absent without limits."""
    errors: dict[str, int] = field(default_factory=dict)
    wall_s: float = 0.0
    cpu_frac: float = 0.0
    """CPU seconds of this process per second."""


def add_up(
    answers: Sequence[Answer], *, limits_ms: Mapping[str, float], wall_s: float, cpu_s: float
) -> Tally:
    """The tally of these answers."""
    done = [a for a in answers if a.error is None]
    tally = Tally(
        finished=len(done),
        failed=len(answers) - len(done),
        output_tokens=sum(a.output_tokens or 0 for a in done),
        prompt_tokens=sum(a.prompt_tokens or 0 for a in done),
        uncounted=sum(a.output_tokens is None for a in done),
        late=sum(a.late_ms is not None and a.late_ms > LATE_MS for a in answers),
        late_ms=spread([a.late_ms for a in answers if a.late_ms is not None]),
        ttft_ms=spread([a.first_ms for a in done if a.first_ms is not None]),
        itl_ms=spread([gap for a in done for gap in a.gaps_ms]),
        e2e_ms=spread([a.e2e_ms for a in done if a.e2e_ms is not None]),
        good=sum(is_good(a, limits_ms) for a in done) if limits_ms else None,
        wall_s=wall_s,
        cpu_frac=cpu_s / wall_s if wall_s > 0 else 0.0,
    )
    for answer in answers:
        if answer.error is not None:
            tally.errors[answer.error] = tally.errors.get(answer.error, 0) + 1
    return tally


def is_good(answer: Answer, limits_ms: Mapping[str, float]) -> bool:
    """Whether a finished request kept every limit; its ITL is the mean over its own gaps."""
    gaps = answer.gaps_ms
    found = {
        "ttft": answer.first_ms,
        "itl": sum(gaps) / len(gaps) if gaps else 0.0,
        "e2e": answer.e2e_ms,
    }
    return all((value := found[name]) is not None and value <= at for name, at in limits_ms.items())


def check_limits(limits_ms: Mapping[str, float]) -> None:
    """Refuse a limit that cannot be judged.

    Raises:
        UsageError: An unknown metric, or a limit that is not above 0.
    """
    for name, limit in limits_ms.items():
        if name not in GOODPUT_METRICS:
            known = ", ".join(GOODPUT_METRICS)
            raise UsageError(f"--goodput {name}: unknown metric; known: {known}. Nothing was sent.")
        if not 0 < limit < math.inf:
            raise UsageError(f"--goodput {name}={limit:g}: must be above 0. Nothing was sent.")


def spread(values: Sequence[float]) -> dict[str, float]:
    """Mean and quantiles; of nothing: nothing."""
    if not values:
        return {}
    ordered = sorted(values)
    found = {"mean": sum(ordered) / len(ordered)}
    for name, at in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        found[name] = ordered[max(0, math.ceil(at * len(ordered)) - 1)]
    return {**found, "max": ordered[-1]}
