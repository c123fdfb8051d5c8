"""Events of this process's own work on an NVIDIA device, through CUPTI's activity API.

Not yet run on a GPU: written against the documented calls and records of cupti-python 13.0 to
13.4, and tested on stand-ins. Records are read by their attributes, since their classes are
renamed with each release. CUPTI has one pair of buffer callbacks per process, and the last who
registers wins: so we subscribe first, and register nothing where that is refused.

Source:
    cupti-python 13.x documentation, "Activity API"; CUPTI 13 documentation, CUptiResult and
    CUpti_ActivityKind.
"""

import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from rtopt.backends.cupti_library import Cupti, busy, version
from rtopt.backends.cupti_records import KINDS, Kind, event_of
from rtopt.errors import UnavailableError
from rtopt.types import DeviceEvent, HostEvent, Plane

NAME: Final = "cupti"
DEFAULT_KINDS: Final[tuple[Kind, ...]] = ("kernel", "memcpy", "memset")
BUFFER_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockPair:
    """CUPTI's clock between two readings of Unix time."""

    cupti_ns: int
    before_ns: int
    after_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What one session saw; times are nanoseconds of CUPTI's clock."""

    plane: Plane
    device: tuple[DeviceEvent, ...]
    host: tuple[HostEvent, ...]
    pairs: tuple[ClockPair, ClockPair]
    """At the start and at the stop."""
    dropped: int | None
    """Records that CUPTI had no buffer for; None when it does not tell."""
    unread: dict[str, int]
    """Records without the fields that an event needs, by their kind."""


class CuptiSession:
    """One recording of this process; a context manager. `activity` has the result after it."""

    def __init__(
        self, kinds: Sequence[Kind] = DEFAULT_KINDS, *, buffer_bytes: int = BUFFER_BYTES
    ) -> None:
        """Load the library and choose what to record; nothing is switched on yet.

        Raises:
            UnavailableError: cupti-python is not installed, or does not load here.
        """
        self._cupti = Cupti()
        self._kinds, self._bytes = tuple(dict.fromkeys(kinds)), buffer_bytes
        self._queue: deque[Iterable[Any]] = deque()
        self._subscriber: Any = None
        self._enabled: list[int] = []
        self._started: ClockPair | None = None
        self.activity: Activity | None = None

    def start(self) -> Self:
        """Take CUPTI for this process and begin to record.

        Raises:
            UnavailableError: There is no driver, or somebody else has CUPTI (`facts["reason"]` is
                then "busy"). Nothing is left on.
        """
        probe = "is_tracing_session_running"  # not before cupti-python 13.4
        if self._cupti.has(probe) and self._cupti.call(probe):
            busy()
        self._subscriber = self._cupti.call("subscribe", _ignore, None)
        try:
            self._cupti.call("activity_register_callbacks", self._buffer, self._queue_up)
            for kind in self._kinds:
                self._cupti.call("activity_enable", KINDS[kind].number)
                self._enabled.append(KINDS[kind].number)
            self._started = self._pair()
        except UnavailableError:
            self._release()
            raise
        return self

    def stop(self) -> Activity:
        """Flush, switch off, give CUPTI back, and read what was queued.

        Raises:
            UnavailableError: CUPTI refused; it was given back as far as it goes.
        """
        assert self._started is not None, "stop without start"
        try:
            self._cupti.call("activity_flush_all", 1)
            stopped = self._pair()
            dropped = self._dropped()
        finally:
            self._release()
        device: list[DeviceEvent] = []
        host: list[HostEvent] = []
        unread: Counter[str] = Counter()
        for record in (record for batch in self._queue for record in batch):
            match event_of(record):
                case DeviceEvent() as event:
                    device.append(event)
                case HostEvent() as event:
                    host.append(event)
                case str(kind):
                    unread[kind] += 1
        self._queue.clear()
        self.activity = Activity(
            plane=plane(),
            device=tuple(sorted(device, key=lambda e: e.t_ns)),
            host=tuple(sorted(host, key=lambda e: e.t_ns)),
            pairs=(self._started, stopped),
            dropped=dropped,
            unread=dict(unread),
        )
        return self.activity

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # -- called by CUPTI, in a thread of its own ---------------------------------------------------

    def _buffer(self) -> tuple[int, int]:
        return self._bytes, 0  # 0: as many records as fit

    def _queue_up(self, records: Iterable[Any]) -> None:
        self._queue.append(records)  # nothing else: this runs under the interpreter's lock

    # -- one call each -----------------------------------------------------------------------------

    def _pair(self) -> ClockPair:
        before_ns = time.time_ns()
        cupti_ns = int(self._cupti.call("get_timestamp"))
        return ClockPair(cupti_ns=cupti_ns, before_ns=before_ns, after_ns=time.time_ns())

    def _dropped(self) -> int | None:
        if not self._cupti.has("activity_get_num_dropped_records"):
            return None
        # Asked of the global queue: no context, stream 0.
        return int(self._cupti.call("activity_get_num_dropped_records", 0, 0))

    def _release(self) -> None:
        """Switch off what is on and leave CUPTI to others; the first failure is raised."""
        failure: UnavailableError | None = None
        steps: list[tuple[str, tuple[Any, ...]]] = [
            ("activity_disable", (number,)) for number in reversed(self._enabled)
        ]
        if self._subscriber is not None and self._cupti.has("unsubscribe"):
            steps.append(("unsubscribe", (self._subscriber,)))
        if self._cupti.has("finalize"):
            steps.append(("finalize", ()))
        for name, of in steps:
            try:
                self._cupti.call(name, *of)
            except UnavailableError as error:
                failure = failure or error
        self._enabled, self._subscriber = [], None
        if failure is not None:
            raise failure


def plane() -> Plane:
    """This source, for `Header.planes`."""
    return Plane(plane="event", name=NAME, version=version(), reason="not yet run on a GPU")


def _ignore(*_: Any) -> None:
    """A subscriber's callback; no domain is enabled, so it is not called."""
