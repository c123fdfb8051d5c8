"""Before and after as cumulative distributions: the whole of a latency, not one percentile."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, Locator, LogLocator, MaxNLocator, NullLocator

from rtopt.report.figures.canvas import BAD, BASE, CANDIDATE, MUTED, label, picture
from rtopt.report.number import quantity
from rtopt.report.run import Run
from rtopt.report.section import Picture
from rtopt.types import Slo, Trace

POINTS = 160
"""More cannot be told apart at this width."""
KINDS = {"ttft": "Time to first token", "itl": "Time between tokens"}
UPPER = 0.997
"""The last few values in a thousand would stretch the axis."""


def latencies(run: Run) -> tuple[Picture, ...]:
    """TTFT and ITL, before and (when something was kept) after."""
    if run.baseline is None:
        return ()
    trials = tuple(run.trials.values())
    slos = trials[-1].plan.slos if trials else ()
    found = (_one(kind, run.baseline, run.latest, slos) for kind in KINDS)
    return tuple(p for p in found if p is not None)


def _one(kind: str, before: Trace, after: Trace | None, slos: Sequence[Slo]) -> Picture | None:
    series = [("before", BASE, "-", _of(before, kind))]
    if after is not None:
        series.append(("after", CANDIDATE, "--", _of(after, kind)))
    series = [line for line in series if line[3]]
    if not series:
        return None
    limits = [slo for slo in slos if slo.metric.startswith(f"{kind}_p")]

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        shares = np.linspace(0, UPPER, POINTS)
        for name, color, style, values in series:
            x = np.quantile(np.array(values), shares)
            axes.plot(x, shares * 100, color=color, linestyle=style, linewidth=2.2, label=name)
            p95 = float(np.quantile(np.array(values), 0.95))
            marker = "o" if name == "before" else "s"
            axes.plot([p95], [95], marker=marker, color=color, markersize=7)
        for slo in limits:
            axes.axvline(slo.limit, color=BAD, linewidth=1.3, linestyle=":")
            axes.annotate(
                f"limit {slo.metric}",
                (slo.limit, 2),
                xytext=(-4, 0),
                textcoords="offset points",
                ha="right",
                color=BAD,
                fontsize=10,
                rotation=90,
                va="bottom",
            )
        axes.axhline(95, color=MUTED, linewidth=0.8)
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.xaxis.set_major_locator(_locator(high / low))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: quantity(v, "ms")))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_ylim(0, 102)
        figure.legend(loc="outside upper right", ncols=2)
        label(axes, x=f"{KINDS[kind].lower()} (log scale)", y="% at most this long; marks: p95")

    medians = ", ".join(
        f"{name} median {quantity(float(np.median(v)), 'ms')}" for name, _, _, v in series
    )
    return picture(
        paint,
        name=kind,
        title=KINDS[kind],
        text=f"Cumulative distribution of {KINDS[kind].lower()}: {medians}.",
    )


def _locator(span: float) -> Locator:
    """About five labels, however many decades there are."""
    if span < 8:
        return MaxNLocator(nbins=4)
    return LogLocator(subs=(1.0, 3.0) if span > 100 else (1.0, 2.0, 5.0))


def _of(trace: Trace, kind: str) -> list[float]:
    """Positive values only: the axis is logarithmic."""
    picked = (step.ttft_ms if kind == "ttft" else step.itl_ms for step in trace.steps)
    return [value for values in picked for value in values if value > 0]
