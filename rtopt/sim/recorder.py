"""Keeping what the simulated engine does, in the form that the overlay records a real one."""

from collections.abc import Sequence
from dataclasses import dataclass

from rtopt.sim.batch import Batch, Output
from rtopt.types import InFlight, Request, Step


@dataclass(slots=True, kw_only=True)
class Live:
    """A request in the simulated engine; times on the simulator's clock."""

    id: str
    arrival_ns: int
    prompt_tokens: int
    max_tokens: int
    client: int | None
    scheduled_ns: int | None = None
    first_ns: int | None = None
    last_ns: int | None = None
    outputs: int = 0
    cached_tokens: int | None = None

    def in_flight(self, edge: str) -> InFlight:
        """Where it stands at an edge of a recording."""
        return InFlight(
            edge="start" if edge == "start" else "end",
            id=self.id,
            prompt_tokens=self.prompt_tokens,
            computed_tokens=self.prompt_tokens + self.outputs - 1 if self.outputs else 0,
            output_tokens=self.outputs,
            arrival_ns=self.arrival_ns,
            max_tokens=self.max_tokens,
            is_waiting=self.scheduled_ns is None and not self.outputs,
        )


class Recorder:
    """Steps and finished requests since the last time they were taken."""

    def __init__(self) -> None:
        self._index = 0
        self._steps: list[Step] = []
        self._requests: list[Request] = []

    @property
    def finished(self) -> int:
        """Requests that finished since the last time."""
        return len(self._requests)

    def take(self) -> tuple[tuple[Step, ...], tuple[Request, ...]]:
        """Give what was kept, and forget it."""
        taken = tuple(self._steps), tuple(self._requests)
        self._steps, self._requests = [], []
        return taken

    def step(
        self,
        batch: Batch,
        outputs: Sequence[tuple[Output, Live]],
        *,
        t_ns: int,
        dur_ns: int,
        running: int,
        waiting: int,
        kv_frac: float,
    ) -> None:
        """Keep one step that ended at `t_ns`, and the requests that it finished."""
        ttft_ms, itl_ms = [], []
        for output, live in outputs:
            live.outputs += 1
            if live.outputs == 1:
                ttft_ms.append((t_ns - live.arrival_ns) / 1e6)
                live.first_ns, live.cached_tokens = t_ns, output.cached_tokens
            elif live.last_ns is not None:
                itl_ms.append((t_ns - live.last_ns) / 1e6)
            live.last_ns = t_ns
            if output.is_finished:
                self._requests.append(_request(live, t_ns))
        again = batch.decode_tokens - batch.load.decode_requests
        self._steps.append(
            Step(
                t_ns=t_ns,
                index=self._index,
                dur_ns=dur_ns,
                prefill_requests=batch.load.prefill_requests,
                prefill_tokens=batch.load.prefill_tokens - again,
                decode_requests=batch.load.decode_requests,
                decode_tokens=batch.decode_tokens,
                running=running,
                waiting=waiting,
                kv_frac=kv_frac,
                preempted=batch.preempted,
                output_tokens=len(outputs),
                ttft_ms=tuple(ttft_ms),
                itl_ms=tuple(itl_ms),
            )
        )
        self._index += 1


def _request(live: Live, t_ns: int) -> Request:
    scheduled, first = live.scheduled_ns, live.first_ns
    queued = None if scheduled is None else (scheduled - live.arrival_ns) / 1e6
    prefill = None if scheduled is None or first is None else (first - scheduled) / 1e6
    return Request(
        id=live.id,
        arrival_ns=live.arrival_ns,
        finished_ns=t_ns,
        prompt_tokens=live.prompt_tokens,
        output_tokens=live.outputs,
        e2e_ms=(t_ns - live.arrival_ns) / 1e6,
        queued_ms=queued,
        prefill_ms=prefill,
        decode_ms=None if first is None else (t_ns - first) / 1e6,
        cached_tokens=live.cached_tokens,
        max_tokens=live.max_tokens,
        finish="length",
    )
