"""Splitting host events at the engine's steps, by the annotation that vLLM puts around each.

`execute_context_0(0)_generation_4(4)`, or with detailed annotations
`execute_4_context_0(sq0sk0sqsq0sqsk0)_generation_4(sq4sk148sqsq4sqsk148)`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from rtopt.profile.ops.nesting import by_thread, outermost
from rtopt.types import HostEvent

ANNOTATION: Final = re.compile(r"execute_(?:\d+_)?context_\d+\([^)]*\)_generation_\d+\([^)]*\)")
"""Source: vLLM 0.32, v1/worker/gpu_worker.py, `annotate_profile`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOps:
    """One step as a host thread saw it."""

    window: HostEvent
    """The annotation."""
    index: int
    """The engine's number of the step, or its place among the steps found."""
    ops: tuple[HostEvent, ...]
    """Outermost ops inside the annotation, on its thread, in order."""


def split(host: Iterable[HostEvent]) -> tuple[StepOps, ...]:
    """Every annotated step of every rank, in order of time."""
    steps = []
    for events in by_thread(host):
        windows = [e for e in events if is_step(e)]
        ops = iter(outermost(e for e in events if e.what == "op"))
        op = next(ops, None)
        for window in windows:
            inside = []
            while op is not None and op.t_ns < window.t_ns + window.dur_ns:
                if window.t_ns <= op.t_ns:
                    inside.append(op)
                op = next(ops, None)
            steps.append((window, tuple(inside)))
    steps.sort(key=lambda step: step[0].t_ns)
    seen: dict[int | None, int] = {}
    made = []
    for window, inside_ops in steps:
        place = seen[window.rank] = seen.get(window.rank, -1) + 1
        index = place if window.step is None else window.step
        made.append(StepOps(window=window, index=index, ops=inside_ops))
    return tuple(made)


def is_step(event: HostEvent) -> bool:
    """Whether it is the annotation around a step."""
    return event.what == "range" and ANNOTATION.fullmatch(event.name) is not None
