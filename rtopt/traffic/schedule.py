"""An open loop: every request is sent at its time, whatever became of those before it."""

import asyncio
import time
from collections import deque
from typing import Final

from rtopt.traffic.answer import Answer
from rtopt.traffic.asker import Asker
from rtopt.types import Ask, Workload

_AHEAD: Final = 64
"""Most requests whose prompts are made before their time."""
_MAKE_NS: Final = 2_000_000
_MAKE_NS_PER_TOKEN: Final = 500
"""A prompt is made only when so long remains before the next deadline; measured: 150 ns a token."""


class Schedule:
    """Sends the asks of a workload by absolute deadlines."""

    def __init__(self, asker: Asker, workload: Workload, *, start_ns: int) -> None:
        self.answers: list[Answer] = []
        self.tasks: set[asyncio.Task[None]] = set()
        """Requests in flight."""
        self.unsent = len(workload.asks)
        self._asker, self._asks, self._start_ns = asker, workload.asks, start_ns

    @property
    def in_flight(self) -> int:
        """Requests sent and not answered yet."""
        return len(self.tasks)

    async def run(self, stop: asyncio.Event) -> None:  # noqa: ARG002 - as Clients.run
        """Send every ask at its time, and wait for the last answers."""
        ready: deque[tuple[int, int, bytes]] = deque()
        made = 0
        for _ in self._asks:
            while made < len(self._asks) and self._is_time_to_make(ready, self._asks[made]):
                due = self._start_ns + self._asks[made].arrival_ns
                ready.append((made, due, self._asker.body(made, self._asks[made])))
                made += 1
                await asyncio.sleep(0)  # answers that came meanwhile go first
            number, due, body = ready.popleft()
            await asyncio.sleep((due - time.monotonic_ns()) / 1e9)
            task = asyncio.create_task(self._send(number, body, due))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
            self.unsent -= 1
            await asyncio.sleep(0)  # the task sends before the next prompt is made
        if self.tasks:
            await asyncio.wait(self.tasks)

    @staticmethod
    def _is_time_to_make(ready: deque[tuple[int, int, bytes]], ask: Ask) -> bool:
        if not ready:
            return True
        needs_ns = _MAKE_NS + _MAKE_NS_PER_TOKEN * ask.prompt_tokens
        return len(ready) < _AHEAD and time.monotonic_ns() + needs_ns < ready[0][1]

    async def _send(self, number: int, body: bytes, due: int) -> None:
        self.answers.append(await self._asker.ask(number, body, due))
