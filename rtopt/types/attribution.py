"""Why the engine is as fast as it is: causes with their evidence, or an abstention."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rtopt.types.value import Estimate


class Cause(StrEnum):
    """The only vocabulary of causes; levers, diagnosis and report use it."""

    SLOTS_FULL = "slots_full"
    """Requests wait because the cap on active sequences is reached."""
    TOKEN_BUDGET_FULL = "token_budget_full"
    """Requests wait because a step's token budget is used up."""
    KV_CAPACITY = "kv_capacity"
    """KV blocks are the limit."""
    PREEMPTION = "preemption"
    """Running requests are thrown out and computed again."""
    QUEUE_GROWING = "queue_growing"
    """More arrives than is finished."""
    LONG_PREFILL = "long_prefill"
    """Long prompts in the same step hold decoding requests up."""
    COMPUTE = "compute"
    """The model's run itself takes the time: another sequence adds about its full cost."""
    HOST_GAP = "host_gap"
    """Time passes between steps although there is work."""
    LOAD_TOO_LOW = "load_too_low"
    """The engine could do more; nobody asks."""

    @property
    def label(self) -> str:
        """A few words for a person, lower case."""
        return _LABELS[self]


_LABELS: Mapping[Cause, str] = {
    Cause.SLOTS_FULL: "every slot is taken",
    Cause.TOKEN_BUDGET_FULL: "the token budget of a step is used up",
    Cause.KV_CAPACITY: "KV memory is full",
    Cause.PREEMPTION: "running requests are thrown out",
    Cause.QUEUE_GROWING: "the queue is growing",
    Cause.LONG_PREFILL: "long prompts hold decoding up",
    Cause.COMPUTE: "the model's run takes the time",
    Cause.HOST_GAP: "time is lost between steps",
    Cause.LOAD_TOO_LOW: "the offered load is low",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One number, and what it says about a cause."""

    measure: str
    value: float
    unit: str
    threshold: float | None = None
    supports: bool = True
    """False: it speaks against the cause."""
    text: str = ""
    """One sentence for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One cause with everything for and against it."""

    cause: Cause
    share: float
    """Share of the window in which its condition held, 0..1."""
    evidence: tuple[Evidence, ...]
    effect: Estimate | None = None
    """Size of its effect, when a method that can size it has run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """Causes, likeliest first, or the reason why none is named."""

    method: str
    findings: tuple[Finding, ...] = ()
    abstained: str | None = None
    """Why no cause is named; then `findings` is empty."""
    considered: tuple[Finding, ...] = ()
    """Causes that were checked and not named, with the evidence against them."""
    absent: Mapping[Cause, str] = field(default_factory=dict)
    """Causes that could not be checked, and why."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """Every number that the rules used."""
    unexplained_frac: float | None = None

    @property
    def causes(self) -> frozenset[Cause]:
        """The named causes."""
        return frozenset(f.cause for f in self.findings)
