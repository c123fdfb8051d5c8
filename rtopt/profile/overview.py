"""A recording in a few rows for a person."""

from collections.abc import Iterator
from statistics import fmean

from rtopt.metrics import METRICS, measure
from rtopt.types import Trace

Row = tuple[str, str, str]
"""Label, value, unit."""

SHOWN = (
    "throughput",
    "request_rate",
    "itl_mean",
    "itl_p95",
    "ttft_mean",
    "ttft_p95",
    "e2e_mean",
    "running_mean",
    "waiting_mean",
    "kv_mean",
    "preemptions",
    "errors",
)
STATE = (
    ("cpu", "util_frac", "Processors busy"),
    ("cpu", "steal_frac", "Processor time stolen by other machines"),
    ("nvidia:0", "util_frac", "Device 0 busy"),
    ("nvidia:0", "power_w", "Device 0 power"),
)


def summary(trace: Trace) -> tuple[Row, ...]:
    """What was recorded, what it shows, and what is missing."""
    return (*_about(trace), *_measured(trace), *_state(trace), *_missing(trace))


def _about(trace: Trace) -> Iterator[Row]:
    engine = trace.header.engine
    yield "Engine", f"{engine.name} {engine.version}, {engine.model}", ""
    yield "Recorded through", trace.header.source, ""
    yield "Length", f"{trace.duration_s:.1f}", "s"
    yield "Ended by", trace.end.reason, ""
    if trace.header.source != "metrics":
        yield "Steps", str(len(trace.steps)), ""
        yield "Requests finished", str(len(trace.requests)), ""
    yield "Readings of state", str(len(trace.samples)), ""


def _measured(trace: Trace) -> Iterator[Row]:
    values = measure(trace)
    for name in SHOWN:
        if name in values:
            yield METRICS[name].title, *_amount(values[name], METRICS[name].unit)


def _state(trace: Trace) -> Iterator[Row]:
    for source, name, label in STATE:
        read = [s.values[name] for s in trace.samples if s.source == source and name in s.values]
        if read:
            yield label, *_amount(fmean(read), "W" if name.endswith("_w") else "frac")


def _missing(trace: Trace) -> Iterator[Row]:
    for kind, count in trace.end.dropped.items():
        yield f"Not kept: {kind}", str(count), "records"
    for source, count in trace.end.failed_reads.items():
        yield f"Failed readings: {source}", str(count), ""
    for note in trace.notes:
        yield "Note", note, ""


def _amount(value: float, unit: str) -> tuple[str, str]:
    """A number as a person reads it: shares in per cent, counts without a unit."""
    if unit == "frac":
        return f"{value * 100:.1f}", "%"
    return f"{value:.4g}" if value < 1000 else f"{value:.0f}", "" if unit == "1" else unit
