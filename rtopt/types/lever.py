"""What could be changed (`Lever`), and one set of new values (`Change`)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rtopt.types.attribution import Cause
from rtopt.types.value import Value

Scope = Literal["live", "restart"]
Risk = Literal["latency", "quality", "memory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """New values for some knobs; `engine.apply` returns the Change that undoes it."""

    lever: str
    """Id of the lever that proposed it, or "undo"."""
    knobs: Mapping[str, Value]
    """Knob name to new value."""
    reason: str
    """One sentence for the report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """Lowest and highest value that cannot stop or kill the engine, both allowed."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a lever may look at."""

    knobs: Mapping[str, Value]
    """Every knob the engine reports: live ones and the start-up limits around them."""
    causes: frozenset[Cause] = frozenset()
    lever: str = ""
    """Id of the lever being asked; stamped on its changes."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """What attribution measured."""

    def change(self, *, reason: str, **knobs: Value) -> Change:
        """Build a Change of this lever."""
        return Change(lever=self.lever, knobs=knobs, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """Data and two pure functions; it never touches the engine."""

    id: str
    title: str
    knobs: tuple[str, ...]
    scope: Scope
    targets: tuple[Cause, ...]
    """Causes that it may be proposed for."""
    never_for: tuple[Cause, ...]
    """Causes that it would make worse; one of them present means it is not proposed."""
    risks: tuple[Risk, ...]
    source: str
    """Where the knob is documented or defined, with the version read."""
    flag: str
    """Start flag that makes a kept value permanent, for example --max-num-seqs."""
    applies: Callable[[Context], str | None]
    """Says why it cannot be used here, or None when it can."""
    envelope: Callable[[Context], Envelope]
    propose: Callable[[Context], Sequence[Change]]
    """Candidate changes, likeliest first."""
