"""Where a server of this machine writes its profiler's files: its own command line says it."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import psutil

_FLAG: Final = "--profiler-config"
_DIR: Final = "torch_profiler_dir"
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def folder_of(url: str) -> Path | None:
    """The profiler's folder of the server at `url`.

    None when it is not known: the server is elsewhere, it is another user's, or its command line
    does not say. A listener on loopback may be a tunnel; then its command line is no server's.
    """
    parts = urlsplit(url)
    if parts.hostname not in _LOOPBACK or parts.port is None:
        return None
    for process in psutil.process_iter():
        try:
            if process.uids().effective != os.geteuid():
                continue
            found = profiler_dir(process.cmdline())
            if found is not None and _listens(process, parts.port):
                return found
        except (psutil.Error, OSError):
            continue  # it ended, or its sockets are not shown to us
    return None


def profiler_dir(words: Sequence[str]) -> Path | None:
    """The folder that a command line names, in any of the forms that vLLM takes."""
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if not equals and at + 1 < len(words):
            value = words[at + 1]
        if name == _FLAG:
            return _in_json(value)
        if name == f"{_FLAG}.{_DIR}":
            return _absolute(value)
    return None


def _in_json(text: str) -> Path | None:
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        return None
    value = config.get(_DIR) if isinstance(config, dict) else None
    return _absolute(value) if isinstance(value, str) else None


def _absolute(text: str) -> Path | None:
    """A path that means the same here; s3:// and relative ones do not."""
    path = Path(text)
    return path if path.is_absolute() and "\0" not in text else None


def _listens(process: psutil.Process, port: int) -> bool:
    return any(
        c.status == psutil.CONN_LISTEN and c.laddr.port == port
        for c in process.net_connections(kind="tcp")
    )
