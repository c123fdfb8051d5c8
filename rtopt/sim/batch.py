"""What passes between the simulator and vLLM's scheduler."""

from dataclasses import dataclass
from typing import Any

from rtopt.cost import StepLoad


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One scheduled step, not yet computed."""

    load: StepLoad
    decode_tokens: int
    ids: tuple[str, ...]
    """Requests in it."""
    samples: tuple[bool, ...]
    """Whether each of them makes a token in this step."""
    started: tuple[str, ...]
    """Requests scheduled for the first time."""
    preempted: int
    scheduled: Any
    """vLLM's SchedulerOutput, handed back untouched."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing could be scheduled."""
        return not self.ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One request's token of one step."""

    id: str
    is_finished: bool
    cached_tokens: int | None = None
    """With the first token: prompt tokens found in the prefix cache."""
