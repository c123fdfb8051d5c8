"""What a running engine says about itself, and the four things an engine can be asked."""

from dataclasses import dataclass
from typing import Protocol

from rtopt.types.lever import Change
from rtopt.types.trace import EngineInfo, Trace
from rtopt.types.value import Value
from rtopt.types.workload import Load


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """One setting that can move while the engine runs."""

    name: str
    value: Value
    """Effective now."""
    start: Value
    """At start-up."""
    snapshot: Value
    """What a restore returns to: start-up, or the last committed value."""
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Who holds the engine, and for how long without a renewal."""

    holder: str
    remaining_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineState:
    """An engine at one moment."""

    info: EngineInfo
    knobs: tuple[Knob, ...]
    boot: str
    """Random id of this start of the engine; another value means it was restarted."""
    held: Held | None = None
    read_only: str | None = None
    """Why nothing can be changed, or None."""
    running: int | None = None
    waiting: int | None = None

    def values(self) -> dict[str, Value]:
        """Live knobs and start-up limits by name: what `Context.knobs` shows a lever."""
        limits = {k: v for k, v in self.info.config.items() if v is not None}
        return {**limits, **{k.name: k.value for k in self.knobs}}


class Engine(Protocol):
    """A vLLM engine, live or replayed."""

    def state(self) -> EngineState:
        """Read everything about the engine, now."""
        ...

    def apply(self, change: Change) -> Change:
        """Put the change on trial, under the engine's lease; return the Change that undoes it.

        Raises:
            KnobError: unknown knob, or a value outside floor and ceiling. Nothing was changed.
            HeldError: another controller holds the engine.
            EngineError: unreachable, read-only, or the value read back differs.
        """
        ...

    def settle(self, *, keep: bool) -> EngineState:
        """End the trial: commit the present values as the new snapshot, or restore the snapshot.

        Raises:
            UndoError: a restore did not take; the message names the values that stand.
        """
        ...

    def record(
        self, duration_s: float, *, load: Load | None = None, max_requests: int | None = None
    ) -> Trace:
        """Record steps and requests for so long, and wait for it.

        A recording that was interrupted or cut off keeps what it has; `End.reason` says so.

        Args:
            duration_s: Longest time to record, in seconds.
            load: How the traffic is offered, as its owner states it; kept in the header.
            max_requests: End earlier, once so many requests have finished.
        """
        ...
