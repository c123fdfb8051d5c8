"""Stage 5: claim, evidence, intervention, delta, in one file.

`render` draws figures, so it is loaded on first use: matplotlib takes a second to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rtopt.report.chain import Chain, fingerprint

if TYPE_CHECKING:
    from rtopt.report.console import describe_plan, describe_run
    from rtopt.report.page import render

__all__ = ["Chain", "describe_plan", "describe_run", "fingerprint", "render"]

_HOME = {"render": "page", "describe_plan": "console", "describe_run": "console"}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"rtopt.report.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rtopt.report' has no attribute {name!r}")
