"""The repetitions of a period in a sequence, one after the other, also where one is not exact."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rtopt.profile.ops.alignment import most_pairs, pairs_of

Ids = NDArray[np.int64]

MIN_LAYER_FRAC: Final = 0.8
"""Share of the template that a layer must hold, in order."""
STARTS: Final = 8
"""Starts inside a layer that are tried."""
NEXT_BONUS: Final = 0.75
"""Pairs that a beginning of the next layer is worth: more than the half that a lost op costs, less
than a pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One repetition, as positions in the sequence."""

    begin: int
    end: int
    places: tuple[tuple[int, int], ...]
    """Position in the sequence and in the template, of what matches; both rise."""


def find_spans(ids: Ids, first: int, length: int) -> tuple[Span, ...]:
    """All repetitions around a run of two or more, from as early as one can begin."""
    template = ids[first : first + length]
    begins = [first]
    while (earlier := _before(ids, template, begins[-1])) is not None:
        begins.append(earlier)
    # A run that noise cut short may begin amid a layer, and what was found first may be a part of
    # one. The start from which most layers are found is right.
    found = [_chain(ids, template, first)]
    for begin in begins[-2:]:
        turns = [_equal_before(ids, template, begin), *range(0, length, max(1, length // STARTS))]
        found += [_chain(ids, np.roll(template, t), begin - t) for t in turns if t <= begin]
    return max(found, key=lambda spans: (len(spans), sum(len(s.places) for s in spans)))


def _equal_before(ids: Ids, template: Ids, begin: int) -> int:
    """How many positions right before the first repetition equal the template's end."""
    most = min(begin, len(template) - 1)
    differs = ids[begin - most : begin][::-1] != template[::-1][:most]
    return int(np.argmax(differs)) if differs.any() else most


def _chain(ids: Ids, template: Ids, at: int) -> tuple[Span, ...]:
    """Repetitions one after the other from a position."""
    spans = []
    while (span := _after(ids, template, at)) is not None:
        spans.append(span)
        at = span.end
    return tuple(spans)


def _after(ids: Ids, template: Ids, at: int) -> Span | None:
    """The repetition that begins at a position."""
    length = len(template)
    here = ids[at : at + length]
    if np.array_equal(here, template):
        places = tuple((at + i, i) for i in range(length))
        return Span(begin=at, end=at + length, places=places)
    wider = ids[at : at + length + max(2, length // 4)]
    best = most_pairs(wider.tolist(), template.tolist())
    # A layer that lost an op must not reach for one of the next, which begins as this one did.
    sizes = np.arange(len(wider) + 1)
    begins_next = np.isin(at + sizes, np.flatnonzero(ids == template[0]))
    score = best[:, -1] - np.abs(sizes - length) / 2 + begins_next * NEXT_BONUS
    size = int(np.argmax(score))
    if best[size, -1] < MIN_LAYER_FRAC * length:
        return None
    places = tuple((at + i, j) for i, j in pairs_of(best, size))
    return Span(begin=at, end=at + size, places=places)


def _before(ids: Ids, template: Ids, at: int) -> int | None:
    """Start of the repetition that ends at a position."""
    mirrored = _after(ids[:at][::-1], template[::-1], 0)
    return None if mirrored is None else at - mirrored.end
