"""A prediction as a small table of plain text: measured, replayed, and what if."""

from rtopt.metrics import METRICS, measure
from rtopt.types import Estimate, Prediction, Trace

_SHOWN = (
    "throughput",
    "request_rate",
    "itl_mean",
    "itl_p95",
    "ttft_mean",
    "ttft_p95",
    "e2e_mean",
    "e2e_p95",
    "running_mean",
    "waiting_mean",
)


def describe(trace: Trace, now: Prediction, then: Prediction | None = None) -> str:
    """Set the trace, its replay at the present knobs, and a what-if side by side."""
    measured = measure(trace)
    heads = ["", "measured", f"replayed: {_knobs(now)}"]
    if then is not None:
        heads.append(f"what if: {_knobs(then)}")
    rows = [heads]
    for name in _SHOWN:
        if name not in measured and name not in now.metrics:
            continue
        metric = METRICS[name]
        row = [f"{metric.title}{'' if metric.unit == '1' else f', {metric.unit}'}"]
        row.append(f"{measured[name]:.1f}" if name in measured else "-")
        row.append(_cell(now.metrics.get(name)))
        if then is not None:
            row.append(_cell(then.metrics.get(name)))
        rows.append(row)
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    shown = now if then is None else then
    level = next((e.interval.level for e in shown.metrics.values() if e.interval), None)
    if level is not None:
        lines.append(f"In brackets: intervals of {level:.0%}.")
    if shown.refusal is not None:
        lines.append(f"No prediction: {shown.refusal}")
    lines += [f"Assumed: {note}." for note in shown.assumptions]
    return "\n".join(lines)


def _knobs(prediction: Prediction) -> str:
    return ", ".join(f"{name}={value}" for name, value in prediction.knobs.items()) or "as recorded"


def _cell(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    if estimate.interval is None:
        return f"{estimate.value:.1f}"
    return f"{estimate.value:.1f} [{estimate.interval.low:.1f}, {estimate.interval.high:.1f}]"
