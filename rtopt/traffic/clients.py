"""A closed loop: each client waits for its answer, thinks, and asks again."""

import asyncio
import contextlib
import random
from collections.abc import Iterator, Sequence
from math import sqrt

from rtopt.traffic.answer import Answer
from rtopt.traffic.asker import Asker
from rtopt.types import Ask

_AFTER_ERROR_S = 0.2


class Clients:
    """Clients that share nothing but the server and the numbering."""

    def __init__(
        self,
        asker: Asker,
        asks: Sequence[Iterator[Ask]],
        *,
        seed: int,
        think_s: float = 0.0,
        ramp_s: float = 0.0,
        total: int | None = None,
    ) -> None:
        """Prepare.

        Args:
            asker: Sends.
            asks: For each client what it asks; several may draw from one iterator.
            seed: Of the pauses.
            think_s: Mean of the exponential pause after an answer.
            ramp_s: Clients join over so long.
            total: Asks in all, where they end.
        """
        self.answers: list[Answer] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.in_flight = 0
        """Requests sent and not answered yet."""
        self._asker, self._asks, self._seed = asker, asks, seed
        self._think_s, self._ramp_s, self._total = think_s, ramp_s, total
        self._number = 0

    @property
    def unsent(self) -> int:
        """Asks that were never sent; 0 where they have no end."""
        return 0 if self._total is None else self._total - self._number

    async def run(self, stop: asyncio.Event) -> None:
        """Keep every client busy until its asks end or `stop` is set."""
        self.tasks = {
            asyncio.create_task(self._client(number, asks, stop))
            for number, asks in enumerate(self._asks)
        }
        await asyncio.gather(*self.tasks)

    async def _client(self, number: int, asks: Iterator[Ask], stop: asyncio.Event) -> None:
        rng = random.Random(f"{self._seed}-think-{number}")
        await _pause(self._ramp_s * sqrt(number / len(self._asks)), stop)
        while not stop.is_set() and (ask := next(asks, None)) is not None:
            place, self._number = self._number, self._number + 1
            self.in_flight += 1
            answer = await self._asker.ask(place, self._asker.body(place, ask), None)
            self.in_flight -= 1
            self.answers.append(answer)
            if answer.error is not None:
                await _pause(_AFTER_ERROR_S, stop)
            elif self._think_s > 0:
                await _pause(rng.expovariate(1 / self._think_s), stop)


async def _pause(seconds: float, stop: asyncio.Event) -> None:
    if seconds > 0:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), seconds)
