"""Which host event lies in which: time containment, thread by thread."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rtopt.types import HostEvent


def by_thread(events: Iterable[HostEvent]) -> Iterator[list[HostEvent]]:
    """Events of each thread of each rank, outer before inner."""

    def place(event: HostEvent) -> tuple[int, int]:
        return _number(event.rank), _number(event.thread)

    def order(event: HostEvent) -> tuple[int, int, int, int]:
        return *place(event), event.t_ns, -event.dur_ns

    for _, group in groupby(sorted(events, key=order), key=place):
        yield list(group)


def parents(events: Sequence[HostEvent]) -> tuple[int | None, ...]:
    """Position of the innermost event around each one; events of one thread, outer before inner."""
    found: list[int | None] = []
    around: list[int] = []
    for at, event in enumerate(events):
        while around and not _holds(events[around[-1]], event):
            around.pop()
        found.append(around[-1] if around else None)
        around.append(at)
    return tuple(found)


def outermost(events: Iterable[HostEvent]) -> tuple[HostEvent, ...]:
    """Events of one thread that lie in no other of them, in order of time."""
    ordered = sorted(events, key=lambda e: (e.t_ns, -e.dur_ns))
    return tuple(e for e, p in zip(ordered, parents(ordered), strict=True) if p is None)


def _holds(outer: HostEvent, inner: HostEvent) -> bool:
    return inner.t_ns + inner.dur_ns <= outer.t_ns + outer.dur_ns


def _number(value: int | None) -> int:
    """For sorting alone: an unknown thread is a thread of its own."""
    return -1 if value is None else value
