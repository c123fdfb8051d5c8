"""A dictionary from a reference run: which op a kernel belongs to, by name, grid and block."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rtopt.types import DeviceEvent

Key = tuple[str, tuple[int, int, int] | None, tuple[int, int, int] | None]


def key_of(event: DeviceEvent) -> Key:
    """What stays the same between two runs of one model on one version of the engine."""
    return event.name, event.grid, event.block


def dictionary(reference: Iterable[DeviceEvent]) -> dict[Key, str]:
    """Op of each kernel of a run whose ops are known; a kernel of several ops is left out."""
    ops: dict[Key, set[str]] = {}
    for event in reference:
        if event.op is not None:
            ops.setdefault(key_of(event), set()).add(event.op)
    return {key: next(iter(found)) for key, found in ops.items() if len(found) == 1}


def by_reference(
    device: Iterable[DeviceEvent], known: Mapping[Key, str]
) -> tuple[DeviceEvent, ...]:
    """The same work, with the op of those that had none and are in the dictionary."""
    return tuple(
        replace(event, op=known[key_of(event)], op_by="reference")
        if event.op is None and key_of(event) in known
        else event
        for event in device
    )
