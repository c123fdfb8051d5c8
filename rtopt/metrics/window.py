"""Cutting a shorter window out of a trace."""

from dataclasses import replace

from rtopt.errors import UsageError
from rtopt.types import Trace, Value


def cut(trace: Trace, start_ns: int, end_ns: int) -> Trace:
    """Keep what happened after `start_ns` and up to `end_ns`, both within the trace's window.

    Requests count where they finished. A moment outside the trace's window means its edge.

    Raises:
        UsageError: Nothing of the trace lies between the two.
    """
    start, end = max(start_ns, trace.start_ns), min(end_ns, trace.end_ns)
    if start >= end:
        raise UsageError(
            f"cut from {start_ns} to {end_ns} ns: nothing lies between"
            f" (the trace covers {trace.start_ns} to {trace.end_ns} ns)."
        )
    knobs: dict[str, Value] = dict(trace.header.knobs)
    for mark in sorted(trace.marks, key=lambda mark: mark.t_ns):
        if mark.t_ns <= start:
            knobs.update(mark.knobs)
    edges = {"start": start == trace.start_ns, "end": end == trace.end_ns}
    return replace(
        trace,
        header=replace(trace.header, start_ns=start, knobs=knobs),
        end=replace(trace.end, end_ns=end),
        steps=tuple(step for step in trace.steps if start < step.t_ns <= end),
        requests=tuple(r for r in trace.requests if start < r.finished_ns <= end),
        in_flight=tuple(item for item in trace.in_flight if edges[item.edge]),
        marks=tuple(mark for mark in trace.marks if start < mark.t_ns <= end),
        samples=tuple(sample for sample in trace.samples if start < sample.t_ns <= end),
    )
