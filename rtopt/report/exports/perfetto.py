"""A trace as a timeline for ui.perfetto.dev and chrome://tracing: JSON of the Chrome trace format.

Events are written one by one in order of time. Times are microseconds with three decimals since
the first event, which `otherData` places on the engine's clock.

Source: "Trace Event Format", Google, the phases M, X, i, C, b, e, s and f.
"""

import gzip
import heapq
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rtopt.errors import TraceError, UsageError
from rtopt.report.exports.timeline import TimelineEvent, entries
from rtopt.report.exports.tracks import Tracks, metadata
from rtopt.types import Trace


def write_perfetto(trace: Trace, out: Path) -> None:
    """Write the file; a name that ends in .gz is compressed, which Perfetto opens, too.

    Raises:
        TraceError: Something lasts less than no time.
        UsageError: The file cannot be written there; what was there before still is.
    """
    half = out.with_name(f".{out.name}.half")
    try:
        try:
            with half.open("wb") as file, _packed(file, is_gzip=out.suffix == ".gz") as packed:
                packed.writelines(line.encode("ascii") for line in _lines(trace))
            half.replace(out)
        finally:
            half.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{out}: cannot be written: {error.strerror}") from error


@contextmanager
def _packed(file: BinaryIO, *, is_gzip: bool) -> Iterator[BinaryIO | gzip.GzipFile]:
    if not is_gzip:
        yield file
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as packed:
        yield packed


def _lines(trace: Trace) -> Iterator[str]:
    tracks = Tracks()
    merged = heapq.merge(*entries(trace, tracks), key=lambda e: e.t_ns)
    first = next(merged, None)
    other = {
        "source": trace.header.source,
        "engine": f"{trace.header.engine.name} {trace.header.engine.version}",
        "first_event_mono_ns": first.t_ns if first else None,
        "clock_error_ns": trace.header.clock_error_ns,
    }
    kept = {name: value for name, value in other.items() if value is not None}
    yield f'{{"displayTimeUnit":"ns","otherData":{_json(kept)},"traceEvents":[\n'
    if first is not None:
        yield _text(first, first.t_ns)
        yield from (f",\n{_text(event, first.t_ns)}" for event in merged)
        # Last, because every track has its number and name by now.
        yield from (f",\n{_json(event)}" for event in metadata(tracks))
    yield "\n]}\n"


def _text(event: TimelineEvent, first_ns: int) -> str:
    times = f'"ts":{_us(event.t_ns - first_ns)}'
    if event.dur_ns is not None:
        if event.dur_ns < 0:
            raise TraceError(
                f"{event.event['name']}: found a duration of {event.dur_ns} ns, wanted 0 or more;"
                " the trace is damaged. Nothing was written."
            )
        times += f',"dur":{_us(event.dur_ns)}'
    return f"{{{times},{_json(event.event)[1:]}"


def _us(ns: int) -> str:
    """Microseconds with three decimals, exactly."""
    return f"{ns // 1000}.{ns % 1000:03d}"


_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
