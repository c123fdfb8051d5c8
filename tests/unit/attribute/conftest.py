"""A toy engine whose limits and costs are known, so that the right cause is known too."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import numpy as np
import pytest

from rtopt.types import Clock, End, EngineInfo, Header, Load, Machine, Request, Step, Trace

START_NS = 1_000_000_000_000


@dataclass(slots=True, kw_only=True)
class Job:
    arrival_s: float
    prompt: int
    output: int
    computed: int = 0
    made: int = 0
    last_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Toy:
    """Knobs, costs and load; every default is a healthy engine at moderate load."""

    slots: int = 32
    budget: int = 2048
    kv_tokens: float = 1e9
    base_ms: float = 40.0
    decode_ms: float = 1.5
    prefill_token_ms: float = 0.02
    gap_ms: float = 1.0
    noise_frac: float = 0.02
    clients: int | None = None
    """Closed loop; otherwise `rate` arrivals a second."""
    rate: float = 4.0
    prompt: tuple[int, ...] = (64,)
    output: tuple[int, ...] = (24, 64)
    duration_s: float = 40.0
    seed: int = 1
    config: dict[str, bool] = field(default_factory=dict)

    def serve(self) -> Trace:
        return _Run(self).trace()


class _Run:
    def __init__(self, toy: Toy) -> None:
        self.toy, self.rng = toy, np.random.default_rng(toy.seed)
        self.now, self.ids = 0.0, count()
        self.running: list[Job] = []
        self.waiting: deque[Job] = deque()
        self.steps: list[Step] = []
        self.requests: list[Request] = []
        if toy.clients is None:
            times = self.rng.exponential(1 / toy.rate, int(toy.rate * toy.duration_s * 2) + 9)
            self.due = deque(float(t) for t in np.cumsum(times))
        else:
            self.due = deque([0.0] * toy.clients)

    def trace(self) -> Trace:
        while self.now < self.toy.duration_s:
            self._arrive()
            if self.running or self.waiting:
                self._step()
            else:
                self.now = max(self.now, self.due[0])
        toy = self.toy
        clock = Clock(mono_ns=START_NS, unix_ns=0)
        load = None if toy.clients is None else Load(kind="closed", clients=toy.clients)
        engine = EngineInfo(
            name="vllm",
            version="0.32.0",
            model="toy",
            config={"max_num_seqs": 64, "max_num_batched_tokens": 2048, **toy.config},
        )
        header = Header(
            source="overlay",
            engine=engine,
            machine=Machine(cpu="toy", num_cpus=2),
            clock=clock,
            start_ns=START_NS,
            knobs={"max_num_active_seqs": toy.slots, "max_num_scheduled_tokens": toy.budget},
            load=load,
        )
        end = End(end_ns=START_NS + int(toy.duration_s * 1e9), clock=clock)
        return Trace(header=header, end=end, steps=tuple(self.steps), requests=tuple(self.requests))

    def _arrive(self) -> None:
        while self.due and self.due[0] <= self.now:
            at = self.due.popleft()
            prompt = int(self.rng.choice(self.toy.prompt))
            output = int(self.rng.choice(self.toy.output))
            self.waiting.append(Job(arrival_s=at, prompt=prompt, output=output))

    def _kv(self) -> float:
        return sum(j.computed + j.made for j in self.running) / self.toy.kv_tokens

    def _step(self) -> None:
        toy, preempted = self.toy, 0
        while self._kv() > 1 and len(self.running) > 1:
            out = self.running.pop()
            out.computed = 0
            self.waiting.appendleft(out)
            preempted += 1
        left = toy.budget
        decoding = [j for j in self.running if j.computed >= j.prompt][:left]
        left -= len(decoding)
        filling: list[tuple[Job, int]] = []
        for job in [j for j in self.running if j.computed < j.prompt]:
            take = min(left, job.prompt - job.computed)
            if take:
                filling.append((job, take))
                left -= take
        while self.waiting and len(self.running) < toy.slots and left and not preempted:
            job = self.waiting[0]
            if self._kv() + (job.prompt + job.made) / toy.kv_tokens > 1:
                break
            take = min(left, job.prompt)
            self.running.append(self.waiting.popleft())
            filling.append((job, take))
            left -= take
        tokens = sum(take for _, take in filling)
        ms = toy.base_ms + toy.decode_ms * len(decoding) + toy.prefill_token_ms * tokens
        ms *= float(np.exp(self.rng.normal(0, toy.noise_frac)))
        self.now += (ms + toy.gap_ms) / 1e3
        self._arrive()
        ttft, itl = [], []
        kv = min(self._kv(), 1.0)
        for job, take in filling:
            job.computed += take
            if job.computed >= job.prompt:
                ttft.append((self.now - job.arrival_s) * 1e3)
                self._emit(job)
        for job in decoding:
            itl.append((self.now - job.last_s) * 1e3)
            self._emit(job)
        self.steps.append(
            Step(
                t_ns=START_NS + int(self.now * 1e9),
                index=len(self.steps),
                dur_ns=int(ms * 1e6),
                prefill_requests=len(filling),
                prefill_tokens=tokens,
                decode_requests=len(decoding),
                decode_tokens=len(decoding),
                running=len(self.running),
                waiting=len(self.waiting),
                kv_frac=kv,
                preempted=preempted,
                output_tokens=len(ttft) + len(itl),
                ttft_ms=tuple(ttft),
                itl_ms=tuple(itl),
            )
        )

    def _emit(self, job: Job) -> None:
        job.made += 1
        job.last_s = self.now
        if job.made >= job.output:
            self.running.remove(job)
            if self.toy.clients is not None:
                self.due.append(self.now)
            self.requests.append(
                Request(
                    id=f"r{next(self.ids)}",
                    arrival_ns=START_NS + int(job.arrival_s * 1e9),
                    finished_ns=START_NS + int(self.now * 1e9),
                    prompt_tokens=job.prompt,
                    output_tokens=job.output,
                    e2e_ms=(self.now - job.arrival_s) * 1e3,
                    finish="length",
                )
            )


@pytest.fixture
def serve() -> Callable[..., Trace]:
    """Run the toy engine with the given differences from a healthy one."""
    return lambda **changes: Toy(**changes).serve()
