"""Looking up and computing the metrics of a table."""

from collections.abc import Mapping

from rtopt.errors import UsageError
from rtopt.metrics.metric import Metric
from rtopt.types import Trace


def lookup(table: Mapping[str, Metric], name: str) -> Metric:
    """Give the metric of this name, or an error that lists the known ones."""
    if name not in table:
        known = ", ".join(table)
        raise UsageError(
            f"metric {name!r} is unknown. Known: {known}.", name=name, known=tuple(table)
        )
    return table[name]


def values(table: Mapping[str, Metric], trace: Trace) -> dict[str, float]:
    """Every metric that the trace has data for."""
    measured = ((metric.id, metric.of(trace)) for metric in table.values())
    return {name: value for name, value in measured if value is not None}
