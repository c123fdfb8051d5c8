"""Every way from a kernel to its op, one after the other, over a whole trace."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rtopt.profile.ops.correlation import by_correlation
from rtopt.profile.ops.reference import by_reference, dictionary
from rtopt.profile.ops.sequence import by_node, by_sequence
from rtopt.types import DeviceEvent, Trace

Lane = tuple[int | None, int | None, int | None, int | None]
"""Rank, device, stream and step."""


def name_ops(trace: Trace, reference: Trace | None = None) -> Trace:
    """The trace with the op of each piece of device work where it can be found.

    First the correlation chain, then the place in the step, other replays, and a dictionary.

    Args:
        trace: Its host events give the launches and the steps.
        reference: An eager run of the same model on the same version; None: the trace itself.
    """
    device = by_correlation(trace.device, trace.host)
    known = device if reference is None else by_correlation(reference.device, reference.host)
    model = _fullest(_lanes(known))
    if model:
        lanes = _lanes(device)
        named = (_in_sequence(lane, events, model) for lane, events in lanes.items())
        device = tuple(sorted((e for events in named for e in events), key=lambda e: e.t_ns))
    return replace(trace, device=by_reference(by_node(device), dictionary(known)))


def _lanes(device: Iterable[DeviceEvent]) -> dict[Lane, list[DeviceEvent]]:
    lanes: dict[Lane, list[DeviceEvent]] = {}
    for event in device:
        lanes.setdefault((event.rank, event.device, event.stream, event.step), []).append(event)
    return lanes


def _fullest(lanes: Mapping[Lane, list[DeviceEvent]]) -> list[DeviceEvent]:
    """The step on one stream with most known ops; empty when there is none."""
    counts = {
        lane: sum(event.op is not None for event in events)
        for lane, events in lanes.items()
        if lane[-1] is not None
    }
    if not counts or not max(counts.values()):
        return []
    return lanes[max(counts, key=lambda lane: counts[lane])]


def _in_sequence(
    lane: Lane, events: list[DeviceEvent], model: list[DeviceEvent]
) -> Iterable[DeviceEvent]:
    """Aligned with the model's step, where the events are one step and something is unknown."""
    if lane[-1] is None or all(event.op is not None for event in events):
        return events
    return by_sequence(events, model)
