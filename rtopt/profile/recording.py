"""Recording an engine together with the state of its machine."""

import math
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from rtopt.backends import machine, open_readers
from rtopt.errors import EngineError, StoppedError, UsageError
from rtopt.profile.locality import is_here
from rtopt.profile.sampler import PERIOD_S, Sampler
from rtopt.storage import DEFAULT_MAX_BYTES, read_trace, write_trace
from rtopt.types import Engine, Load, Progress, Trace, silent


def run(
    engine: Engine,
    *,
    duration_s: float,
    load: Load | None = None,
    max_requests: int | None = None,
    progress: Progress = silent,
    local: bool | None = None,
    period_s: float = PERIOD_S,
    must_be_whole: bool = False,
) -> Trace:
    """Record the engine for so long, in the calling thread, and this machine beside it.

    The machine's state is kept only when the engine runs here; a note says when it does not.
    Ctrl-C keeps what was recorded, with the reason "interrupted".

    Args:
        engine: What to record.
        duration_s: Longest time to record, in seconds.
        load: How the traffic is offered, as its owner states it.
        max_requests: End earlier, once so many requests have finished.
        progress: Called about once a second, from another thread.
        local: Whether the engine runs on this machine; None finds out.
        period_s: Seconds between two readings of the machine.
        must_be_whole: Whether a recording that was cut off is an error instead of being kept.

    Raises:
        UsageError: A length or a number of requests that cannot be recorded.
        StoppedError: Interrupted, and it must be whole.
        EngineError: The engine went away, and it must be whole.
    """
    _check(duration_s, max_requests)
    started_s = time.monotonic()

    def tick() -> None:
        passed_s = time.monotonic() - started_s
        share = min(1.0, passed_s / duration_s) if duration_s > 0 else None
        progress(f"recording ({passed_s:.0f} of {duration_s:.0f} s)", share)

    with Sampler(open_readers(), period_s=period_s, tick=tick) as sampler:
        trace = engine.record(duration_s, load=load, max_requests=max_requests)
    if must_be_whole:
        _check_whole(trace)
    if not (is_here(engine, trace) if local is None else local):
        return replace(
            trace, notes=(*trace.notes, "no state of the machine: the engine does not run here")
        )
    return _with_machine(trace, sampler)


def record_to(
    path: Path,
    engine: Engine,
    *,
    duration_s: float,
    load: Load | None = None,
    max_requests: int | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
    progress: Progress = silent,
    local: bool | None = None,
) -> Trace:
    """Do the same, write the trace to a file, and give it as it stands there.

    Args:
        path: The file; a name that ends in .gz is compressed.
        engine: What to record.
        duration_s: Longest time to record, in seconds.
        load: How the traffic is offered, as its owner states it.
        max_requests: End earlier, once so many requests have finished.
        max_bytes: Largest size of the file; the window ends where it is full.
        progress: Called about once a second, from another thread.
        local: Whether the engine runs on this machine; None finds out.

    Raises:
        UsageError: The file cannot be written there, or what was asked for cannot be recorded.
            Nothing was recorded.
    """
    _check(duration_s, max_requests)
    if max_bytes < 1:
        raise UsageError(f"at most {max_bytes} bytes: must be above 0. Nothing was recorded.")
    _check_writable(path)
    trace = run(
        engine,
        duration_s=duration_s,
        load=load,
        max_requests=max_requests,
        progress=progress,
        local=local,
    )
    end = write_trace(trace, path, max_bytes=max_bytes)
    if end == trace.end:
        return trace
    kept = read_trace(path)
    return replace(kept, notes=(*trace.notes, *kept.notes))


def _with_machine(trace: Trace, sampler: Sampler) -> Trace:
    """Add the samples of the window, and what failed."""
    inside = (s for s in sampler.samples if trace.start_ns < s.t_ns <= trace.end_ns)
    samples = sorted((*trace.samples, *inside), key=lambda sample: sample.t_ns)
    failed = Counter(trace.end.failed_reads) + Counter(sampler.failed_reads())
    header = trace.header
    if header.source == "metrics":  # such a server does not tell what it runs on
        header = replace(header, machine=machine())
    return replace(
        trace,
        header=header,
        samples=tuple(samples),
        end=replace(trace.end, failed_reads=dict(failed)),
    )


def _check(duration_s: float, max_requests: int | None) -> None:
    if not 0 < duration_s < math.inf:
        raise UsageError(f"duration {duration_s:g} s: must be above 0. Nothing was recorded.")
    if max_requests is not None and max_requests < 1:
        raise UsageError(f"{max_requests} requests: must be above 0. Nothing was recorded.")


def _check_whole(trace: Trace) -> None:
    after = f"after {trace.duration_s:.0f} s of recording; nothing was on trial"
    match trace.end.reason:
        case "interrupted":
            raise StoppedError(f"interrupted {after}")
        case "disconnected":
            raise EngineError(f"the server hung up {after}")
        case _:
            return


def _check_writable(path: Path) -> None:
    """Find out now, by opening the file; asking for the rights would not tell of all that fails."""
    try:
        is_new = not path.exists()
        with path.open("ab"):
            pass
        if is_new:
            path.unlink()
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be written: {error.strerror}. Nothing was recorded."
        ) from error
