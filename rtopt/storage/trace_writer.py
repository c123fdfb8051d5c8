"""Writing a trace as JSON lines, plain or gzip, so that a killed writer leaves a readable file."""

import gzip
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from rtopt.errors import UsageError
from rtopt.storage.trace_line import Event, encode, kind_of, time_of
from rtopt.types import End, Header, Trace

DEFAULT_MAX_BYTES: Final = 1 << 30
FLUSH_EVERY_S: Final = 1.0
FLUSH_EVERY_BYTES: Final = 1 << 16


class TraceWriter:
    """Writes line by line; from the first record that does not fit, it only counts.

    What was written is flushed to the file at least every second while records come, so a process
    that is killed leaves a readable beginning. A name that ends in .gz is compressed.
    """

    def __init__(self, path: Path, header: Header, *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        """Create the file and write its header.

        Args:
            path: The file; overwritten when it is there.
            header: First line.
            max_bytes: Largest size of the file; header and end are written in any case.

        Raises:
            UsageError: The file cannot be written there.
        """
        self._path = path
        self._closing = ExitStack()
        with self._writing():
            self._file = self._closing.enter_context(path.open("wb"))
        self._gzip: gzip.GzipFile | None = None
        if path.suffix == ".gz":
            # No file name and no time inside: the same trace gives the same bytes.
            self._gzip = self._closing.enter_context(
                gzip.GzipFile(filename="", mode="wb", fileobj=self._file, mtime=0, compresslevel=6)
            )
        self._max_bytes = max_bytes
        self._pending = 0
        self._dropped: Counter[str] = Counter()
        self._last_ns: int | None = None
        try:
            self._write(encode(header))
            self._flush()
        except UsageError:
            with suppress(OSError):  # the same again
                self._closing.close()
            raise

    @property
    def is_full(self) -> bool:
        """Whether a record was dropped; all later ones are."""
        return bool(self._dropped)

    def add(self, event: Event) -> None:
        """Write one record, or count it when the file is full.

        Raises:
            UsageError: The disk does not take it.
        """
        line = encode(event)
        if self.is_full or not self._fits(len(line)):
            self._dropped[kind_of(event)] += 1
            return
        self._write(line)
        t_ns = time_of(event)
        if t_ns is not None:
            self._last_ns = t_ns if self._last_ns is None else max(t_ns, self._last_ns)
        due = time.monotonic() - self._flushed_at >= FLUSH_EVERY_S
        if due or self._pending >= FLUSH_EVERY_BYTES:
            self._flush()

    def close(self, end: End) -> End:
        """Write the end and close the file.

        When the file was full the window ends with the last record kept, so that rates over it
        stay right.

        Returns:
            The end as written, with what was dropped here added.
        """
        if self.is_full:
            end = replace(
                end,
                dropped=dict(Counter(end.dropped) + self._dropped),
                end_ns=end.end_ns if self._last_ns is None else min(end.end_ns, self._last_ns),
                reason="size",
            )
        self._write(encode(end))
        with self._writing():
            self._closing.close()
        return end

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file; without `close(end)` it stays a readable beginning."""
        with self._writing():
            self._closing.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """What the disk refuses, in our words."""
        try:
            yield
        except OSError as error:
            raise UsageError(f"{self._path}: cannot be written: {error.strerror}") from error

    def _write(self, line: bytes) -> None:
        with self._writing():
            (self._gzip or self._file).write(line)
        self._pending += len(line)

    def _flush(self) -> None:
        with self._writing():
            if self._gzip is not None:
                self._gzip.flush()
            self._file.flush()
        self._pending = 0
        self._flushed_at = time.monotonic()

    def _fits(self, size: int) -> bool:
        """Whether the file stays within its size; what is not yet compressed counts in full."""
        if self._file.tell() + self._pending + size <= self._max_bytes:
            return True
        self._flush()
        return self._file.tell() + size <= self._max_bytes


def write_trace(trace: Trace, path: Path, *, max_bytes: int = DEFAULT_MAX_BYTES) -> End:
    """Write a whole trace, records in the order of time.

    Returns:
        The end as written; it says what did not fit.
    """
    timed: list[Event] = [
        *trace.marks,
        *trace.steps,
        *trace.requests,
        *trace.samples,
        *trace.device,
        *trace.host,
    ]
    timed.sort(key=lambda event: time_of(event) or 0)
    with TraceWriter(path, trace.header, max_bytes=max_bytes) as writer:
        for item in trace.in_flight:
            if item.edge == "start":
                writer.add(item)
        for event in timed:
            writer.add(event)
        for item in trace.in_flight:
            if item.edge == "end":
                writer.add(item)
        return writer.close(trace.end)
