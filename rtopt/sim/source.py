"""Who asks, and when: clients that wait for answers, or arrivals that do not."""

import heapq
from dataclasses import dataclass, replace
from typing import Protocol, assert_never

import numpy as np

from rtopt.errors import UsageError
from rtopt.types import Ask, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One request on the simulator's clock."""

    t_ns: int
    ask: Ask
    client: int | None = None
    """Closed loop: who waits for the answer."""


class Source(Protocol):
    """An endless stream of requests."""

    def next_ns(self) -> int | None:
        """When the next request arrives; None when none will before an answer."""
        ...

    def due(self, now_ns: int) -> list[Arrival]:
        """Take the requests that have arrived by now."""
        ...

    def answered(self, client: int | None, now_ns: int) -> None:
        """Note that a client has its answer."""
        ...


def source_of(workload: Workload, *, start_ns: int, seed: int, busy: int, cut: int) -> Source:
    """The workload from `start_ns` on.

    Args:
        workload: Its asks are used again from the start when they run out.
        start_ns: On the simulator's clock.
        seed: Where in the recorded order a closed loop starts.
        busy: Closed loop: clients whose request is already in the engine.
        cut: Closed loop: first answers that are cut at a random place, so that the clients do not
            march in step.
    """
    if not workload.asks:
        raise UsageError("the workload has no requests: nothing can be offered")
    kind = workload.load.kind
    if kind == "closed":
        return _ClosedLoop(workload, start_ns=start_ns, seed=seed, busy=busy, cut=cut)
    if kind == "open":
        return _OpenLoop(workload, start_ns=start_ns)
    assert_never(kind)


MAX_CLIENTS = 100_000


class _ClosedLoop:
    def __init__(
        self, workload: Workload, *, start_ns: int, seed: int, busy: int, cut: int
    ) -> None:
        clients = workload.load.clients
        if not clients or not 1 <= clients <= MAX_CLIENTS:
            raise UsageError(
                f"a closed loop needs 1 to {MAX_CLIENTS} clients; the workload says {clients}"
            )
        self._asks = workload.asks
        self._think_ns = workload.think_ns
        self._rng = np.random.default_rng(seed)
        self._at = int(self._rng.integers(len(self._asks)))
        self._ready = [(start_ns, client) for client in range(busy, clients)]
        self._cut = cut

    def next_ns(self) -> int | None:
        return self._ready[0][0] if self._ready else None

    def due(self, now_ns: int) -> list[Arrival]:
        arrivals = []
        while self._ready and self._ready[0][0] <= now_ns:
            t_ns, client = heapq.heappop(self._ready)
            arrivals.append(Arrival(t_ns=t_ns, ask=self._next_ask(), client=client))
        return arrivals

    def answered(self, client: int | None, now_ns: int) -> None:
        if client is not None:
            heapq.heappush(self._ready, (now_ns + self._think_ns, client))

    def _next_ask(self) -> Ask:
        ask = self._asks[self._at % len(self._asks)]
        self._at += 1
        if self._cut > 0:
            self._cut -= 1
            return replace(ask, output_tokens=int(self._rng.integers(1, ask.output_tokens + 1)))
        return ask


class _OpenLoop:
    def __init__(self, workload: Workload, *, start_ns: int) -> None:
        self._asks = sorted(workload.asks, key=lambda ask: ask.arrival_ns)
        self._period_ns = max(workload.duration_ns, self._asks[-1].arrival_ns + 1)
        self._start_ns = start_ns
        self._at = 0

    def next_ns(self) -> int:
        rounds, at = divmod(self._at, len(self._asks))
        return self._start_ns + rounds * self._period_ns + self._asks[at].arrival_ns

    def due(self, now_ns: int) -> list[Arrival]:
        arrivals = []
        while (t_ns := self.next_ns()) <= now_ns:
            arrivals.append(Arrival(t_ns=t_ns, ask=self._asks[self._at % len(self._asks)]))
            self._at += 1
        return arrivals

    def answered(self, client: int | None, now_ns: int) -> None:
        """Arrivals of an open loop do not wait for answers."""
