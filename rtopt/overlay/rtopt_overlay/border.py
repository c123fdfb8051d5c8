"""The border between our code and vLLM: nothing of ours gets past it.

Every function that vLLM calls is wrapped by `guarded`. An exception is counted, logged once per
function, and replaced by a harmless value. `RTOPT_OVERLAY_FAIL=name,...` makes the named hooks
raise on purpose, and `RTOPT_OVERLAY_FAIL=@FILE` those named in a file that is read at each call;
the tests use it to show that the engine goes on serving.
"""

import functools
import inspect
import logging
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger("rtopt_overlay")
failures: Counter[str] = Counter()
"""Exceptions stopped at the border since the process started, by hook."""
_ASKED = os.environ.get("RTOPT_OVERLAY_FAIL", "")


class InjectedError(RuntimeError):
    """Raised on purpose by a test of the border."""


def _stopped(name: str, error: Exception) -> None:
    failures[name] += 1
    if failures[name] == 1:
        # Type only: a message could quote a prompt or a path.
        log.error("rtopt overlay: %s failed (%s); the engine goes on.", name, type(error).__name__)


def _fail_if_asked(name: str) -> None:
    if not _ASKED:
        return
    names = Path(_ASKED[1:]).read_text(encoding="utf-8") if _ASKED.startswith("@") else _ASKED
    if name in names.strip().split(","):
        raise InjectedError(name)


def guarded(name: str, default: Any = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Wrap a hook of ours (function or coroutine) so that it returns `default` when it fails."""

    def wrap(fn: Callable[P, R]) -> Callable[P, R]:
        if inspect.iscoroutinefunction(fn):

            @functools.wraps(fn)
            async def call_async(*args: P.args, **kwargs: P.kwargs) -> Any:
                try:
                    _fail_if_asked(name)
                    return await fn(*args, **kwargs)
                except Exception as error:  # noqa: BLE001 - this is the border
                    _stopped(name, error)
                    return default

            return call_async  # type: ignore[return-value]  # the coroutine variant of R

        @functools.wraps(fn)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                _fail_if_asked(name)
                return fn(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - this is the border
                _stopped(name, error)
                return default  # type: ignore[no-any-return]  # the harmless value

        return call

    return wrap


def guarded_stream(
    name: str,
) -> Callable[[Callable[P, AsyncIterator[bytes]]], Callable[P, AsyncIterator[bytes]]]:
    """Wrap an asynchronous generator of ours so that it just ends when it fails."""

    def wrap(fn: Callable[P, AsyncIterator[bytes]]) -> Callable[P, AsyncIterator[bytes]]:
        @functools.wraps(fn)
        async def stream(*args: P.args, **kwargs: P.kwargs) -> AsyncIterator[bytes]:
            try:
                _fail_if_asked(name)
                async for chunk in fn(*args, **kwargs):
                    yield chunk
            except Exception as error:  # noqa: BLE001 - this is the border
                _stopped(name, error)

        return stream

    return wrap
