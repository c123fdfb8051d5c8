"""How full the engine is: requests running and waiting, KV blocks, preemptions.

Means are over time: a step's value holds until the same engine's next step. Several engines add
up for counts; for fractions their mean is taken.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

from rtopt.metrics import series
from rtopt.metrics.metric import Metric
from rtopt.metrics.throughput import has_all, total
from rtopt.types import Step, Trace

_Field = Callable[[Step], float | None]


def _engine_mean(steps: Sequence[Step], field: _Field, end_ns: int) -> float | None:
    """Mean over time of one engine's field, from its first step that has it to the window's end."""
    known = [(step.t_ns, value) for step in steps if (value := field(step)) is not None]
    if not known:
        return None
    ends = [t_ns for t_ns, _ in known[1:]] + [end_ns]
    weighted = [
        (max(0, until - t_ns), value) for (t_ns, value), until in zip(known, ends, strict=True)
    ]
    span = sum(weight for weight, _ in weighted)
    if span == 0:
        return known[-1][1]
    return sum(weight * value for weight, value in weighted) / span


def _means(trace: Trace, field: _Field) -> list[float]:
    """Mean over time of the field, per engine that has it."""
    by_engine: defaultdict[int, list[Step]] = defaultdict(list)
    for step in sorted(trace.steps, key=lambda step: step.t_ns):
        by_engine[step.engine].append(step)
    means = (_engine_mean(steps, field, trace.end_ns) for steps in by_engine.values())
    return [mean for mean in means if mean is not None]


def _running(trace: Trace) -> float | None:
    if trace.header.source == "metrics":
        return series.gauge_mean(trace, "vllm:num_requests_running")
    means = _means(trace, lambda step: step.running)
    return sum(means) if means else None


def _waiting(trace: Trace) -> float | None:
    if trace.header.source == "metrics":
        return series.gauge_mean(trace, "vllm:num_requests_waiting")
    means = _means(trace, lambda step: step.waiting)
    return sum(means) if means else None


def _kv(trace: Trace) -> float | None:
    if trace.header.source == "metrics":
        return series.gauge_mean(trace, "vllm:kv_cache_usage_perc")
    means = _means(trace, lambda step: step.kv_frac)
    return sum(means) / len(means) if means else None


def _preemptions(trace: Trace) -> float | None:
    if trace.header.source == "metrics":
        return series.increase(trace, "vllm:num_preemptions_total")
    count = total(step.preempted for step in trace.steps) if has_all(trace, "step") else None
    return None if count is None else float(count)


RUNNING_MEAN = Metric(
    id="running_mean", title="Requests running", unit="1", better="higher", of=_running
)
WAITING_MEAN = Metric(
    id="waiting_mean", title="Requests waiting", unit="1", better="lower", of=_waiting
)
KV_MEAN = Metric(id="kv_mean", title="KV blocks in use", unit="frac", better="lower", of=_kv)
PREEMPTIONS = Metric(
    id="preemptions",
    title="Requests thrown out and computed again",
    unit="1",
    better="lower",
    of=_preemptions,
)
