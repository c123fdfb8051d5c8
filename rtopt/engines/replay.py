"""An engine without a server: vLLM's real scheduler in virtual time.

It answers like a live engine and needs no waiting, for tests of the gate with a known truth and
for what-if questions. Nobody else can hold it, and nothing of it outlives the process.
"""

from collections.abc import Callable, Mapping
from typing import Literal

from rtopt.cost import StepTime
from rtopt.errors import EngineError
from rtopt.sim import Simulator, check_live, live_limits
from rtopt.types import (
    Change,
    EngineInfo,
    EngineState,
    Held,
    Knob,
    Load,
    Mark,
    Trace,
    Value,
    Workload,
)

_HOLDER = "replay"


class ReplayEngine:
    """Implements `rtopt.types.Engine`; `record` returns at once.

    Args:
        info: The engine to stand for.
        step_time: How long its steps take.
        workload: Offered from the start and for ever, with fresh prompts.
        seed: Same seed, same engine.
        knobs: Live knobs at the start that differ from the configuration.
        effects: Factor on the step time by knobs: the truth that a gate has to find.
    """

    def __init__(
        self,
        info: EngineInfo,
        step_time: StepTime,
        workload: Workload,
        *,
        seed: int = 0,
        knobs: Mapping[str, Value] | None = None,
        effects: Callable[[Mapping[str, Value]], float] | None = None,
    ) -> None:
        self._simulator = Simulator(info, knobs or {}, step_time, seed=seed, effect=effects)
        self._simulator.offer(workload)
        self._start = self._simulator.knobs()
        self._snapshot = dict(self._start)
        self._boot = f"replay-{seed}"
        self._on_trial = False
        self._offered = workload.load

    def state(self) -> EngineState:
        """Read everything about the engine, now."""
        simulator = self._simulator
        knobs = []
        for name, value in simulator.knobs().items():
            low, high = live_limits(simulator.info, name)
            knobs.append(
                Knob(
                    name=name,
                    value=value,
                    start=self._start[name],
                    snapshot=self._snapshot[name],
                    low=low,
                    high=high,
                )
            )
        return EngineState(
            info=simulator.info,
            knobs=tuple(knobs),
            boot=self._boot,
            held=Held(holder=_HOLDER, remaining_s=float("inf")) if self._on_trial else None,
            running=simulator.running,
            waiting=simulator.waiting,
        )

    def apply(self, change: Change) -> Change:
        """Put the change on trial; give the Change that undoes it.

        Raises:
            KnobError: Unknown knob, or a value outside floor and ceiling. Nothing was changed.
        """
        now = self._simulator.knobs()
        for name, value in change.knobs.items():
            check_live(self._simulator.info, name, value)
        for name, value in change.knobs.items():
            self._simulator.set_knob(name, value)
        self._on_trial = True
        self._mark("set")
        return Change(
            lever="undo",
            knobs={name: now[name] for name in change.knobs},
            reason=f"back to before {change.lever}",
        )

    def settle(self, *, keep: bool) -> EngineState:
        """End the trial: commit the present values, or restore the snapshot."""
        if keep:
            self._snapshot = self._simulator.knobs()
        else:
            for name, value in self._snapshot.items():
                self._simulator.set_knob(name, value)
        self._on_trial = False
        self._mark("commit" if keep else "restore")
        return self.state()

    def record(
        self, duration_s: float, *, load: Load | None = None, max_requests: int | None = None
    ) -> Trace:
        """Let so much virtual time pass; no waiting.

        Raises:
            EngineError: `load` says something else than the workload that is offered.
        """
        if load is not None and load != self._offered:
            raise EngineError(
                f"the replay is offered {self._offered}, and {load} was stated: state what the"
                " workload says, or nothing. No time has passed."
            )
        return self._simulator.advance(duration_s, max_requests=max_requests)

    def _mark(self, what: Literal["set", "commit", "restore"]) -> None:
        # One nanosecond on: what happens at the very start of a window is not in it.
        self._simulator.mark(
            Mark(
                t_ns=self._simulator.now_ns + 1,
                what=what,
                by=_HOLDER,
                knobs=self._simulator.knobs(),
            )
        )
