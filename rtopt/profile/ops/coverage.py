"""How much of the devices' time belongs to a known op."""

from collections.abc import Sequence
from typing import Final

from rtopt.errors import EvidenceError
from rtopt.types import DeviceEvent

MAX_UNMATCHED_FRAC: Final = 0.1
"""Share of the time that may belong to no op; above it there is no verdict on ops."""


def unknown_frac(device: Sequence[DeviceEvent]) -> float | None:
    """Share of the devices' time that belongs to no known op; None without any time."""
    total_ns = sum(event.dur_ns for event in device)
    unknown_ns = sum(event.dur_ns for event in device if event.op is None)
    return unknown_ns / total_ns if total_ns else None


def check_known(device: Sequence[DeviceEvent]) -> float:
    """Share of the devices' time that belongs to no known op.

    Raises:
        EvidenceError: No time was seen, or the share is above `MAX_UNMATCHED_FRAC`.
    """
    frac = unknown_frac(device)
    if frac is None:
        raise EvidenceError(
            f"{len(device)} records of work on a device, and no time in them; wanted kernels with"
            " durations. No verdict on ops."
        )
    return check_frac(frac)


def check_frac(unmatched_frac: float) -> float:
    """The share itself, where it allows a verdict.

    Raises:
        EvidenceError: It is above `MAX_UNMATCHED_FRAC`.
    """
    if unmatched_frac > MAX_UNMATCHED_FRAC:
        raise EvidenceError(
            f"{unmatched_frac:.0%} of the time is not matched to an op of the model; wanted at"
            f" most {MAX_UNMATCHED_FRAC:.0%}. No verdict on ops.",
            unmatched_frac=unmatched_frac,
        )
    return unmatched_frac
