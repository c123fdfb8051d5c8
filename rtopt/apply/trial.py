"""One trial: pairs of blocks in random order until the gate decides, then keep or restore."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rtopt.apply.gate import Reading, judge, rule_of, stopped
from rtopt.apply.guard import Pair
from rtopt.apply.hold import Hold
from rtopt.apply.journal import Journal, planned
from rtopt.apply.story import knobs
from rtopt.apply.switchback import arms
from rtopt.errors import EngineError, KnobError
from rtopt.metrics import cut, measure
from rtopt.storage import to_json
from rtopt.types import (
    Arm,
    Block,
    Change,
    Clock,
    Engine,
    EngineState,
    Load,
    Plan,
    Progress,
    Trial,
    Verdict,
    silent,
)

SHORTEST_FRAC = 0.9
"""A recording shorter than this share of its block was cut off."""


def read_clock() -> Clock:
    """Both clocks of this machine, now."""
    return Clock(mono_ns=time.monotonic_ns(), unix_ns=time.time_ns())


def run_trial(
    engine: Engine,
    plan: Plan,
    *,
    journal: Journal,
    load: Load | None = None,
    progress: Progress = silent,
    max_minutes: float | None = None,
    max_exposed: int | None = None,
    clock: Callable[[], Clock] = read_clock,
) -> Trial:
    """Try the plan's change on the engine, and leave it kept or restored.

    Args:
        engine: The engine; it must stand at its snapshot.
        plan: From `make_plan`.
        journal: Gets every act before it is done.
        load: How requests are offered, as the user stated it.
        progress: Called before each block.
        max_minutes: Time budget; used up means inconclusive and restored.
        max_exposed: Requests that may finish in candidate blocks; used up means the same.
        clock: Of this machine.

    Raises:
        KnobError: The change does not fit this engine. Nothing was changed.
        HeldError: Another controller holds the engine. Nothing was changed.
        EngineError: The engine failed within the trial; it was restored.
        StoppedError: Interrupted; the engine was restored.
        UndoError: The restore failed; the message names what stands.
    """
    start = clock()
    state = engine.state()
    undo = _undo_of(plan.change, state)
    trial = journal.next_trial(plan.change.lever)
    journal.append("plan", trial, **planned(plan, undo, state.boot))
    budget = _Budget(
        plan=plan, max_minutes=max_minutes, max_exposed=max_exposed, start=start, clock=clock
    )
    with Hold(engine, journal, trial=trial, change=plan.change, undo=undo, boot=state.boot) as hold:
        run = _Run(engine=engine, plan=plan, load=load, hold=hold, journal=journal, trial=trial)
        reading = run.until_decided(budget, progress)
        verdict = _verdict(reading, run.blocks)
        journal.append("verdict", trial, verdict=to_json(verdict), e_values=[*run.e_values])
        progress(f"{verdict.decision}: {verdict.reason}", 1.0)
        hold.settle(keep=verdict.keep)
    return Trial(
        id=trial,
        plan=plan,
        undo=undo,
        blocks=tuple(run.blocks),
        verdict=verdict,
        e_values=tuple(run.e_values),
        started_unix_ns=start.unix_ns,
        ended_unix_ns=clock().unix_ns,
    )


class _Run:
    """The blocks of one trial as they come in."""

    def __init__(
        self,
        *,
        engine: Engine,
        plan: Plan,
        load: Load | None,
        hold: Hold,
        journal: Journal,
        trial: str,
    ) -> None:
        self._engine, self._plan, self._load = engine, plan, load
        self._hold, self._journal, self._trial = hold, journal, trial
        self.blocks: list[Block] = []
        self.e_values: list[float] = []

    def until_decided(self, budget: "_Budget", progress: Progress) -> Reading:
        """Measure pair after pair until the gate, a budget or missing data decides."""
        plan = self._plan
        for pair, arm in arms(plan.seed, plan.max_pairs):
            is_new_pair = len(self.blocks) % 2 == 0
            if is_new_pair and (reason := budget.why_stop(self.blocks)):
                return stopped(plan, pairs_of(self.blocks), reason)
            progress(
                f"pair {pair + 1} of at most {plan.max_pairs}: {arm}, {plan.block_s:g} s",
                pair / plan.max_pairs,
            )
            self._hold.put(arm)
            block = self._measured(pair, arm)
            if self._hold.look():
                return judge(plan, pairs_of(self.blocks), restarted=True)
            self.blocks.append(block)
            self._journal.append("block", self._trial, block=to_json(block))
            if block.metrics.get(plan.objective, 0.0) <= 0:
                return stopped(
                    plan, pairs_of(self.blocks[:-1]), _no_data(plan.objective, pair, arm)
                )
            if len(self.blocks) % 2 == 0:
                reading = judge(plan, pairs_of(self.blocks))
                self.e_values += [] if reading.e_value is None else [reading.e_value]
                if reading.decision is not None:
                    return reading
        raise AssertionError("the gate decides at the horizon")

    def _measured(self, pair: int, arm: Arm) -> Block:
        plan = self._plan
        trace = self._engine.record(plan.block_s, load=self._load)
        if trace.end.reason == "interrupted":
            raise KeyboardInterrupt  # the engine kept what it had; a trial has no use for half
        if trace.duration_s < SHORTEST_FRAC * plan.block_s:
            raise EngineError(
                f"pair {pair + 1}, {arm}: the recording ended after {trace.duration_s:.1f} s"
                f" ({trace.end.reason}), wanted {plan.block_s:g} s."
            )
        start_ns = trace.start_ns + int(plan.washout_s * 1e9)
        return Block(
            pair=pair,
            arm=arm,
            start_ns=trace.start_ns,
            end_ns=trace.end_ns,
            metrics=measure(cut(trace, start_ns, trace.end_ns)),
            requests=len(trace.requests),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Budget:
    """Time and exposure that a trial may use."""

    plan: Plan
    max_minutes: float | None
    max_exposed: int | None
    start: Clock
    clock: Callable[[], Clock]

    def why_stop(self, blocks: Sequence[Block]) -> str | None:
        """Why the next pair must not begin, or None."""
        return self._time(blocks) or self._exposure(blocks)

    def _time(self, blocks: Sequence[Block]) -> str | None:
        if self.max_minutes is None:
            return None
        # A replayed engine records faster than this machine's clock runs; its own time counts too.
        recorded_s = sum(block.end_ns - block.start_ns for block in blocks) / 1e9
        spent_s = max((self.clock().mono_ns - self.start.mono_ns) / 1e9, recorded_s)
        pair_s = 2 * self.plan.block_s
        fewest = rule_of(self.plan).fewest_pairs
        if not blocks and spent_s + fewest * pair_s > self.max_minutes * 60:
            return (
                f"time budget: {self.max_minutes:g} min can't hold the {fewest} pairs of"
                f" {pair_s:g} s that a keep needs; nothing was tried"
            )
        if spent_s + pair_s > self.max_minutes * 60:
            return (
                f"time budget of {self.max_minutes:g} min: another pair of {pair_s:g} s does not"
                " fit"
            )
        return None

    def _exposure(self, blocks: Sequence[Block]) -> str | None:
        if self.max_exposed is None:
            return None
        exposed = [block.requests for block in blocks if block.arm == "candidate"]
        if sum(exposed) + max(exposed, default=0) > self.max_exposed:
            return (
                f"exposure budget of {self.max_exposed} requests: {sum(exposed)} are used, and"
                f" another candidate block may take {max(exposed)}"
            )
        return None


def pairs_of(blocks: Sequence[Block]) -> list[Pair]:
    """Complete pairs as (base, candidate)."""
    found: dict[int, dict[Arm, Block]] = {}
    for block in blocks:
        found.setdefault(block.pair, {})[block.arm] = block
    return [(pair["base"], pair["candidate"]) for pair in found.values() if len(pair) == 2]


def _undo_of(change: Change, state: EngineState) -> Change:
    """The change back to where the engine stands, which must be its snapshot."""
    if state.read_only is not None:
        raise EngineError(f"the engine can't be changed: {state.read_only}. Nothing was changed.")
    live = {knob.name: knob for knob in state.knobs}
    unknown = [name for name in change.knobs if name not in live]
    if unknown:
        raise KnobError(
            f"{', '.join(unknown)}: not a knob that moves on this engine. Known:"
            f" {', '.join(sorted(live)) or 'none'}. Nothing was changed."
        )
    base = {name: live[name].value for name in change.knobs}
    moved = {name: live[name].snapshot for name in base if live[name].snapshot != base[name]}
    if moved:
        raise EngineError(
            f"the engine stands at {knobs(base)}, and its snapshot is {knobs(moved)}: an earlier"
            " change was neither kept nor restored, so there is no baseline. Restore it first."
            " Nothing was changed."
        )
    if base == dict(change.knobs):
        raise KnobError(f"{knobs(base)} stands already. Nothing was changed.")
    return Change(lever="undo", knobs=base, reason=f"back to {knobs(base)}")


def _no_data(objective: str, pair: int, arm: Arm) -> str:
    return (
        f"no data for {objective} in pair {pair + 1} ({arm}): the load went away, or blocks are"
        " too short for it"
    )


def _verdict(reading: Reading, blocks: Sequence[Block]) -> Verdict:
    assert reading.decision is not None
    return Verdict(
        decision=reading.decision,
        reason=reading.reason,
        effect=reading.effect,
        e_value=reading.e_value,
        guards=reading.guards,
        pairs=len(pairs_of(blocks)),
        exposed_requests=sum(block.requests for block in blocks if block.arm == "candidate"),
    )
