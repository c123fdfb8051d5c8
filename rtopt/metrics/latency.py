"""How long people wait: for the first token, between tokens, for the whole answer.

Percentiles interpolate linearly between the two nearest values. A trace that was made from
Prometheus histograms gives exact means; its percentiles are interpolated within a bucket.
"""

from collections.abc import Callable

import numpy as np

from rtopt.metrics import series
from rtopt.metrics.metric import Metric
from rtopt.metrics.throughput import UNFINISHED
from rtopt.types import Trace

_Pick = Callable[[Trace], list[float]]

ITL_HISTOGRAM = "vllm:inter_token_latency_seconds"
TTFT_HISTOGRAM = "vllm:time_to_first_token_seconds"
E2E_HISTOGRAM = "vllm:e2e_request_latency_seconds"


def _itl(trace: Trace) -> list[float]:
    return [value for step in trace.steps for value in step.itl_ms]


def _ttft(trace: Trace) -> list[float]:
    return [value for step in trace.steps for value in step.ttft_ms]


def _e2e(trace: Trace) -> list[float]:
    return [r.e2e_ms for r in trace.requests if r.finish not in UNFINISHED]


def _mean(pick: _Pick, histogram: str) -> Callable[[Trace], float | None]:
    def of(trace: Trace) -> float | None:
        if trace.header.source == "metrics":
            mean_s = series.histogram_mean(trace, histogram)
            return None if mean_s is None else mean_s * 1e3
        values = pick(trace)
        return float(np.mean(values)) if values else None

    return of


def _quantile(pick: _Pick, histogram: str, q: float) -> Callable[[Trace], float | None]:
    def of(trace: Trace) -> float | None:
        if trace.header.source == "metrics":
            value_s = series.histogram_quantile(trace, histogram, q)
            return None if value_s is None else value_s * 1e3
        values = pick(trace)
        return float(np.quantile(values, q)) if values else None

    return of


def _metric(id_: str, title: str, of: Callable[[Trace], float | None]) -> Metric:
    return Metric(id=id_, title=title, unit="ms", better="lower", of=of)


ITL_MEAN = _metric("itl_mean", "Mean time between tokens", _mean(_itl, ITL_HISTOGRAM))
ITL_P50 = _metric("itl_p50", "Median time between tokens", _quantile(_itl, ITL_HISTOGRAM, 0.5))
ITL_P95 = _metric(
    "itl_p95", "95th percentile of time between tokens", _quantile(_itl, ITL_HISTOGRAM, 0.95)
)
ITL_P99 = _metric(
    "itl_p99", "99th percentile of time between tokens", _quantile(_itl, ITL_HISTOGRAM, 0.99)
)
TTFT_MEAN = _metric("ttft_mean", "Mean time to first token", _mean(_ttft, TTFT_HISTOGRAM))
TTFT_P50 = _metric("ttft_p50", "Median time to first token", _quantile(_ttft, TTFT_HISTOGRAM, 0.5))
TTFT_P95 = _metric(
    "ttft_p95", "95th percentile of time to first token", _quantile(_ttft, TTFT_HISTOGRAM, 0.95)
)
TTFT_P99 = _metric(
    "ttft_p99", "99th percentile of time to first token", _quantile(_ttft, TTFT_HISTOGRAM, 0.99)
)
E2E_MEAN = _metric("e2e_mean", "Mean time per request", _mean(_e2e, E2E_HISTOGRAM))
E2E_P95 = _metric(
    "e2e_p95", "95th percentile of time per request", _quantile(_e2e, E2E_HISTOGRAM, 0.95)
)
E2E_P99 = _metric(
    "e2e_p99", "99th percentile of time per request", _quantile(_e2e, E2E_HISTOGRAM, 0.99)
)
