"""Reading the machine's state beside a recording: one thread, absolute deadlines."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, Self

from rtopt.backends import Reader
from rtopt.types import Sample

PERIOD_S: Final = 1.0


class Sampler:
    """Reads every reader once per period from `with` to the end of the block."""

    def __init__(
        self,
        readers: Sequence[Reader],
        *,
        period_s: float = PERIOD_S,
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        """Read nothing yet.

        Args:
            readers: Used by the sampler's thread alone.
            period_s: Seconds between two readings.
            tick: Called once per period, in the sampler's thread.
        """
        self._readers = readers
        self._period_s = period_s
        self._tick = tick
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rtopt-sampler")
        self._work: Future[None] | None = None
        self._samples: list[Sample] = []

    @property
    def samples(self) -> tuple[Sample, ...]:
        """What was read; complete once the block has ended."""
        return tuple(self._samples)

    def failed_reads(self) -> dict[str, int]:
        """Readings that failed, per source that had any."""
        return {r.source: r.failures for r in self._readers if r.failures}

    def __enter__(self) -> Self:
        self._work = self._pool.submit(self._loop)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop; an error of the thread is raised here."""
        self._stop.set()
        self._pool.shutdown()
        if self._work is not None:
            self._work.result()

    def _loop(self) -> None:
        due_s = time.monotonic()
        while not self._stop.is_set():
            for reader in self._readers:
                before_ns = time.monotonic_ns()
                values = reader.read()
                t_ns = (before_ns + time.monotonic_ns()) // 2
                if values:
                    self._samples.append(Sample(t_ns=t_ns, source=reader.source, values=values))
            self._tick()
            # Deadlines that a slow reading missed are skipped, so the rate never catches up.
            missed = max(0.0, time.monotonic() - due_s) // self._period_s
            due_s += (1 + missed) * self._period_s
            self._stop.wait(max(0.0, due_s - time.monotonic()))
