"""How sure a number from consecutive steps is."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtopt.errors import EvidenceError

BLOCKS = 10
"""Consecutive steps resemble each other; ten long stretches of them hardly do."""
T_975 = 2.262
"""Student's t, 9 degrees of freedom, two-sided 95 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


def jackknife(of: Callable[[NDArray[np.intp]], float], n: int) -> Spread:
    """Value over all rows, with the interval from leaving one of ten stretches out at a time.

    Args:
        of: The value for the rows with the given indices, which are in the order of time.
        n: Rows.

    Raises:
        EvidenceError: Fewer than three rows per stretch.

    Source:
        Kuensch. Annals of Statistics 17(3), 1989, pp. 1217-1241 (block jackknife).
    """
    if n < 3 * BLOCKS:
        raise EvidenceError(f"{n} steps with data, at least {3 * BLOCKS} wanted", steps=n)
    rows = np.arange(n)
    value = of(rows)
    left_out = [of(np.setdiff1d(rows, block)) for block in np.array_split(rows, BLOCKS)]
    sd = float(np.sqrt((BLOCKS - 1) / BLOCKS * np.sum((np.array(left_out) - value) ** 2)))
    half = T_975 * sd
    return Spread(value=value, low=value - half, high=value + half)
