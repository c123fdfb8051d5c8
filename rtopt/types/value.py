"""The plain values that knobs and measurements take."""

from dataclasses import dataclass
from typing import Literal

Value = bool | int | float | str

Origin = Literal["spec", "seed", "proxy", "observed"]
"""Where a number came from, weakest first: data sheet, shipped default, stand-in, measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An interval that covers the true value with probability `level`."""

    low: float
    high: float
    level: float
    """In 0..1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number, how sure we are of it, and where it came from."""

    value: float
    interval: Interval | None = None
    """Absent when there were too few data to give one."""
    origin: Origin = "observed"
