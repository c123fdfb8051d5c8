"""Reading Prometheus series back from the samples of a trace made without the overlay.

A sample of the source "metrics" holds, per series name, the value summed over the engines; of a
histogram also its buckets. Counters are kept raw: only differences say something.
"""

# in:   vllm:time_to_first_token_seconds_bucket{le="0.1"} 12
#       vllm:time_to_first_token_seconds_bucket{le="+Inf"} 15
# out:  {0.1: 12, inf: 15}     cumulative, as Prometheus keeps it

from itertools import pairwise

from rtopt.types import Sample, Trace


def _samples(trace: Trace) -> list[Sample]:
    return [sample for sample in trace.samples if sample.source == "metrics"]


def _ends(trace: Trace, name: str) -> tuple[Sample, Sample] | None:
    """First and last sample with the series, when it never fell between them (a restart)."""
    having = [sample for sample in _samples(trace) if name in sample.values]
    if len(having) < 2:
        return None
    if any(b.values[name] < a.values[name] for a, b in pairwise(having)):
        return None
    return having[0], having[-1]


def increase(trace: Trace, name: str) -> float | None:
    """By how much a counter grew between the first and the last sample."""
    ends = _ends(trace, name)
    return None if ends is None else ends[1].values[name] - ends[0].values[name]


def rate(trace: Trace, name: str) -> float | None:
    """Growth of a counter per second between the first and the last sample."""
    ends = _ends(trace, name)
    if ends is None or ends[1].t_ns <= ends[0].t_ns:
        return None
    return (ends[1].values[name] - ends[0].values[name]) / ((ends[1].t_ns - ends[0].t_ns) / 1e9)


def gauge_mean(trace: Trace, name: str) -> float | None:
    """Mean of a gauge over the samples that have it."""
    values = [sample.values[name] for sample in _samples(trace) if name in sample.values]
    return sum(values) / len(values) if values else None


def histogram_mean(trace: Trace, name: str) -> float | None:
    """Mean of what a histogram saw in the window, in its own unit."""
    grown = increase(trace, f"{name}_sum")
    count = increase(trace, f"{name}_count")
    return None if grown is None or not count else grown / count


def histogram_quantile(trace: Trace, name: str, q: float) -> float | None:
    """Quantile of what a histogram saw, interpolated within its bucket, in its own unit.

    None when it lies in the last, unbounded bucket: the histogram does not know.

    Source:
        Prometheus 3 documentation, function histogram_quantile.
    """
    buckets = _bucket_increase(trace, name)
    if not buckets or buckets[-1][1] <= 0:
        return None
    rank = q * buckets[-1][1]
    low, below = 0.0, 0.0
    for bound, count in buckets:
        if count >= rank and count > below:
            if bound == float("inf"):
                return None
            return low + (bound - low) * (rank - below) / (count - below)
        low, below = bound, count
    return None


def _bucket_increase(trace: Trace, name: str) -> list[tuple[float, float]]:
    """Upper bound and cumulative growth of each bucket, ascending."""
    samples = _samples(trace)
    prefix = f'{name}_bucket{{le="'
    if not samples:
        return []
    names = [key for key in samples[-1].values if key.startswith(prefix)]
    grown = {float(key[len(prefix) : -2]): increase(trace, key) for key in names}
    if any(value is None for value in grown.values()):
        return []
    return sorted((bound, value) for bound, value in grown.items() if value is not None)
