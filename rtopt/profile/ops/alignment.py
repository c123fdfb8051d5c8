"""Monotone alignment of two sequences: the longest common subsequence."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.int32]
"""Most pairs between the first i entries of one sequence and the first j of the other."""


def align(found: Sequence[Hashable], known: Sequence[Hashable]) -> tuple[tuple[int, int], ...]:
    """Pairs of positions with equal entries, both rising, as many as there can be."""
    return pairs_of(most_pairs(found, known), len(found))


def most_pairs(found: Sequence[Hashable], known: Sequence[Hashable]) -> Table:
    """How many pairs there can be between the beginnings of both."""
    numbers: dict[Hashable, int] = {}
    rows = np.array([numbers.setdefault(s, len(numbers)) for s in found], dtype=np.int64)
    columns = np.array([numbers.setdefault(s, len(numbers)) for s in known], dtype=np.int64)
    best = np.zeros((len(rows) + 1, len(columns) + 1), dtype=np.int32)
    for i, row in enumerate(rows):
        step = np.maximum(best[i, 1:], best[i, :-1] + (columns == row))
        best[i + 1, 1:] = np.maximum.accumulate(step)
    return best


def pairs_of(best: Table, i: int) -> tuple[tuple[int, int], ...]:
    """The pairs themselves, between the first i entries of one sequence and all of the other."""
    pairs = []
    j = best.shape[1] - 1
    while i and j:
        if best[i, j] == best[i - 1, j]:
            i -= 1
        elif best[i, j] == best[i, j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((i, j))
    return tuple(reversed(pairs))
