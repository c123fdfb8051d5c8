"""From work on a device to the op that asked for it, by the correlation chain.

kernel -> the launch with the same correlation -> the innermost op or range around the launch, on
the same thread -> the step's annotation around that.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from rtopt.profile.ops.nesting import by_thread, parents
from rtopt.profile.ops.steps import is_step
from rtopt.types import DeviceEvent, HostEvent


@dataclass(frozen=True, slots=True)
class _Origin:
    op: str | None
    step: int | None


def by_correlation(
    device: Iterable[DeviceEvent], host: Iterable[HostEvent]
) -> tuple[DeviceEvent, ...]:
    """The same work, with `op`, `op_by` and `step` where the chain gives them.

    A correlation that two launches of a rank share tells nothing, and neither does a launch
    outside every op and range. The launch of a graph gives its work the step, and no op: it stands
    in one op for all of them.
    """
    device = tuple(device)
    origins = _origins(host)
    started = Counter((event.rank, event.correlation) for event in device)
    made = []
    for event in device:
        key = event.rank, event.correlation
        is_graph = event.graph is not None or started[key] > 1
        made.append(_with(event, origins.get(key), is_graph=is_graph))
    return tuple(made)


def _origins(host: Iterable[HostEvent]) -> dict[tuple[int | None, int | None], _Origin]:
    found: dict[tuple[int | None, int | None], _Origin] = {}
    doubled = set()
    steps: dict[int | None, int] = {}
    for events in by_thread(host):
        above = parents(events)
        numbers: dict[int, int] = {}
        for at, event in enumerate(events):
            if is_step(event):
                place = steps[event.rank] = steps.get(event.rank, -1) + 1
                numbers[at] = place if event.step is None else event.step
            if event.what != "launch" or event.correlation is None:
                continue
            key = (event.rank, event.correlation)
            if key in found:
                doubled.add(key)
            found[key] = _origin(events, above, numbers, at)
    return {key: origin for key, origin in found.items() if key not in doubled}


def _origin(
    events: list[HostEvent],
    above: tuple[int | None, ...],
    numbers: dict[int, int],
    at: int,
) -> _Origin:
    op, step = None, events[at].step
    up = above[at]
    while up is not None:
        outer = events[up]
        if up in numbers:
            step = numbers[up]
        elif op is None and outer.what in ("op", "range"):
            op = outer.name
        up = above[up]
    return _Origin(op, step)


def _with(event: DeviceEvent, origin: _Origin | None, *, is_graph: bool) -> DeviceEvent:
    if origin is None:
        return event
    step = event.step if origin.step is None else origin.step
    if origin.op is None or event.op is not None or is_graph:
        return replace(event, step=step)
    return replace(event, step=step, op=origin.op, op_by="correlation")
