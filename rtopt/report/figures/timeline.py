"""Throughput over the whole run, with the arms shaded and the knob's value below."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from rtopt.report.figures.canvas import BASE, CANDIDATE, INK, MUTED, WIDE, label, picture
from rtopt.report.run import Run
from rtopt.report.section import Picture
from rtopt.types import Block, Trace, Trial, Value

BIN_S = 2.0
"""Long enough to hold tens of steps, short enough to show a stall."""
NARROW_TALL = (4.4, 4.2)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
    """A knob's value over a stretch, in minutes."""

    start: float
    end: float
    value: float


def timeline(run: Run) -> Picture | None:
    """Output tokens per second over time; None when there is neither recording nor block."""
    trials = tuple(trial for _, trial in sorted(run.trials.items()))
    traces = [t for t in (run.baseline, *run.afters.values()) if t is not None and t.steps]
    starts = [t.start_ns for t in traces] + [b.start_ns for t in trials for b in t.blocks]
    if not starts:
        return None
    zero = min(starts)
    knobs = tuple(dict.fromkeys(k for t in trials for k in t.plan.change.knobs))
    values = {knob: _values(knob, traces, trials, zero) for knob in knobs}
    shown = {knob: stretches for knob, stretches in values.items() if stretches}

    def paint(figure: Figure) -> None:
        heights = [4.0, *(1.1 for _ in shown)]
        grid = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)
        top, *below = (row[0] for row in grid)
        _paint_rates(top, traces, trials, zero)
        for axes, (knob, stretches) in zip(below, shown.items(), strict=True):
            _paint_knob(axes, knob, stretches)
        (below[-1] if below else top).set_xlabel("minutes since the start of the baseline")

    text = f"Output tokens per second over the run, in bins of {BIN_S:g} s"
    if trials:
        text += "; blocks with the old and the new value take turns, their means as bars"
    return picture(
        paint,
        name="timeline",
        title="Throughput over the run",
        text=f"{text}.",
        size=WIDE,
        narrow=NARROW_TALL,
    )


def _paint_rates(axes: Axes, traces: Sequence[Trace], trials: Sequence[Trial], zero: int) -> None:
    for trace in traces:
        minutes, rates = _rates(trace, zero)
        axes.plot(minutes, rates, color=MUTED, linewidth=1.1)
    blocks = [(b, t) for t in trials for b in t.blocks if "throughput" in b.metrics]
    for block, trial in blocks:
        color = BASE if block.arm == "base" else CANDIDATE
        start, end = _span(block, zero)
        begin = start + trial.plan.washout_s / 60
        axes.axvspan(start, end, color=color, alpha=0.13, linewidth=0)
        rate = block.metrics["throughput"]
        axes.plot([begin, end], [rate, rate], color=color, linewidth=3, solid_capstyle="butt")
    axes.set_ylim(bottom=0)
    axes.margins(x=0.01)
    label(axes, y="output tokens per second")
    handles: list[Line2D | Patch] = []
    if traces:
        handles.append(Line2D([], [], color=MUTED, label="recording"))
    if blocks:
        handles.append(Patch(color=BASE, label="old value"))
        handles.append(Patch(color=CANDIDATE, label="new value"))
    axes.figure.legend(handles=handles, loc="outside upper right", ncols=3, handlelength=1.2)


def _paint_knob(axes: Axes, knob: str, stretches: Sequence[_Stretch]) -> None:
    for stretch in stretches:
        axes.plot([stretch.start, stretch.end], [stretch.value] * 2, color=INK, linewidth=2)
    for before, after in pairwise(stretches):
        x = [before.end, after.start, after.start]
        axes.plot(x, [before.value, before.value, after.value], color=INK, linewidth=0.7)
    values = sorted({stretch.value for stretch in stretches})
    axes.set_yticks(values, [f"{value:g}" for value in values])
    room = (values[-1] - values[0]) * 0.25 or 1.0
    axes.set_ylim(values[0] - room, values[-1] + room)
    label(axes, y=knob)


def _rates(trace: Trace, zero: int) -> tuple[list[float], list[float]]:
    """Minutes and output tokens per second, in whole bins."""
    known = [(s.t_ns, s.output_tokens) for s in trace.steps if s.output_tokens is not None]
    bins = int(trace.duration_s // BIN_S)
    if not known or bins < 1:
        return [], []
    at_s = np.array([(t - trace.start_ns) / 1e9 for t, _ in known])
    edges = np.arange(bins + 1) * BIN_S
    totals, _ = np.histogram(at_s, bins=edges, weights=np.array([float(n) for _, n in known]))
    offset = (trace.start_ns - zero) / 60e9
    minutes = offset + (edges[:-1] + BIN_S / 2) / 60
    return minutes.tolist(), (totals / BIN_S).tolist()


def _values(
    knob: str, traces: Sequence[Trace], trials: Sequence[Trial], zero: int
) -> tuple[_Stretch, ...]:
    found = []
    for trace in traces:
        value = _number(trace.header.knobs, knob)
        if value is not None:
            start, end = ((ns - zero) / 60e9 for ns in (trace.start_ns, trace.end_ns))
            found.append(_Stretch(start=start, end=end, value=value))
    for trial in trials:
        for block in trial.blocks:
            arm = trial.undo if block.arm == "base" else trial.plan.change
            value = _number(arm.knobs, knob)
            if value is not None:
                start, end = _span(block, zero)
                found.append(_Stretch(start=start, end=end, value=value))
    return tuple(sorted(found, key=lambda stretch: stretch.start))


def _number(knobs: Mapping[str, Value], knob: str) -> float | None:
    value = knobs.get(knob)
    return None if value is None or isinstance(value, str) else float(value)


def _span(block: Block, zero: int) -> tuple[float, float]:
    return (block.start_ns - zero) / 60e9, (block.end_ns - zero) / 60e9
