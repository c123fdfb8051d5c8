"""The general plug-in: adds two new methods to EngineCore, and replaces none.

vLLM's own utility calls find them by name and run them on the engine's loop thread, between steps.
"""

import json
from concurrent.futures import Future
from typing import Any

from vllm.v1.engine.core import EngineCore

from .border import guarded
from .control import Control, RefusedError

_VERBS = ("state", "in_flight", "marks", "observe", "set", "renew", "commit", "restore")
_ATTRIBUTE = "_rtopt_control"


def _control(core: Any) -> Control:
    control = getattr(core, _ATTRIBUTE, None)
    if control is None:
        control = Control(core)
        setattr(core, _ATTRIBUTE, control)
    return control


@guarded("rtopt_call", default='{"error": {"code": "engine", "message": "the overlay failed"}}')
def rtopt_call(core: Any, message: str) -> str:
    """Carry out one JSON message {"verb", ...}; answer with JSON {"result"} or {"error"}."""
    args: dict[str, Any] = json.loads(message)
    verb = args.pop("verb", None)
    if verb not in _VERBS:
        return _error("usage", f"{verb!r}: unknown verb; known: {', '.join(_VERBS)}")
    try:
        return json.dumps({"result": getattr(_control(core), verb)(args)})
    except RefusedError as error:
        return _error(error.code, str(error))


def _error(code: str, message: str) -> str:
    return json.dumps({"error": {"code": code, "message": message}})


def rtopt_expire(core: Any) -> "Future[None]":
    """Restore the snapshot if the lease has run out; the future is never done, so none answers."""
    _expire(core)
    return Future()


@guarded("rtopt_expire")
def _expire(core: Any) -> None:
    _control(core).expire()


@guarded("install")
def install() -> None:
    """Add the methods, once in each process; later calls find them there."""
    for method in (rtopt_call, rtopt_expire):
        if method.__name__ not in vars(EngineCore):
            setattr(EngineCore, method.__name__, method)
