"""Where the time of a step of the host went: op by op, by class, and the gaps between ops."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rtopt.errors import EvidenceError
from rtopt.profile.ops.classes import OpClass, class_of
from rtopt.profile.ops.coverage import check_frac
from rtopt.profile.ops.period import Period, find_period
from rtopt.profile.ops.steps import StepOps
from rtopt.types import HostEvent

Part = Literal["before", "layer", "after"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedOp:
    """An outermost op, with its class and its place in the model."""

    op: HostEvent
    part: Part | None
    """None: no period was found."""
    op_class: OpClass | None
    """None: the op's name is not known."""
    is_matched: bool
    """Known, and inside the layers also at the place where the layer has such an op."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One step, whose parts add up to it."""

    step: StepOps
    period: Period | None
    ops: tuple[PlacedOp, ...]
    gap_ns: int
    """Between ops: Python and dispatch."""

    @property
    def op_ns(self) -> int:
        """Time in ops."""
        return sum(placed.op.dur_ns for placed in self.ops)

    @property
    def unmatched_ns(self) -> int:
        """Time in ops that are not matched."""
        return sum(placed.op.dur_ns for placed in self.ops if not placed.is_matched)

    @property
    def unmatched_frac(self) -> float | None:
        """Share of the ops' time that is not matched; None without any."""
        return self.unmatched_ns / self.op_ns if self.op_ns else None


def account(step: StepOps) -> Account:
    """Place the ops of a step."""
    period = find_period([signature(op) for op in step.ops])
    placed = {i for span in period.spans for i, _ in span.places} if period else set()
    return Account(
        step=step,
        period=period,
        ops=tuple(_place(op, at, period, at in placed) for at, op in enumerate(step.ops)),
        gap_ns=_gap_ns(step),
    )


def signature(op: HostEvent) -> tuple[object, ...]:
    """What an op has in common with the same op of another layer."""
    return op.name, op.dims


def check_matched(accounts: Sequence[Account]) -> float:
    """Share of the time in ops that is not matched.

    Raises:
        EvidenceError: There is no step or no op, or the share is too large for a verdict.
    """
    op_ns = sum(a.op_ns for a in accounts)
    if not op_ns:
        raise EvidenceError(
            f"{len(accounts)} annotated steps with no op in them; wanted ops inside the engine's"
            " steps. No verdict on ops."
        )
    return check_frac(sum(a.unmatched_ns for a in accounts) / op_ns)


def _place(op: HostEvent, at: int, period: Period | None, is_placed: bool) -> PlacedOp:
    part: Part | None = None
    if period is not None:
        part = "before" if at < period.begin else "layer" if at < period.end else "after"
    op_class = class_of(op.name)
    is_matched = op_class is not None and (is_placed or part != "layer")
    return PlacedOp(op=op, part=part, op_class=op_class, is_matched=is_matched)


def _gap_ns(step: StepOps) -> int:
    """Time of the step's thread in no op."""
    at = step.window.t_ns
    gap_ns = 0
    for op in step.ops:
        gap_ns += max(0, op.t_ns - at)
        at = max(at, op.t_ns + op.dur_ns)
    return gap_ns + max(0, step.window.t_ns + step.window.dur_ns - at)
