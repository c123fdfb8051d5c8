"""Offers a load from a process of its own, and waits for it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rtopt.errors import UsageError
from rtopt.traffic.arrivals import check_lengths, check_prefixes
from rtopt.traffic.closed_loop import ClosedLoop
from rtopt.traffic.formats import write_workload
from rtopt.traffic.load_process import LoadProcess
from rtopt.traffic.replay import Replay
from rtopt.traffic.tally import Tally
from rtopt.traffic.target import Target, check_fits
from rtopt.types import Ask, Progress, Workload, silent

_LOOK_S = 0.2


def run_load(
    load: ClosedLoop | Replay, *, api_key: str | None = None, progress: Progress = silent
) -> tuple[Tally, bool]:
    """Offer the load to its end; Ctrl-C ends it early and lets requests in flight finish.

    Returns:
        What came of it, and whether it was interrupted.

    Raises:
        EngineError: The generator died.
    """
    process = LoadProcess(load, api_key=api_key).start()
    began = time.monotonic()
    try:
        while process.is_running:
            progress(f"offering load ({time.monotonic() - began:.0f} s)", None)
            time.sleep(_LOOK_S)
    except KeyboardInterrupt:
        return process.stop(), True
    return process.stop(), False


def run_workload(
    workload: Workload, load: Replay, target: Target, *, progress: Progress = silent
) -> tuple[Tally, bool]:
    """Offer a workload; `load.file` is where it lies meanwhile, and set here.

    Raises:
        UsageError: It holds no request, or one that the model would refuse.
        EngineError: The generator died.
    """
    if not workload.asks:
        raise UsageError("the workload holds no request: a longer --duration. Nothing was sent.")
    check_fits(target, workload.asks)
    with _as_file(workload) as path:
        return run_load(replace(load, file=str(path)), api_key=target.api_key, progress=progress)


def run_clients(
    load: ClosedLoop, target: Target, *, progress: Progress = silent
) -> tuple[Tally, bool]:
    """Offer a closed loop.

    Raises:
        UsageError: No clients, lengths that cannot be drawn, or that the model would refuse.
        EngineError: The generator died.
    """
    if load.clients < 1:
        raise UsageError(f"--clients {load.clients}: must be at least 1")
    if not load.duration_s > 0:
        raise UsageError(f"--duration {load.duration_s:g}: must be above 0")
    check_lengths("prompt-tokens", load.prompt_tokens)
    check_lengths("output-tokens", load.output_tokens)
    check_prefixes(load.prefixes, load.prefix_tokens)
    longest = load.prompt_tokens[1] + load.prefix_tokens
    check_fits(
        target,
        [Ask(arrival_ns=0, prompt_tokens=longest, output_tokens=load.output_tokens[1])],
    )
    return run_load(load, api_key=target.api_key, progress=progress)


@contextmanager
def _as_file(workload: Workload) -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "workload.jsonl"
        write_workload(workload, path)
        yield path
