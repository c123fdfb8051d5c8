"""What is measured of a trace: one `Metric` constant each, and the table of all of them."""

from rtopt.metrics.latency import (
    E2E_MEAN,
    E2E_P95,
    E2E_P99,
    ITL_MEAN,
    ITL_P50,
    ITL_P95,
    ITL_P99,
    TTFT_MEAN,
    TTFT_P50,
    TTFT_P95,
    TTFT_P99,
)
from rtopt.metrics.metric import Better, Metric
from rtopt.metrics.outcome import ERRORS
from rtopt.metrics.queue import KV_MEAN, PREEMPTIONS, RUNNING_MEAN, WAITING_MEAN
from rtopt.metrics.table import lookup, values
from rtopt.metrics.throughput import PROMPT_THROUGHPUT, REQUEST_RATE, THROUGHPUT
from rtopt.metrics.window import cut
from rtopt.types import Trace

METRICS: dict[str, Metric] = {
    metric.id: metric
    for metric in (
        THROUGHPUT,
        PROMPT_THROUGHPUT,
        REQUEST_RATE,
        ITL_MEAN,
        ITL_P50,
        ITL_P95,
        ITL_P99,
        TTFT_MEAN,
        TTFT_P50,
        TTFT_P95,
        TTFT_P99,
        E2E_MEAN,
        E2E_P95,
        E2E_P99,
        RUNNING_MEAN,
        WAITING_MEAN,
        KV_MEAN,
        PREEMPTIONS,
        ERRORS,
    )
}
"""Every metric by its id."""


def get(id: str) -> Metric:  # noqa: A002 - the field it looks up has this name
    """Look a metric up by its id.

    Raises:
        UsageError: Unknown; the message lists the known ones.
    """
    return lookup(METRICS, id)


def measure(trace: Trace) -> dict[str, float]:
    """Measure everything; a metric without data is not in the answer."""
    return values(METRICS, trace)


__all__ = ["METRICS", "Better", "Metric", "cut", "get", "measure"]
