"""No gate window runs with a profiler on: trials and event windows of an engine exclude each other.

A lock per start of the engine, in rtopt's state folder, bars both sides as long as their processes
live. A profiler outlives the process that started it, so the file keeps a mark from before it is
started until its stop was confirmed; no trial begins while the mark stands. This covers every
rtopt of one user on one machine. A trial from elsewhere shows by its lease, and another's profiler
by the server's refusal to start a second one.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rtopt.errors import HeldError, UsageError
from rtopt.storage import state_root

_MARK: Final = b"profiler"
_STOP: Final = (
    "`curl -X POST URL/stop_profile` alone does not lift this: `rtopt profile URL --events 1`"
    " stops it, and confirms that"
)


class EventWindow:
    """The right to switch a profiler on."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def is_marked(self) -> bool:
        """Whether an earlier window was cut off, so that its profiler may still be on."""
        return _has_mark(self._handle)

    def mark(self) -> None:
        """Note that a profiler may be on from now."""
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, _MARK, 0)
        os.fsync(self._handle)

    def clear(self) -> None:
        """Note that it is off: its stop was confirmed."""
        os.ftruncate(self._handle, 0)


@contextmanager
def event_window(boot: str) -> Iterator[EventWindow]:
    """Bar trials on the engine of this start; a mark that an earlier window left stays until clear.

    Raises:
        HeldError: A trial or another event window is open on it.
    """
    with _locked(boot, fcntl.LOCK_EX) as handle:
        if handle is None:
            raise HeldError(
                "a trial, or another event window, runs on this engine, and a profiler would"
                " spoil what it measures. No profiler was started; try again when it has ended."
            )
        yield EventWindow(handle)


@contextmanager
def trial_window(boot: str) -> Iterator[None]:
    """Bar event windows on the engine of this start; several trials are the lease's affair.

    Raises:
        HeldError: An event window is open, or one was cut off and its profiler may still be on.
    """
    with _locked(boot, fcntl.LOCK_SH) as handle:
        if handle is None:
            raise HeldError(
                "an event window is open on this engine: with a profiler on, nothing that a trial"
                " measures would count. Nothing was changed; try again when it has ended."
            )
        if _has_mark(handle):
            raise HeldError(
                "an event window on this engine was cut off, so its profiler may still be on, and"
                f" nothing that a trial measures would count. Nothing was changed. {_STOP}."
            )
        yield


@contextmanager
def _locked(boot: str, how: int) -> Iterator[int | None]:
    """The open file under its lock, or None when somebody else has it."""
    path = _file_of(boot)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError(
            f"windows/{path.name} in rtopt's state folder: {error.strerror}; wanted to write it,"
            " so that no trial runs with a profiler on. Nothing was changed."
        ) from error
    try:
        try:
            fcntl.flock(handle, how | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield handle
    finally:
        os.close(handle)


def _has_mark(handle: int) -> bool:
    return bool(os.pread(handle, len(_MARK), 0))


def _file_of(boot: str) -> Path:
    return state_root() / "windows" / hashlib.sha256(boot.encode()).hexdigest()[:16]
