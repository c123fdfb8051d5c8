"""Reading a trace: JSON lines, plain or gzip, told apart by their first bytes.

The file is read in pieces, so memory holds the records and never the text. A file that was cut off
gives what is readable and a note; a file that is damaged, foreign or too new is refused.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, assert_never

from rtopt.errors import TraceError
from rtopt.storage.trace_line import Line, decode, time_of
from rtopt.types import (
    Clock,
    DeviceEvent,
    End,
    Header,
    HostEvent,
    InFlight,
    Mark,
    Request,
    Sample,
    Step,
    Trace,
)

GZIP_MAGIC: Final = b"\x1f\x8b"
PIECE_BYTES: Final = 1 << 16
MAX_LINE_BYTES: Final = 1 << 24
"""No record comes near; a longer line means that this is not a trace."""


def read_trace(path: Path) -> Trace:
    """Read a trace; `notes` says when its end is missing or cut off.

    Raises:
        TraceError: The file cannot be read, is empty, foreign, damaged, or from a newer rtopt.
    """
    try:
        with path.open("rb") as file:
            return _Reading(path).read(file)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error


@dataclass(slots=True)
class _Reading:
    """What has been read so far."""

    path: Path
    header: Header | None = None
    end: End | None = None
    steps: list[Step] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    in_flight: list[InFlight] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    device: list[DeviceEvent] = field(default_factory=list)
    host: list[HostEvent] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    last_ns: int | None = None

    def read(self, file: BinaryIO) -> Trace:
        number = 0
        for number, (text, is_whole) in enumerate(_lines(self._pieces(file), self.path), start=1):
            where = f"{self.path}:{number}"
            try:
                line = decode(text, where=where)
            except TraceError as error:
                if is_whole or self.header is None:
                    raise self._unreadable(error, number, is_whole) from error
                self.notes.append(f"line {number} is cut off and was left out")
                break
            self._take(line, where)
        if self.header is None:
            raise TraceError(f"{self.path}: holds no line; wanted an rtopt trace")
        return self._trace(self.header, number)

    def _pieces(self, file: BinaryIO) -> Iterator[bytes]:
        magic = file.read(len(GZIP_MAGIC))
        if magic == GZIP_MAGIC:
            file.seek(0)
            yield from _unzip(file, self.path, self.notes)
            return
        yield magic
        while piece := file.read(PIECE_BYTES):
            yield piece

    def _unreadable(self, error: TraceError, number: int, is_whole: bool) -> TraceError:
        if self.header is None and not is_whole:
            return TraceError(
                f"{self.path}: no whole first line; not an rtopt trace, or cut off in its header"
            )
        if self.header is None:
            return TraceError(f"{error} (not an rtopt trace)")
        return TraceError(f"{error}. The {number - 1} lines before it are readable.", line=number)

    def _take(self, line: Line, where: str) -> None:
        if (self.header is None) != isinstance(line, Header):
            found = "a second header" if isinstance(line, Header) else "no header"
            raise TraceError(f"{where}: found {found}, wanted one header, as the first line")
        if self.end is not None:
            raise TraceError(f"{where}: found a record after the end, wanted nothing")
        match line:
            case Header():
                self.header = line
            case End():
                self.end = line
            case Step():
                self.steps.append(line)
            case Request():
                self.requests.append(line)
            case InFlight():
                self.in_flight.append(line)
            case Mark():
                self.marks.append(line)
            case Sample():
                self.samples.append(line)
            case DeviceEvent():
                self.device.append(line)
            case HostEvent():
                self.host.append(line)
            case _:
                assert_never(line)
        if not isinstance(line, Header | End):
            t_ns = time_of(line)
            if t_ns is not None:
                self.last_ns = t_ns if self.last_ns is None else max(t_ns, self.last_ns)

    def _trace(self, header: Header, num_lines: int) -> Trace:
        end = self.end
        if end is None:
            self.notes.append(f"the end is missing: cut off after {num_lines} lines")
            end = _end_of(header, self.last_ns)
        if end.end_ns < header.start_ns:
            raise TraceError(
                f"{self.path}: ends {(header.start_ns - end.end_ns) / 1e9:g} s before it starts, so"
                " its times are damaged"
            )
        return Trace(
            header=header,
            end=end,
            steps=tuple(self.steps),
            requests=tuple(self.requests),
            in_flight=tuple(self.in_flight),
            marks=tuple(self.marks),
            samples=tuple(self.samples),
            device=tuple(self.device),
            host=tuple(self.host),
            notes=tuple(self.notes),
        )


def _end_of(header: Header, last_ns: int | None) -> End:
    """End of a trace that lost its own: the last record, on the header's pair of clocks."""
    end_ns = header.start_ns if last_ns is None else max(last_ns, header.start_ns)
    unix_ns = header.clock.unix_ns + end_ns - header.clock.mono_ns
    return End(end_ns=end_ns, clock=Clock(mono_ns=end_ns, unix_ns=unix_ns), reason="cut")


def _lines(pieces: Iterator[bytes], path: Path) -> Iterator[tuple[bytes, bool]]:
    """Lines that are not blank, each with whether its line break was there."""
    rest = bytearray()
    for piece in pieces:
        first, *others = piece.split(b"\n")
        rest += first
        if len(rest) > MAX_LINE_BYTES:
            raise TraceError(f"{path}: a line of more than {MAX_LINE_BYTES} bytes: no rtopt trace")
        for other in others:
            if rest.strip():
                yield bytes(rest), True
            rest = bytearray(other)
    if rest.strip():
        yield bytes(rest), False


def _unzip(file: BinaryIO, path: Path, notes: list[str]) -> Iterator[bytes]:
    """Text of a gzip file in pieces of bounded size; a note when it is cut off."""
    inflate = zlib.decompressobj(wbits=31)
    piece = file.read(PIECE_BYTES)
    try:
        while piece:
            yield inflate.decompress(piece, PIECE_BYTES)
            if not inflate.eof:
                piece = inflate.unconsumed_tail or file.read(PIECE_BYTES)
                continue
            # Files that were put one behind the other are one gzip file, says its standard.
            piece = inflate.unused_data or file.read(PIECE_BYTES)
            if not piece:
                return
            inflate = zlib.decompressobj(wbits=31)
        yield inflate.flush()
        if inflate.eof:
            return
    except zlib.error as error:
        raise TraceError(f"{path}: the gzip data are damaged: {error}") from error
    notes.append("the gzip file is cut off")
