"""Folders of runs, in the place where the desktop standard keeps a program's state."""

import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rtopt.errors import TraceError, UsageError
from rtopt.storage.noun_file import read_object, write_whole

RUN_FILE: Final = "run.json"
NUM_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDir:
    """One run's folder. Ids sort by time and name neither host nor user."""

    id: str
    path: Path

    def about(self) -> dict[str, Any]:
        """Read run.json: kind, created_unix_ns, settings.

        Raises:
            TraceError: It is damaged.
        """
        file = self.path / RUN_FILE
        about = {"settings": {}, **read_object(file)}
        for name, type_ in {"kind": str, "created_unix_ns": int, "settings": dict}.items():
            if not isinstance(about.get(name), type_):
                raise TraceError(f"{file}: no proper {name!r}; the file is damaged")
        return about


def state_root() -> Path:
    """Folder of rtopt's state: $XDG_STATE_HOME/rtopt, by default ~/.local/state/rtopt.

    Raises:
        UsageError: XDG_STATE_HOME is not an absolute path, or not set and nobody has a home here.

    Source:
        XDG Base Directory Specification 0.8.
    """
    given = os.environ.get("XDG_STATE_HOME")
    if not given:
        return home() / ".local" / "state" / "rtopt"
    if not Path(given).is_absolute():
        raise UsageError(f"XDG_STATE_HOME={given}: must be an absolute path. Nothing was written.")
    return Path(given) / "rtopt"


def home() -> Path:
    """Home folder of whoever runs this.

    Raises:
        UsageError: There is none.
    """
    try:
        return Path.home()
    except RuntimeError as error:  # a container's user without HOME and without a name
        raise UsageError(
            "there is no home folder here: set HOME, or XDG_STATE_HOME and XDG_CACHE_HOME."
            " Nothing was written."
        ) from error


def runs_root() -> Path:
    """Folder of the runs."""
    return state_root() / "runs"


def new_run(kind: str, settings: Mapping[str, Any] | None = None) -> RunDir:
    """Make the folder of a new run, with its run.json.

    Args:
        kind: The command, for example "tune".
        settings: Effective configuration, as plain JSON values.

    Raises:
        UsageError: The folder cannot be made.
    """
    unix_ns = time.time_ns()
    moment = datetime.fromtimestamp(unix_ns // 10**9, UTC)
    stamp = f"{moment:%Y%m%d-%H%M%S}-{unix_ns // 10**6 % 1000:03d}"
    name = f"{stamp}-{kind}-{secrets.token_hex(2)}"
    path = runs_root() / name
    try:
        path.mkdir(parents=True, mode=0o700)
        write_whole(
            path / RUN_FILE,
            {"kind": kind, "created_unix_ns": unix_ns, "settings": dict(settings or {})},
        )
    except OSError as error:
        raise UsageError(f"{path}: cannot be made: {error.strerror}") from error
    return RunDir(id=name, path=path)


def list_runs() -> tuple[RunDir, ...]:
    """Every run, latest first."""
    root = runs_root()
    try:
        found = [RunDir(id=path.name, path=path) for path in root.iterdir() if _is_run(path)]
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise UsageError(f"{root}: cannot be read: {error.strerror}") from error
    return tuple(sorted(found, key=lambda run: run.id, reverse=True))


def find_run(name_or_path: str | Path) -> RunDir:
    """Find a run by its id, or by the path of its folder.

    Raises:
        UsageError: There is none; the message lists the latest ones.
    """
    given = Path(name_or_path)
    for path in (runs_root() / given, given.absolute()):
        if _is_run(path):
            return RunDir(id=path.name, path=path)
    latest = [run.id for run in list_runs()[:NUM_SHOWN]]
    shown = "Latest: " + ", ".join(latest) if latest else "There are none"
    raise UsageError(f"run {str(name_or_path)!r}: not found in {runs_root()}. {shown}.")


def _is_run(path: Path) -> bool:
    try:
        return (path / RUN_FILE).is_file()
    except OSError:  # no permission, or not even a possible name
        return False
