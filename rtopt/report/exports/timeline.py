"""The records of a trace as entries of a timeline, each kind in order of time."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rtopt.report.exports.tracks import Place, Tracks
from rtopt.types import DeviceEvent, HostEvent, Mark, Request, Sample, Step, Trace


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One event of the timeline; its times are apart so that they are written without loss."""

    t_ns: int
    dur_ns: int | None
    event: dict[str, object]


def entries(trace: Trace, tracks: Tracks) -> list[Iterator[TimelineEvent]]:
    """One sorted stream of entries for each kind."""
    return [
        _steps(trace.steps, tracks),
        iter(sorted(_requests(trace.requests, tracks), key=_time)),
        _marks(trace.marks, tracks),
        _samples(trace.samples, tracks),
        _host(trace.host, tracks),
        _device(trace.device, tracks),
        iter(sorted(_flows(trace, tracks), key=_time)),
    ]


def _steps(steps: Iterable[Step], tracks: Tracks) -> Iterator[TimelineEvent]:
    """A slice for each step, beside the engine's others where they overlap."""
    free_ns: dict[int, list[int]] = {}
    for step in sorted(steps, key=lambda s: s.t_ns - (s.dur_ns or 0)):
        begin_ns = step.t_ns - (step.dur_ns or 0)
        lanes = free_ns.setdefault(step.engine, [])
        lane = next((n for n, until in enumerate(lanes) if until <= begin_ns), len(lanes))
        lanes[lane : lane + 1] = [step.t_ns]
        event: dict[str, object] = {"cat": "step", "name": "step"}
        event |= _on(tracks.steps(step.engine, lane))
        event["args"] = _args(step, "t_ns", "dur_ns", "engine")
        what = {"ph": "i", "s": "t"} if step.dur_ns is None else {"ph": "X"}
        yield TimelineEvent(begin_ns, step.dur_ns, what | event)


def _requests(requests: Iterable[Request], tracks: Tracks) -> Iterator[TimelineEvent]:
    """A slice for each request, and in it one for each phase whose length is known."""
    for number, request in enumerate(requests):
        on = {"cat": "request", "id": number, **_on(tracks.requests())}
        begin_ns, end_ns = request.arrival_ns, max(request.arrival_ns, request.finished_ns)
        args = _args(request, "arrival_ns", "finished_ns", "blocks")
        yield TimelineEvent(begin_ns, None, {"ph": "b", "name": "request", **on, "args": args})
        at_ns = begin_ns
        for name, length_ms in (
            ("queued", request.queued_ms),
            ("prefill", request.prefill_ms),
            ("decode", request.decode_ms),
        ):
            if length_ms is None:
                break  # where the next one begins is unknown
            until_ns = min(end_ns, at_ns + max(0, round(length_ms * 1e6)))
            yield TimelineEvent(at_ns, None, {"ph": "b", "name": name, **on})
            yield TimelineEvent(until_ns, None, {"ph": "e", "name": name, **on})
            at_ns = until_ns
        yield TimelineEvent(end_ns, None, {"ph": "e", "name": "request", **on})


def _marks(marks: Iterable[Mark], tracks: Tracks) -> Iterator[TimelineEvent]:
    for mark in sorted(marks, key=lambda m: m.t_ns):
        event = {"ph": "i", "s": "g", "cat": "lever", "name": mark.what, **_on(tracks.marks())}
        yield TimelineEvent(mark.t_ns, None, {**event, "args": {"by": mark.by, **mark.knobs}})


def _samples(samples: Iterable[Sample], tracks: Tracks) -> Iterator[TimelineEvent]:
    """A counter for each value: values of one counter would be stacked, whatever their units."""
    for sample in sorted(samples, key=lambda s: s.t_ns):
        for name, value in sample.values.items():
            event = {"ph": "C", "name": f"{sample.source} {name}", **_on(tracks.state())}
            yield TimelineEvent(sample.t_ns, None, {**event, "args": {name: value}})


def _host(events: Iterable[HostEvent], tracks: Tracks) -> Iterator[TimelineEvent]:
    for event in sorted(events, key=lambda e: (e.t_ns, -e.dur_ns)):
        yield _slice(event, tracks.host(event))


def _device(events: Iterable[DeviceEvent], tracks: Tracks) -> Iterator[TimelineEvent]:
    for event in sorted(events, key=lambda e: (e.t_ns, -e.dur_ns)):
        yield _slice(event, tracks.device(event))


def _slice(event: HostEvent | DeviceEvent, place: Place) -> TimelineEvent:
    args = _args(event, "t_ns", "dur_ns", "name", "what", "rank", "thread", "device", "stream")
    return TimelineEvent(
        event.t_ns,
        event.dur_ns,
        {"ph": "X", "cat": event.what, "name": event.name, **_on(place), "args": args},
    )


def _flows(trace: Trace, tracks: Tracks) -> Iterator[TimelineEvent]:
    """An arrow from each launch to the first work with its correlation, where that came later."""
    first: dict[tuple[int | None, int], DeviceEvent] = {}
    for work in trace.device:
        if work.correlation is not None:
            key = work.rank, work.correlation
            if key not in first or work.t_ns < first[key].t_ns:
                first[key] = work
    flow = 0
    for launch in trace.host:
        if launch.what != "launch" or launch.correlation is None:
            continue
        started = first.pop((launch.rank, launch.correlation), None)
        if started is None or started.t_ns < launch.t_ns:
            continue
        flow += 1
        arrow: dict[str, object] = {"cat": "launch", "name": "launch", "id": flow}
        yield TimelineEvent(launch.t_ns, None, {"ph": "s", **arrow, **_on(tracks.host(launch))})
        end = {"ph": "f", "bp": "e", **arrow, **_on(tracks.device(started))}
        yield TimelineEvent(started.t_ns, None, end)


def _args(noun: Any, *without: str) -> dict[str, object]:
    """Fields that are there, apart from those that the timeline itself shows."""
    # A noun's slots are its fields.
    values = ((name, getattr(noun, name)) for name in noun.__slots__ if name not in without)
    return {name: value for name, value in values if value is not None and value != ()}


def _on(place: Place) -> dict[str, object]:
    pid, tid = place
    return {"pid": pid, "tid": tid}


def _time(entry: TimelineEvent) -> int:
    return entry.t_ns
