"""Bringing events of a source with a clock of its own onto the engine's monotonic clock.

Both clocks were read together with Unix time, at least once, best at the start and at the stop.
Between two such readings the offset is interpolated, so the error is at most what the readings
leave open, plus what the offset moved from one to the other: that holds for every drift that does
not turn back. Outside them an offset can move by `MAX_DRIFT` at most.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rtopt.errors import EvidenceError
from rtopt.types import Clock, DeviceEvent, HostEvent, Trace

MAX_DRIFT: Final = (1, 2000)
"""500 ppm, as a fraction: the most by which Linux lets a clock's rate be corrected.

Source: adjtimex(2), Linux man-pages 6.9, `freq` and `tolerance`.
"""
CLOCK_ERROR_NS: Final = 100_000
"""Taken for a pair of which nobody noted how far apart its two readings were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One moment read on two clocks."""

    from_ns: int
    to_ns: int
    error_ns: int = CLOCK_ERROR_NS
    """Most by which the two moments were apart."""


def read_together(clock: Callable[[], int]) -> Reading:
    """Read a source's clock between two readings of Unix time."""
    before_ns = time.time_ns()
    from_ns = clock()
    after_ns = time.time_ns()
    width_ns = max(0, after_ns - before_ns)
    return Reading(from_ns=from_ns, to_ns=before_ns + width_ns // 2, error_ns=(width_ns + 1) // 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockLine:
    """From one clock to another, over what was read together."""

    first: Reading
    last: Reading

    def to(self, from_ns: int) -> int:
        """The moment on the other clock."""
        began_ns, length_ns = self.first.from_ns, self.last.from_ns - self.first.from_ns
        offset_ns = self.first.to_ns - began_ns
        if not length_ns:
            return from_ns + offset_ns
        moved_ns = self.last.to_ns - self.last.from_ns - offset_ns
        inside_ns = min(max(from_ns - began_ns, 0), length_ns)
        return from_ns + offset_ns + moved_ns * inside_ns // length_ns

    def error_ns(self, begin_ns: int, end_ns: int) -> int:
        """Most by which `to` is wrong between two moments of the first clock."""
        read_ns = max(self.first.error_ns, self.last.error_ns)
        moved_ns = abs(self.last.to_ns - self.last.from_ns - self.first.to_ns + self.first.from_ns)
        outside_ns = max(0, self.first.from_ns - begin_ns, end_ns - self.last.from_ns)
        part, whole = MAX_DRIFT
        # The last 4 are what rounding to whole nanoseconds takes.
        return read_ns + moved_ns + outside_ns * part // whole + 4


def line_of(readings: Sequence[Reading]) -> ClockLine:
    """The line through the first and the last reading.

    Raises:
        EvidenceError: There is no reading, or a clock ran backwards.
    """
    if not readings:
        raise EvidenceError(
            "the event source's clock was never read together with Unix time; wanted one pair or"
            " more. The events were not aligned."
        )
    first = min(readings, key=lambda r: r.from_ns)
    last = max(readings, key=lambda r: r.from_ns)
    if last.to_ns + last.error_ns < first.to_ns - first.error_ns:
        raise EvidenceError(
            f"a clock ran back by {(first.to_ns - last.to_ns) / 1e9:g} s between two readings, so"
            " it was set meanwhile. The events were not aligned."
        )
    return ClockLine(first=first, last=last)


def align_events(trace: Trace, source: Sequence[Reading]) -> Trace:
    """The trace with its device and host events on the engine's clock, and the error in the header.

    Args:
        trace: Its events are on the source's clock, everything else on the engine's.
        source: From the source's clock to Unix time.

    Raises:
        EvidenceError: The clocks cannot be brought together.
    """
    events: tuple[DeviceEvent | HostEvent, ...] = (*trace.device, *trace.host)
    if not events:
        return trace
    to_unix = line_of(source)
    to_mono = line_of([_reading(trace.header.clock), _reading(trace.end.clock)])
    begin_ns = min(e.t_ns for e in events)
    end_ns = max(e.t_ns + e.dur_ns for e in events)
    unix_error_ns = to_unix.error_ns(begin_ns, end_ns)
    error_ns = unix_error_ns + to_mono.error_ns(
        to_unix.to(begin_ns) - unix_error_ns, to_unix.to(end_ns) + unix_error_ns
    )

    def moved(t_ns: int) -> int:
        return to_mono.to(to_unix.to(t_ns))

    return replace(
        trace,
        header=replace(
            trace.header, clock_error_ns=max(error_ns, trace.header.clock_error_ns or 0)
        ),
        device=tuple(replace(e, t_ns=moved(e.t_ns)) for e in trace.device),
        host=tuple(replace(e, t_ns=moved(e.t_ns)) for e in trace.host),
    )


def _reading(clock: Clock) -> Reading:
    return Reading(from_ns=clock.unix_ns, to_ns=clock.mono_ns)
