"""How much the engine got done per second."""

from collections.abc import Iterable

from rtopt.metrics import series
from rtopt.metrics.metric import Metric
from rtopt.types import Trace

UNFINISHED = frozenset({"abort", "error"})
"""Ways to end that are no answer: such a request counts in no rate and no latency."""


def has_all(trace: Trace, kind: str) -> bool:
    """Whether the window's records of a kind are complete, so that their sum is the total.

    A recording that its size cap ended is complete: its window ends where the records do. A loss
    on the way from the server is counted in lines, which may have been of any kind.
    """
    lost = trace.end.dropped
    return trace.end.reason == "size" or not (lost.get(kind) or lost.get("lines"))


def total(values: Iterable[int | None]) -> int | None:
    """Sum of a field over the steps; None without steps, or when a step did not say."""
    known = list(values)
    if not known:
        return None
    found = [value for value in known if value is not None]
    return sum(found) if len(found) == len(known) else None


def _per_second(trace: Trace, amount: int | None) -> float | None:
    if amount is None or trace.duration_s <= 0:
        return None
    return amount / trace.duration_s


def _throughput(trace: Trace) -> float | None:
    if trace.header.source == "metrics":
        return series.rate(trace, "vllm:generation_tokens_total")
    if not has_all(trace, "step"):
        return None
    return _per_second(trace, total(step.output_tokens for step in trace.steps))


def _prompt_throughput(trace: Trace) -> float | None:
    if trace.header.source == "metrics":
        return _computed_rate(trace)
    if not has_all(trace, "step"):
        return None
    return _per_second(trace, total(step.prefill_tokens for step in trace.steps))


def _computed_rate(trace: Trace) -> float | None:
    """VLLM counts the tokens found in the prefix cache with the prompts; they were not computed."""
    asked = series.rate(trace, "vllm:prompt_tokens_total")
    cached = series.rate(trace, "vllm:prompt_tokens_cached_total")
    return None if asked is None or cached is None else asked - cached


def _request_rate(trace: Trace) -> float | None:
    if trace.header.source == "metrics":
        return series.rate(trace, "vllm:request_success_total")
    if not has_all(trace, "request"):
        return None
    answered = sum(request.finish not in UNFINISHED for request in trace.requests)
    return _per_second(trace, answered or None)


THROUGHPUT = Metric(
    id="throughput",
    title="Output tokens per second",
    unit="tok/s",
    better="higher",
    of=_throughput,
)
PROMPT_THROUGHPUT = Metric(
    id="prompt_throughput",
    title="Prompt tokens computed per second",
    unit="tok/s",
    better="higher",
    of=_prompt_throughput,
)
REQUEST_RATE = Metric(
    id="request_rate",
    title="Requests finished per second",
    unit="1/s",
    better="higher",
    of=_request_rate,
)
