"""One rule: what it measures of a window, and from which share on it names its cause."""

from collections.abc import Callable
from dataclasses import dataclass

from rtopt.attribute.window import Window
from rtopt.types import Cause, Finding

BINDS_FROM = 0.2
"""A limit that binds for less than a fifth of the busy time is not named: lifted altogether it
would change that fifth only, which is within the noise of a pair of blocks on a busy machine
(17 % on the development machine)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A cause, the function that looks for it, and its threshold."""

    cause: Cause
    names_from: float
    """Smallest share with which the cause is named."""
    look: Callable[[Window], Finding]
    """Raises EvidenceError when the window does not carry what it needs."""
