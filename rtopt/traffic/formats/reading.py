"""Reads a workload file of any known format."""

from pathlib import Path
from typing import Final

from rtopt.errors import TraceError
from rtopt.traffic.formats import azure, burstgpt, guidellm, own, timed_trace
from rtopt.types import Workload

FORMATS: Final = (own, azure, burstgpt, timed_trace, guidellm)
_HEAD: Final = 65_536


def read_workload(path: Path) -> Workload:
    """The workload in this file; what could not be read of it is in its notes.

    Raises:
        TraceError: It cannot be read, or is of no known format.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
    text = text.lstrip()
    first = text[:_HEAD].partition("\n")[0]
    if own.recognises(first):
        return own.read(text, path)
    if azure.recognises(first):
        return azure.read(text, path)
    if burstgpt.recognises(first):
        return burstgpt.read(text, path)
    if timed_trace.recognises(first):
        return timed_trace.read(text, path)
    # One object over many lines.
    if guidellm.recognises(text[:_HEAD]):
        return guidellm.read(text, path)
    known = ", ".join(candidate.NAME for candidate in FORMATS)
    raise TraceError(f"{path}: not a workload file; known formats: {known}")
