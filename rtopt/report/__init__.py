"""Stage 5: claim, evidence, intervention, delta, in one file.

`render` draws figures, so it is loaded on first use: matplotlib takes a second to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rtopt.report.chain import Chain, fingerprint

if TYPE_CHECKING:
    from rtopt.report.page import render

__all__ = ["Chain", "fingerprint", "render"]


def __getattr__(name: str) -> Any:
    if name == "render":
        return import_module("rtopt.report.page").render
    raise AttributeError(f"module 'rtopt.report' has no attribute {name!r}")
