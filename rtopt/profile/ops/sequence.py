"""From work on a device to its op, by its place in the step: for graphs, which hide the launches.

A known step is one whose ops were found, for example in an eager run of the same model. With the
same number of layers the steps are aligned as a whole; else layer by layer, and what comes before
and after likewise.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from rtopt.profile.ops.alignment import align
from rtopt.profile.ops.period import Period, find_period
from rtopt.profile.ops.reference import Key, key_of
from rtopt.types import DeviceEvent

Node = tuple[int | None, int, int]
"""Rank, graph and node: ids of graphs and nodes are those of one process."""

MAX_ALIGNED: Final = 4096
"""Longest stretch that is aligned as a whole: its table takes the square of it."""
MIN_KNOWN_FRAC: Final = 0.5
"""Share of the known step that must be found again: a few kernels have no place in it."""


def by_sequence(
    device: Sequence[DeviceEvent], known: Sequence[DeviceEvent]
) -> tuple[DeviceEvent, ...]:
    """The work of one step on one stream, with the ops of those that had none.

    Args:
        device: The step, some of whose ops are unknown.
        known: A step of the same model with its ops, on one stream.
    """
    device = sorted(device, key=lambda e: e.t_ns)
    known = sorted(known, key=lambda e: e.t_ns)
    pairs = _pairs(device, known)
    return tuple(_with(event, known, pairs.get(at)) for at, event in enumerate(device))


def by_node(device: Iterable[DeviceEvent]) -> tuple[DeviceEvent, ...]:
    """The same work, with the ops that its nodes of a graph had in other replays.

    A node that had several ops tells nothing.
    """
    device = tuple(device)
    ops: dict[Node, set[str]] = {}
    for event in device:
        if (node := _node(event)) is not None and event.op is not None:
            ops.setdefault(node, set()).add(event.op)
    return tuple(_of_node(event, ops) for event in device)


def _pairs(device: Sequence[DeviceEvent], known: Sequence[DeviceEvent]) -> dict[int, int]:
    """Position in the known step for each position of the unknown one that has any."""
    found, wanted = [key_of(e) for e in device], [key_of(e) for e in known]
    here, there = find_period(found), find_period(wanted)
    if here is None or there is None or here.layers == there.layers:
        pairs = _aligned(found, wanted, (0, len(found)), (0, len(wanted)))
        return pairs if len(pairs) >= MIN_KNOWN_FRAC * len(wanted) else {}
    pairs = _aligned(found, wanted, (0, here.begin), (0, there.begin))
    for span in here.spans:
        pairs |= _aligned(found, wanted, (span.begin, span.end), _two_layers(there))
    ends = (here.end, len(found)), (there.end, len(wanted))
    return pairs | _aligned(found, wanted, *ends)


def _aligned(
    found: Sequence[Key], wanted: Sequence[Key], here: tuple[int, int], there: tuple[int, int]
) -> dict[int, int]:
    """Pairs of positions within a stretch of each; none where the stretches are too long."""
    (begin, end), (first, last) = here, there
    if max(end - begin, last - first) > MAX_ALIGNED:
        return {}
    pairs = align(found[begin:end], wanted[first:last])
    return {begin + i: first + j for i, j in pairs}


def _two_layers(period: Period) -> tuple[int, int]:
    """Two layers in a row: where a layer was found to begin may differ between the two steps."""
    return period.spans[0].begin, period.spans[min(1, len(period.spans) - 1)].end


def _with(event: DeviceEvent, known: Sequence[DeviceEvent], at: int | None) -> DeviceEvent:
    if event.op is not None or at is None or known[at].op is None:
        return event
    return replace(event, op=known[at].op, op_by="sequence")


def _node(event: DeviceEvent) -> Node | None:
    if event.graph is None or event.node is None:
        return None
    return event.rank, event.graph, event.node


def _of_node(event: DeviceEvent, ops: Mapping[Node, set[str]]) -> DeviceEvent:
    node = _node(event)
    found = ops.get(node, set()) if node is not None else set()
    if event.op is not None or len(found) != 1:
        return event
    return replace(event, op=next(iter(found)), op_by="sequence")
