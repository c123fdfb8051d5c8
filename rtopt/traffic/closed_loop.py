"""A small closed-loop load generator: a fixed number of clients, fresh prompts, short answers.

It runs in a process of its own, so that its work is not the controller's, and reports what it did
as JSON on its last line. Every prompt is a list of random token ids: fresh, so that the prefix
cache cannot make one arm of a comparison faster than the other.
"""

import asyncio
import contextlib
import random
import resource
import time
from dataclasses import dataclass, field
from math import sqrt

import httpx

# vLLM closes an idle connection after 5 s; whoever reuses one at that moment gets an error.
_KEEP_ALIVE_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoop:
    """What to offer."""

    url: str
    model: str
    clients: int
    prompt_tokens: tuple[int, int] = (24, 40)
    """Shortest and longest prompt."""
    output_tokens: tuple[int, int] = (8, 16)
    ramp_s: float = 0.0
    """Clients join over so long, the first ones slowly, so that a trace sees small batches too."""
    seed: int = 0
    vocabulary: int = 40_000
    """Token ids are drawn below this."""
    duration_s: float = 3600.0
    """It ends by itself after so long, whatever happens to whoever started it."""


@dataclass(slots=True, kw_only=True)
class Tally:
    """What came of it."""

    finished: int = 0
    failed: int = 0
    output_tokens: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    wall_s: float = 0.0
    cpu_frac: float = 0.0
    """CPU seconds of this process per second."""


async def offer(load: ClosedLoop, stop: asyncio.Event) -> Tally:
    """Keep `load.clients` requests in flight until `stop` is set or the time is over."""
    tally = Tally()
    began, cpu = time.monotonic(), _cpu_s()
    limits = httpx.Limits(
        max_connections=load.clients,
        max_keepalive_connections=load.clients,
        keepalive_expiry=_KEEP_ALIVE_S,
    )
    timeout = httpx.Timeout(300.0, connect=10.0)
    async with httpx.AsyncClient(
        base_url=load.url, limits=limits, timeout=timeout, trust_env=False
    ) as client:
        tasks = [
            asyncio.create_task(_client(load, number, client, tally, stop))
            for number in range(load.clients)
        ]
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), load.duration_s)
        stop.set()
        await asyncio.gather(*tasks)
    tally.wall_s = time.monotonic() - began
    tally.cpu_frac = (_cpu_s() - cpu) / tally.wall_s
    return tally


async def _client(
    load: ClosedLoop, number: int, client: httpx.AsyncClient, tally: Tally, stop: asyncio.Event
) -> None:
    rng = random.Random(f"{load.seed}-{number}")
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), load.ramp_s * sqrt(number / load.clients))
    while not stop.is_set():
        length = rng.randint(*load.prompt_tokens)
        body = {
            "model": load.model,
            "prompt": [rng.randrange(100, load.vocabulary) for _ in range(length)],
            "max_tokens": rng.randint(*load.output_tokens),
            "ignore_eos": True,
            "temperature": 0.0,
        }
        try:
            answer = await client.post("/v1/completions", json=body)
            answer.raise_for_status()
            tally.output_tokens += answer.json()["usage"]["completion_tokens"]
            tally.finished += 1
        except httpx.HTTPError as error:
            tally.failed += 1
            name = type(error).__name__
            tally.errors[name] = tally.errors.get(name, 0) + 1
            await asyncio.sleep(0.2)


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
