"""Predicted against measured: one dot and interval per metric, around the measured value."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from rtopt.metrics import get
from rtopt.report.figures.canvas import BASE, CANDIDATE, HALF, INK, MUTED, NARROW, label, picture
from rtopt.report.number import percent
from rtopt.report.section import Picture
from rtopt.report.story.forecast import Comparison

SHORT = {
    "throughput": "tokens/s",
    "itl_mean": "ITL mean",
    "itl_p95": "ITL p95",
    "ttft_mean": "TTFT mean",
    "ttft_p95": "TTFT p95",
    "e2e_mean": "E2E mean",
}
MOST = 2.0
"""An interval that reaches further is cut at the edge, not allowed to flatten the others."""


def forecast_pictures(found: Sequence[Comparison]) -> tuple[Picture, ...]:
    """One picture per set of knobs that was predicted and measured."""
    shown = [c for c in found if c.shown]
    return tuple(_one(n, comparison) for n, comparison in enumerate(shown, start=1))


def _one(number: int, found: Comparison) -> Picture:
    names = [n for n in found.shown if found.measured[n] > 0]
    rels = {n: found.predicted[n].value / found.measured[n] - 1 for n in names}

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        color, marker = (BASE, "o") if number == 1 else (CANDIDATE, "s")
        reach = 0.1
        for row, name in enumerate(names):
            band, value = found.predicted[name].interval, found.measured[name]
            if band is not None:
                ends = [band.low / value - 1, band.high / value - 1]
                axes.plot(ends, [row, row], color=color, linewidth=5, alpha=0.4)
                reach = max(reach, *(abs(end) for end in ends))
            axes.plot([rels[name]], [row], marker, color=color, markersize=8)
            reach = max(reach, abs(rels[name]))
        axes.axvline(0, color=INK, linewidth=1.6)
        edge = min(reach, MOST) * 1.15
        axes.set_xlim(-edge, edge)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_yticks(range(len(names)), [SHORT.get(n, get(n).title) for n in names])
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: percent(v, signed=True)))
        axes.locator_params(axis="x", nbins=5)
        axes.annotate(
            "measured",
            (0, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            color=MUTED,
            fontsize=10,
        )
        label(axes, x="prediction error; bar: its interval")

    told = ", ".join(f"{SHORT.get(n, n)} {percent(rels[n], signed=True)}" for n in names)
    extra = " (extrapolated)" if found.is_extrapolated else ""
    return picture(
        paint,
        name=f"forecast{number}",
        title=f"{found.title}{extra}",
        text=f"Prediction relative to measurement: {told}.",
        size=HALF,
        narrow=NARROW,
    )
