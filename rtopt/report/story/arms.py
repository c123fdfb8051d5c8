"""Means over the blocks of a trial: the numbers that before and after are told with."""

from collections.abc import Iterable

from rtopt.types import Arm, Trial


def mean(trial: Trial, arm: Arm, metric: str) -> float | None:
    """Mean of a metric over the arm's blocks in complete pairs; None without data."""
    values = [
        block.metrics[metric]
        for pair in pairs(trial)
        for block in trial.blocks
        if block.pair == pair and block.arm == arm and metric in block.metrics
    ]
    return sum(values) / len(values) if values else None


def pairs(trial: Trial) -> tuple[int, ...]:
    """Numbers of the pairs with both arms measured."""
    both = _of(trial, "base") & _of(trial, "candidate")
    return tuple(sorted(both))


def exposed(trials: Iterable[Trial]) -> tuple[int, int]:
    """Requests that finished with a change on trial, and all that finished in blocks."""
    found = [block for trial in trials for block in trial.blocks]
    candidate = sum(block.requests for block in found if block.arm == "candidate")
    return candidate, sum(block.requests for block in found)


def _of(trial: Trial, arm: Arm) -> set[int]:
    return {block.pair for block in trial.blocks if block.arm == arm}
