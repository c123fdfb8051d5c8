"""Offers a load to a server until it is over or stopped, and adds up what came of it."""

import asyncio
import json
import random
import time
from dataclasses import asdict
from pathlib import Path

from rtopt.errors import UsageError
from rtopt.traffic.asker import Asker
from rtopt.traffic.client import Client
from rtopt.traffic.clients import Clients
from rtopt.traffic.closed_loop import ClosedLoop, asks_of
from rtopt.traffic.formats import read_workload
from rtopt.traffic.prompts import Prompts
from rtopt.traffic.replay import Replay
from rtopt.traffic.schedule import Schedule
from rtopt.traffic.tally import Tally, add_up, check_limits

_LEAD_NS = 300_000_000
"""From now to time zero of a schedule; the first prompts are made in it."""
_DRAIN_S = 50.0
"""Longest wait for answers after the last request."""


async def offer(
    load: ClosedLoop | Replay, stop: asyncio.Event, *, api_key: str | None = None
) -> Tally:
    """Offer the load until it is over or `stop` is set, then let requests in flight finish.

    Raises:
        UsageError: The load cannot be offered; nothing was sent.
        TraceError: The workload file cannot be read.
    """
    check_limits(load.limits_ms)
    client = Client(load.url, api_key=api_key)
    driver = _closed(load, client) if isinstance(load, ClosedLoop) else _replay(load, client)
    began, cpu = time.monotonic(), time.process_time()
    run, stopped = asyncio.create_task(driver.run(stop)), asyncio.create_task(stop.wait())
    longest_s = load.duration_s if isinstance(load, ClosedLoop) else None
    await asyncio.wait({run, stopped}, timeout=longest_s, return_when=asyncio.FIRST_COMPLETED)
    if not run.done():
        stop.set()
        if isinstance(driver, Schedule):
            run.cancel()
        await asyncio.wait(driver.tasks | {run}, timeout=_DRAIN_S)
    unfinished = driver.in_flight
    left = {task for task in (*driver.tasks, run, stopped) if not task.done()}
    for task in left:
        task.cancel()
    await asyncio.gather(run, *left, return_exceptions=True)
    if not run.cancelled() and (error := run.exception()) is not None:
        raise error
    client.close()
    tally = add_up(
        driver.answers,
        limits_ms=load.limits_ms,
        wall_s=time.monotonic() - began,
        cpu_s=time.process_time() - cpu,
    )
    tally.unfinished, tally.unsent = unfinished, driver.unsent
    if load.answers is not None:
        _write(driver, Path(load.answers))
    return tally


def _closed(load: ClosedLoop, client: Client) -> Clients:
    prompts = Prompts(
        seed=load.seed, vocabulary=load.vocabulary, block_tokens=load.prefix_tokens or None
    )
    asker = Asker(
        client,
        prompts,
        model=load.model,
        start_ns=time.monotonic_ns(),
        stream=load.stream,
        salt=load.salt,
    )
    rngs = [random.Random(f"{load.seed}-{number}") for number in range(load.clients)]
    return Clients(
        asker,
        [asks_of(load, rng) for rng in rngs],
        seed=load.seed,
        think_s=load.think_s,
        ramp_s=load.ramp_s,
    )


def _replay(load: Replay, client: Client) -> Clients | Schedule:
    workload = read_workload(Path(load.file))
    if not workload.asks:
        raise UsageError(f"{load.file}: no request in it. Nothing was sent.")
    prompts = Prompts(
        seed=load.seed, vocabulary=load.vocabulary, block_tokens=workload.block_tokens
    )
    start_ns = time.monotonic_ns() + _LEAD_NS
    asker = Asker(client, prompts, model=load.model, start_ns=start_ns, stream=True, salt=load.salt)
    if workload.load.kind == "open":
        return Schedule(asker, workload, start_ns=start_ns)
    asks = iter(workload.asks)
    return Clients(
        asker,
        [asks] * (workload.load.clients or 1),
        seed=load.seed,
        think_s=workload.think_ns / 1e9,
        total=len(workload.asks),
    )


def _write(driver: Clients | Schedule, path: Path) -> None:
    lines = [json.dumps(asdict(answer)) for answer in driver.answers]
    try:
        path.write_text("".join(line + "\n" for line in lines), encoding="ascii")
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be written: {error.strerror}. The load was offered."
        ) from error
