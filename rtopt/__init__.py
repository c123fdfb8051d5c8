"""rtopt makes a running vLLM faster, and proves it: profile, predict, attribute, apply, report.

Names are loaded on first use, so `import rtopt` stays cheap inside any process.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rtopt.version import VERSION

if TYPE_CHECKING:
    from rtopt.errors import RtoptError
    from rtopt.session import Session, attach
    from rtopt.types import (
        Attribution,
        Cause,
        Change,
        Choice,
        Context,
        Deviation,
        Envelope,
        Lever,
        Load,
        Prediction,
        Slo,
        Trace,
        Trial,
        Verdict,
    )

_HOME = {
    "RtoptError": "rtopt.errors",
    "Session": "rtopt.session",
    "attach": "rtopt.session",
}
_TYPES = (
    "Attribution",
    "Cause",
    "Change",
    "Choice",
    "Context",
    "Deviation",
    "Envelope",
    "Lever",
    "Load",
    "Prediction",
    "Slo",
    "Trace",
    "Trial",
    "Verdict",
)

__all__ = [
    "Attribution",
    "Cause",
    "Change",
    "Choice",
    "Context",
    "Deviation",
    "Envelope",
    "Lever",
    "Load",
    "Prediction",
    "RtoptError",
    "Session",
    "Slo",
    "Trace",
    "Trial",
    "Verdict",
    "attach",
]

__version__ = VERSION


def __getattr__(name: str) -> Any:
    if name in _TYPES:
        return getattr(import_module("rtopt.types"), name)
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'rtopt' has no attribute {name!r}")
