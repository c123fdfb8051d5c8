"""Whether an engine runs on this machine, so that this machine's state is about it."""

import time
from typing import Final, Protocol, runtime_checkable

from rtopt.types import Clock, Engine, Trace

SAME_CLOCK_S: Final = 0.1
"""Machines differ in when they were started by far more; readings of one machine by far less."""


@runtime_checkable
class Located(Protocol):
    """An engine whose traces carry our clock, and that can tell where it runs by another way."""

    def is_local(self) -> bool:
        """Whether it runs on this machine; False also when that is not known."""
        ...


def is_here(engine: Engine, trace: Trace) -> bool:
    """Whether this machine's state belongs to the trace; False also when that is not known.

    The monotonic clock counts from the start of a machine, so it lies at the same distance from
    Unix time in every process of one machine, and at another on other machines.
    """
    match trace.header.source:
        case "overlay":
            return _is_our_clock(trace.end.clock) or _is_our_clock(trace.header.clock)
        case "metrics":
            return isinstance(engine, Located) and engine.is_local()
        case _:
            return False


def _is_our_clock(clock: Clock) -> bool:
    ours_ns = time.time_ns() - time.monotonic_ns()
    return abs((clock.unix_ns - clock.mono_ns) - ours_ns) < SAME_CLOCK_S * 1e9
