"""How requests ended."""

from rtopt.metrics.metric import Metric
from rtopt.types import Trace


def _errors(trace: Trace) -> float | None:
    """Count requests that ended in an error; vLLM's own counters do not tell, so not from those."""
    if not trace.requests:
        return None
    return float(sum(request.finish == "error" for request in trace.requests))


ERRORS = Metric(
    id="errors", title="Requests that ended in an error", unit="1", better="lower", of=_errors
)
