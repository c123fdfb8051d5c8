"""Drawing how long each step takes: the mean for its work, times a recorded deviation."""

from collections.abc import Callable, Mapping

import numpy as np

from rtopt.cost import StepLoad, StepTime
from rtopt.types import Value

Effect = Callable[[Mapping[str, Value]], float]
"""Knobs to a factor on the step time; the known truth in tests of the gate."""

RUN = 16
"""Deviations are drawn in runs of so many consecutive steps, so that slow spells stay together."""


class Durations:
    """A seeded stream of step durations.

    Source:
        Moving-block bootstrap: Kuensch. Annals of Statistics 17(3), 1989, pp. 1217-1241.
    """

    def __init__(self, step_time: StepTime, *, seed: int, effect: Effect | None) -> None:
        self._step_time = step_time
        self._effect = effect
        self._rng = np.random.default_rng(seed)
        self._run: list[float] = []

    def next_ns(self, load: StepLoad, knobs: Mapping[str, Value]) -> int:
        """Draw the duration of a step with this work."""
        if not self._run:
            residuals = self._step_time.residuals
            start = int(self._rng.integers(len(residuals)))
            length = min(RUN, len(residuals))
            self._run = [residuals[(start + i) % len(residuals)] for i in range(length)][::-1]
        factor = self._run.pop() * (self._effect(knobs) if self._effect else 1.0)
        return max(1, round(self._step_time.mean_ms(load) * factor * 1e6))
