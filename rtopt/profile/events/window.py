"""One event window: the server's own profiler on for a few steps, and then surely off."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rtopt.engines.window import EventWindow, event_window
from rtopt.errors import EngineError, GoneError, HeldError, UnavailableError, UsageError
from rtopt.profile.events.files import FileSearch
from rtopt.profile.events.folder import folder_of
from rtopt.profile.events.routes import FLAG, ProfilerRoutes
from rtopt.profile.events.source import choose
from rtopt.types import Engine, Plane, Progress, silent

MAX_ITERATIONS: Final = 1000
"""A step of a large model writes about a megabyte per rank."""
WAIT_S: Final = 60.0
_POLL_S: Final = 0.2
_BLIND_S: Final = 5.0
"""Waited for the steps when the server does not count them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """What one event window gave."""

    plane: Plane
    """For `Header.planes`."""
    files: tuple[Path, ...]
    """On this machine, one per rank; empty when they lie elsewhere."""
    where: str
    """One sentence for a person: where the files lie."""


def events(
    engine: Engine,
    url: str,
    *,
    iterations: int,
    folder: Path | None = None,
    wait_s: float = WAIT_S,
    progress: Progress = silent,
) -> Events:
    """Let the server profile some steps of the traffic that it has, and find the files.

    Args:
        engine: The engine at `url`.
        url: The server's address.
        iterations: Steps to profile.
        folder: Where the server's files show on this machine, for example a mounted folder; None:
            read from the server's command line when it runs here.
        wait_s: Longest time to wait for that many steps; then what was seen is kept.
        progress: Told what is waited for.

    Raises:
        UsageError: A number of steps or a folder that cannot be used. No profiler was started.
        UnavailableError: The server has no profiler; the message has the flag to restart with.
        HeldError: A trial runs on the engine, or another profiler is on.
        EngineError: The server refused, went away, or the stop was not confirmed.
    """
    _check(iterations, folder, wait_s)
    with ProfilerRoutes(url) as routes:
        plane = choose(engine, routes)
        if plane.name == "none":
            raise UnavailableError(str(plane.reason), flag=FLAG)
        state = engine.state()
        with event_window(state.boot) as window:
            if state.held is not None:
                raise HeldError(
                    f"{routes.url}: {state.held.holder} has a trial on this engine for another"
                    f" {state.held.remaining_s:.0f} s, and a profiler would spoil what it measures."
                    " No profiler was started."
                )
            prefix = f"rtopt-{secrets.token_hex(4)}"
            search = FileSearch(folder or folder_of(routes.url), prefix)
            with _profiler(routes, window, iterations, prefix):
                _wait(routes, iterations, wait_s, progress)
                progress("the server writes its events; this can take minutes", None)
        files = search.found()
    return Events(plane=plane, files=files, where=search.where(files))


@contextmanager
def _profiler(
    routes: ProfilerRoutes, window: EventWindow, iterations: int, prefix: str
) -> Iterator[None]:
    """The profiler on within the block, and off after it, whatever happens."""
    if window.is_marked():
        routes.stop()  # left on by a window that was cut off
    window.mark()
    try:
        routes.start(iterations=iterations, prefix=prefix)
    except HeldError:
        window.clear()  # not ours: the server said that it belongs to somebody else
        raise
    except GoneError:
        window.clear()
        raise
    except EngineError as error:
        _off(routes, window, error)
        raise
    try:
        yield
    except BaseException as error:
        _off(routes, window, error)
        raise
    _off(routes, window, None)


def _off(routes: ProfilerRoutes, window: EventWindow, cause: BaseException | None) -> None:
    """Stop it; the mark stays, and bars trials, until a stop was confirmed."""
    try:
        routes.stop()
    except GoneError:
        window.clear()  # the engine has ended, and its profiler with it
        if cause is None:
            raise
    except EngineError as error:
        raise EngineError(
            f"{error}. The profiler may still be on until it has seen its steps; no trial is"
            " started on this engine before `rtopt profile URL --events 1` has stopped it."
        ) from (cause or error)
    else:
        window.clear()


def _wait(routes: ProfilerRoutes, iterations: int, wait_s: float, progress: Progress) -> None:
    """Until the engine made the steps; one more, in which its workers stop by themselves."""
    began_s, first = time.monotonic(), routes.steps()
    limit_s = wait_s if first is not None else min(wait_s, _BLIND_S)
    while (waited_s := time.monotonic() - began_s) < limit_s:
        done = (routes.steps() or 0) - first if first is not None else None
        if done is not None and done > iterations:
            return
        seen = "" if done is None else f"{min(done, iterations)} of {iterations} steps, "
        progress(f"profiling: {seen}{waited_s:.0f} s of at most {limit_s:.0f} s", None)
        time.sleep(min(_POLL_S, limit_s - waited_s))


def _check(iterations: int, folder: Path | None, wait_s: float) -> None:
    if not 1 <= iterations <= MAX_ITERATIONS:
        raise UsageError(
            f"events of {iterations} steps: wanted 1 to {MAX_ITERATIONS}. No profiler was started."
        )
    if not 0 < wait_s < float("inf"):
        raise UsageError(f"wait of {wait_s:g} s: wanted more than 0. No profiler was started.")
    if folder is not None and not folder.is_dir():
        raise UsageError(f"{folder}: not a folder. No profiler was started.")
