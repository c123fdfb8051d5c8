"""The layer's period in a sequence of signatures: what repeats, from where, how often.

A model runs its layers one after the other, so the work of a step repeats at the distance of one
layer. Hybrid models repeat at a multiple of it: `unit` is one layer, `length` what repeats.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rtopt.profile.ops.spans import Ids, Span, find_spans

MIN_MATCH_FRAC: Final = 0.5
"""Share of positions that must be equal at the shift; below it nothing repeats."""
HYBRID_GAIN: Final = 1.5
"""How much further an unbroken run must reach at a multiple of the shift, to be the period."""
SAME_FRAC: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """What repeats in a sequence."""

    length: int
    unit: int
    """Shift with the most matches; `length` is a multiple of it."""
    match_frac: float
    """Share of positions that are equal at the shift `unit`."""
    longest_run: int
    """Positions that an unbroken run of matches at the shift `length` covers."""
    spans: tuple[Span, ...]
    """In order, at least one; what lies before the first and after the last is prefix and
    suffix."""

    @property
    def begin(self) -> int:
        """Where the first repetition begins."""
        return self.spans[0].begin

    @property
    def end(self) -> int:
        """Where the last repetition ends."""
        return self.spans[-1].end

    @property
    def layers(self) -> int:
        """Layers of the model: a period of a hybrid model holds several."""
        return len(self.spans) * (self.length // self.unit)


def find_period(signatures: Sequence[Hashable]) -> Period | None:
    """Find what repeats; None when nothing does."""
    numbers: dict[Hashable, int] = {}
    ids = np.array([numbers.setdefault(s, len(numbers)) for s in signatures], dtype=np.int64)
    if len(ids) < 2:
        return None
    matches = [int(np.count_nonzero(ids[:-p] == ids[p:])) for p in range(1, len(ids) // 2 + 1)]
    unit = 1 + int(np.argmax(matches))
    match_frac = matches[unit - 1] / (len(ids) - unit)
    if match_frac < MIN_MATCH_FRAC:
        return None
    length, first, covered = _longest(ids, unit)
    if covered < 2 * length:
        return None
    return Period(
        length=length,
        unit=unit,
        match_frac=match_frac,
        longest_run=covered,
        spans=find_spans(ids, first, length),
    )


def _longest(ids: Ids, unit: int) -> tuple[int, int, int]:
    """Period, start and reach: the unit's, or the shortest multiple's that reaches much further."""
    runs = {p: _run(ids, p) for p in range(unit, len(ids) // 2 + 1, unit)}
    # A run shorter than two repetitions repeats nothing, however long the shift is.
    reach = {p: run for p, run in runs.items() if p == unit or run[1] >= 2 * p}
    furthest = max(covered for _, covered in reach.values())
    if furthest < HYBRID_GAIN * reach[unit][1]:
        return unit, *reach[unit]
    length = min(p for p, (_, covered) in reach.items() if covered >= SAME_FRAC * furthest)
    return length, *reach[length]


def _run(ids: Ids, shift: int) -> tuple[int, int]:
    """Start of the longest run of matches at the shift, and how many positions it covers."""
    breaks = np.flatnonzero(ids[:-shift] != ids[shift:])
    edges = np.concatenate(([-1], breaks, [len(ids) - shift]))
    lengths = np.diff(edges) - 1
    best = int(np.argmax(lengths))
    return int(edges[best]) + 1, int(lengths[best]) + shift
