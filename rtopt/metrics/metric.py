"""One thing to measure of a trace."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from rtopt.types import Trace

Better = Literal["higher", "lower"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What it is called, which way is better, and how to get it from a trace."""

    id: str
    title: str
    unit: str
    better: Better
    of: Callable[[Trace], float | None]
    """Its value over the trace's window, or None when the trace has no data for it."""
