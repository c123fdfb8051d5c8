"""Where each record of a trace stands in a timeline: processes and threads with names.

A track of predictions gets a process of its own beside "measured".
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from rtopt.types import DeviceEvent, HostEvent

ENGINE: Final = 1
REQUESTS: Final = 2
STATE: Final = 3
_HOST: Final = 100
_DEVICE: Final = 10_000

Place = tuple[int, int]
"""Process and thread of the timeline."""


@dataclass(slots=True)
class Tracks:
    """Numbers for what the trace names, given in order of appearance."""

    processes: dict[int, str] = field(default_factory=dict)
    threads: dict[Place, str] = field(default_factory=dict)
    _places: dict[tuple[object, ...], Place] = field(default_factory=dict)
    _pids: dict[tuple[object, ...], int] = field(default_factory=dict)

    def steps(self, engine: int, lane: int) -> Place:
        """Track of an engine's steps; steps that overlap are in different lanes."""
        self.processes[ENGINE] = "measured: engine"
        key = "steps", engine, lane
        if key not in self._places:
            self._places[key] = ENGINE, self._next_tid(ENGINE)
            beside = _named(", beside", lane or None)
            self.threads[self._places[key]] = f"steps of engine {engine}{beside}"
        return self._places[key]

    def marks(self) -> Place:
        """Track of what was done to the engine."""
        self.processes[ENGINE] = "measured: engine"
        self.threads[ENGINE, 0] = "levers"
        return ENGINE, 0

    def requests(self) -> Place:
        """Track under which requests are shown, each a line of its own."""
        self.processes[REQUESTS] = "measured: requests"
        return REQUESTS, 0

    def state(self) -> Place:
        """Track of the counters."""
        self.processes[STATE] = "measured: state"
        return STATE, 0

    def host(self, event: HostEvent) -> Place:
        """Track of a host thread."""
        name = f"measured: host{_named(' rank', event.rank)}"
        return self._place(_HOST, ("host", event.rank), name, "thread", event.thread)

    def device(self, event: DeviceEvent) -> Place:
        """Track of a stream of a device."""
        name = f"measured: device{_named('', event.device)}{_named(' rank', event.rank)}"
        key = ("device", event.rank, event.device)
        return self._place(_DEVICE, key, name, "stream", event.stream)

    def _place(
        self, first: int, key: tuple[object, ...], name: str, word: str, number: int | None
    ) -> Place:
        whole = (*key, number)
        if whole not in self._places:
            pid = self._pids.setdefault(key, first + len(self._pids))
            self.processes[pid] = name
            place = self._places[whole] = pid, self._next_tid(pid)
            self.threads[place] = f"{word}{_named('', number) or ' unknown'}"
        return self._places[whole]

    def _next_tid(self, pid: int) -> int:
        return 1 + sum(1 for known, _ in self._places.values() if known == pid)


def metadata(tracks: Tracks) -> Iterator[dict[str, object]]:
    """Names and order of the tracks, as timeline events."""
    for pid, name in tracks.processes.items():
        yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
        yield {"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": pid}}
    for (pid, tid), name in tracks.threads.items():
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}


def _named(word: str, number: int | None) -> str:
    return "" if number is None else f"{word} {number}"
