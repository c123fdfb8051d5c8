"""More arrives than is finished (open load only)."""

from rtopt.attribute.check import Check
from rtopt.attribute.jackknife import jackknife
from rtopt.attribute.window import Vector, Window
from rtopt.errors import EvidenceError
from rtopt.types import Cause, Evidence, Finding

NAMES_FROM = 0.5
"""Half of the busy time above the queue's level at the start: a burst that drains again within
the window stays below it."""
GROWTH_FRAC = 0.05
"""Of the arrivals; below 5 % a queue of random length at high but bearable load looks the same."""


def look(w: Window) -> Finding:
    """Share of the busy time with the queue above its first level, when it grows at all; else 0.

    Raises:
        EvidenceError: Closed loop (clients wait, so the queue is bounded), or no arrivals.
    """
    load = w.trace.header.load
    if load is not None and load.kind == "closed":
        raise EvidenceError("closed loop: clients wait for answers, so the queue is bounded")
    known_N = w.known(w.waiting_N, what="waiting requests were")
    t_N, waiting_N, wall_N = w.t_N[known_N], w.waiting_N[known_N], w.wall_N[known_N]
    slope = jackknife(lambda i: _slope(t_N[i], waiting_N[i]), len(t_N))
    span_s = float(t_N.max() - t_N.min())
    finished_per_s = len(w.trace.requests) / w.trace.duration_s
    arrivals_per_s = finished_per_s + max(slope.value, 0.0)
    if arrivals_per_s <= 0 or span_s <= 0:
        raise EvidenceError("no request finished and none was added to the queue")
    growth = slope.value / arrivals_per_s
    grows = growth >= GROWTH_FRAC and slope.low > 0 and slope.value * span_s >= 1
    first = float(waiting_N[t_N <= t_N.min() + span_s / 10].mean())
    above = float(wall_N[waiting_N > first].sum() / wall_N.sum())
    share = above if grows else 0.0
    return Finding(
        cause=Cause.QUEUE_GROWING,
        share=share,
        evidence=(
            Evidence(
                measure="queue_growth_frac",
                value=growth,
                unit="frac",
                threshold=GROWTH_FRAC,
                supports=grows,
                text=f"the queue grew by {slope.value:.3g} requests/s "
                f"(95 % interval {slope.low:.3g} to {slope.high:.3g}), {growth:.0%} of the "
                f"{arrivals_per_s:.3g} arrivals/s",
            ),
            Evidence(
                measure="queue_above_start_frac",
                value=above,
                unit="frac",
                threshold=NAMES_FROM,
                supports=above >= NAMES_FROM,
                text=f"it was longer than at the start ({first:.3g}) for {above:.0%} of the "
                "busy time",
            ),
        ),
    )


def _slope(t_N: Vector, y_N: Vector) -> float:
    """Least-squares slope."""
    spread_N = t_N - t_N.mean()
    return float(spread_N @ y_N / (spread_N @ spread_N))


QUEUE = Check(cause=Cause.QUEUE_GROWING, names_from=NAMES_FROM, look=look)
