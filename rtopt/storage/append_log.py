"""A file of JSON lines that only grows, where each line is on the disk before the call returns."""

import errno
import fcntl
import os
from pathlib import Path
from typing import Any, BinaryIO

from rtopt.errors import TraceError, UsageError
from rtopt.storage.codec import dump, parse


class AppendLog:
    """One JSON object a line.

    A process that dies within an append leaves a torn last line. It was never confirmed to anybody:
    `read` leaves it out and says so in `torn`, the next append removes it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.torn: str | None = None
        """What `read` left out: the beginning of a line that was never finished, or None."""

    @property
    def path(self) -> Path:
        """The file; it need not be there yet."""
        return self._path

    def append(self, record: dict[str, Any]) -> None:
        """Add one record; it is on the disk when this returns. Safe from several processes.

        Raises:
            UsageError: The file cannot be written; at most a torn last line was added.
        """
        line = (dump(record) + "\n").encode("ascii")
        try:
            self._write(line)
        except OSError as error:
            raise UsageError(f"{self._path}: cannot be written: {error.strerror}") from error

    def read(self) -> tuple[dict[str, Any], ...]:
        """Every record, oldest first; a log that is not there yet is empty.

        Raises:
            TraceError: A line other than a torn last one is not a JSON object.
        """
        self.torn = None
        try:
            *lines, rest = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise TraceError(f"{self._path}: cannot be read: {error.strerror}") from error
        if rest:
            self.torn = rest.decode("utf-8", errors="replace")
        return tuple(
            self._record(text, f"{self._path}:{number}")
            for number, text in enumerate(lines, start=1)
        )

    def _write(self, line: bytes) -> None:
        is_new = not self._path.exists()
        with self._path.open("a+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.truncate(_whole_bytes(file))
            if file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
        if is_new:
            _sync_folder(self._path.parent)

    def _record(self, text: bytes, where: str) -> dict[str, Any]:
        data = parse(text, where=where)
        if not isinstance(data, dict):
            raise TraceError(f"{where}: found {type(data).__name__}, wanted a JSON object")
        return data


def _whole_bytes(file: BinaryIO) -> int:
    """Length up to and including the last line break."""
    position = file.seek(0, os.SEEK_END)
    while position > 0:
        start = max(0, position - 4096)
        file.seek(start)
        at = file.read(position - start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        position = start
    return 0


def _sync_folder(folder: Path) -> None:
    """Put the new file's name itself on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
