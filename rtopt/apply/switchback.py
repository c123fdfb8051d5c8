"""The order of the arms: a fair coin per pair, drawn from the seed that the plan fixes.

The coin makes the pair difference symmetric under "the change does nothing", whatever else drifts.

Source:
    Bojinov, Simchi-Levi, Zhao. arXiv 2009.00148 (design and analysis of switchback experiments).
"""

from collections.abc import Iterator

import numpy as np

from rtopt.types import Arm


def order(seed: int, pair: int) -> tuple[Arm, Arm]:
    """Which arm goes first in this pair; the same for the same seed."""
    heads = bool(np.random.default_rng([seed, pair]).integers(2))
    return ("candidate", "base") if heads else ("base", "candidate")


def arms(seed: int, max_pairs: int) -> Iterator[tuple[int, Arm]]:
    """Every block of a trial: its pair, counted from 0, and its arm."""
    for pair in range(max_pairs):
        for arm in order(seed, pair):
            yield pair, arm
