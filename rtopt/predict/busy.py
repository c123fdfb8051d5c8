"""How long each step took on the wall while the engine was busy.

The clock that counts for throughput runs from the end of one step to the end of the next: it holds
the model's run, and the scheduling and output handling between two runs. Three sources, best first:

1. `itl_ms`. vLLM stamps a step's outputs in the engine process, so the shortest time since the
   previous token in a step is exactly the time since the previous step, without the delay of the
   front end. Summed over a busy stretch these add up to the wall time of the stretch.
2. The difference of `t_ns`, when no request that decodes says it. Front-end delay makes single
   values noisy, but it cancels in the sum.
3. `dur_ns` plus the usual gap between `dur_ns` and the wall, for the first step after idleness,
   which has no predecessor. These are the steps that show what a prompt costs on an idle engine.

`dur_ns` alone would miss the time between runs and predict too much throughput.
"""

# ruff: noqa: N802 - the suffix of an array is its shape
# Shapes: N steps.

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from rtopt.cost import StepLoad, load_of
from rtopt.types import Step, Trace

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TimedStep:
    """One step with its work and its wall time."""

    load: StepLoad
    wall_ms: float
    t_ns: int
    has_predecessor: bool
    """The wall time was measured against the step before, not put together from `dur_ns`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BusySteps:
    """The steps of a trace that a fit can use, and how much of its time it cannot."""

    steps: tuple[TimedStep, ...]
    total: int
    """Steps in the trace."""
    unusable_ms: float
    """Time of steps without their work or without a wall time, as far as it is known."""

    @property
    def wall_N(self) -> Vector:
        """Wall time per step, ms."""
        return np.array([step.wall_ms for step in self.steps])


def busy_steps(trace: Trace) -> BusySteps:
    """Find each step's wall time; a step of which it is not known is left out and counted."""
    by_engine: defaultdict[int, list[Step]] = defaultdict(list)
    for step in trace.steps:
        by_engine[step.engine].append(step)
    timed: list[TimedStep] = []
    unusable_ms = 0.0
    for steps in by_engine.values():
        found, lost_ms = _time(sorted(steps, key=lambda step: (step.t_ns, step.index or 0)))
        timed += found
        unusable_ms += lost_ms
    timed.sort(key=lambda step: step.t_ns)
    return BusySteps(steps=tuple(timed), total=len(trace.steps), unusable_ms=unusable_ms)


def merged(*parts: BusySteps) -> BusySteps:
    """The steps of several recordings, in order of time."""
    steps = sorted((step for part in parts for step in part.steps), key=lambda step: step.t_ns)
    return BusySteps(
        steps=tuple(steps),
        total=sum(part.total for part in parts),
        unusable_ms=sum(part.unusable_ms for part in parts),
    )


def _time(steps: Sequence[Step]) -> tuple[list[TimedStep], float]:
    before = [None, *steps[:-1]]
    walls = [_wall_ms(previous, step) for previous, step in zip(before, steps, strict=True)]
    gap_ms = _usual_gap_ms(steps, walls)
    timed, lost_ms = [], 0.0
    for step, wall_ms in zip(steps, walls, strict=True):
        known_ms = wall_ms
        if known_ms is None and step.dur_ns is not None and gap_ms is not None:
            known_ms = step.dur_ns / 1e6 + gap_ms
        load = load_of(step)
        if known_ms is None or known_ms <= 0 or load is None:
            lost_ms += known_ms or (step.dur_ns or 0) / 1e6
            continue
        timed.append(TimedStep(load, known_ms, step.t_ns, wall_ms is not None))
    return timed, lost_ms


def _wall_ms(previous: Step | None, step: Step) -> float | None:
    if previous is None or not _left_busy(previous) or not _follows(previous, step):
        return None
    if step.itl_ms:
        return min(step.itl_ms)
    return (step.t_ns - previous.t_ns) / 1e6


def _left_busy(step: Step) -> bool:
    return bool(step.running) or bool(step.waiting)


def _follows(previous: Step, step: Step) -> bool:
    """False when steps between the two were not kept."""
    if previous.index is None or step.index is None:
        return True
    return step.index == previous.index + 1


def _usual_gap_ms(steps: Sequence[Step], walls: Sequence[float | None]) -> float | None:
    gaps = [
        wall_ms - step.dur_ns / 1e6
        for step, wall_ms in zip(steps, walls, strict=True)
        if wall_ms is not None and step.dur_ns is not None
    ]
    return max(0.0, median(gaps)) if gaps else None
