"""A running vLLM server without the overlay: what its metrics page says, once a second.

Nothing can be changed on such a server, and single steps and requests are not seen.
"""

import time
from dataclasses import dataclass, field
from typing import Final

import httpx
import psutil

from rtopt.engines.client import address, open_client
from rtopt.engines.metrics_page import ServerKind, probe, scrape
from rtopt.engines.prometheus import Scrape, difference
from rtopt.errors import EngineError
from rtopt.types import (
    Change,
    Clock,
    End,
    EngineInfo,
    EngineState,
    Header,
    Load,
    Machine,
    Sample,
    Trace,
    Value,
)

READ_ONLY: Final = (
    "the server runs without rtopt's overlay, so nothing can be changed and single steps are not"
    " seen. Start it with `rtopt serve`, or put the overlay on its path:"
    " `PYTHONPATH=$(rtopt overlay-path) VLLM_PLUGINS=rtopt vllm serve ...`"
)
PERIOD_S: Final = 1.0
MAX_FAILURES: Final = 3
"""Failed readings in a row after which the server counts as gone."""
SAME_START_S: Final = 0.02
"""The kernel counts a process's start in hundredths of a second."""
FINISHED: Final = "vllm:request_success_total"


class MetricsEngine:
    """Implements `rtopt.types.Engine` as far as a metrics page goes: it reads."""

    def __init__(
        self, url: str, client: httpx.Client | None = None, *, period_s: float = PERIOD_S
    ) -> None:
        """Talk to the server at `url`; nothing is sent yet.

        Args:
            url: The server's address.
            client: As `open_client` makes one; made here when not given.
            period_s: Seconds between two readings.

        Raises:
            UsageError: Not the URL of an HTTP server.
        """
        self._client = client if client is not None else open_client(url)
        self._period_s = period_s
        self._is_local: bool | None = None
        self.url = address(self._client)

    def state(self) -> EngineState:
        """Read what the server tells about itself; no knob is among it.

        Raises:
            EngineError: Nobody answers, it is not vLLM, or several servers answer in turn.
        """
        kind = probe(self._client)
        start_s = kind.scrape.start_s
        return EngineState(
            info=_info(kind),
            knobs=(),
            boot="unknown" if start_s is None else f"{start_s:.2f}",
            read_only=READ_ONLY,
            running=_count(kind.scrape, "vllm:num_requests_running"),
            waiting=_count(kind.scrape, "vllm:num_requests_waiting"),
        )

    def apply(self, change: Change) -> Change:
        """Refuse: nothing can be changed here."""
        raise EngineError(f"{self.url}: {change.lever}: {READ_ONLY}. Nothing was changed.")

    def settle(self, *, keep: bool) -> EngineState:
        """Refuse: no change can be on trial here."""
        verb = "keep" if keep else "restore"
        raise EngineError(f"{self.url}: there is nothing to {verb}: {READ_ONLY}.")

    def record(
        self, duration_s: float, *, load: Load | None = None, max_requests: int | None = None
    ) -> Trace:
        """Read the page once per period, by absolute deadlines; a failed reading is counted.

        Times are of this machine's clock. The server's machine is not known.

        Raises:
            EngineError: Nobody answers at the start, it is not vLLM, or several servers answer.
        """
        kind = probe(self._client)
        # Found out now: a server that goes away meanwhile can't be asked any more.
        self._is_local = _is_process_here(kind.scrape.start_s)
        taken = _Recording(clock=_clock_now(), last=kind.scrape)
        try:
            self._follow(taken, duration_s, max_requests)
        except KeyboardInterrupt:
            taken.reason = "interrupted"
        end = _clock_now()
        header = Header(
            source="metrics",
            engine=_info(kind),
            machine=Machine(cpu="unknown"),
            clock=taken.clock,
            start_ns=taken.clock.mono_ns,
            knobs={},
            load=load,
            derived={"sample.t_ns": "middle of the question, on the clock of the asking machine"},
        )
        return Trace(
            header=header,
            end=End(
                end_ns=end.mono_ns,
                clock=end,
                failed_reads={"metrics": taken.failures} if taken.failures else {},
                reason=taken.reason,
            ),
            samples=tuple(taken.samples),
        )

    def is_local(self) -> bool:
        """Whether the server is a process of this machine; once recorded, when that began.

        A loopback address would not tell: it may be a tunnel. False also when the server does not
        say when it started, as with several API servers.

        Raises:
            EngineError: Nobody answers, or it is not vLLM.
        """
        if self._is_local is None:
            self._is_local = _is_process_here(scrape(self._client).start_s)
        return self._is_local

    def close(self) -> None:
        """Close the client."""
        self._client.close()

    def _follow(self, taken: "_Recording", duration_s: float, max_requests: int | None) -> None:
        """Add samples until the time is over, enough requests have finished, or it is gone."""
        period_ns = int(self._period_s * 1e9)
        due_ns = taken.clock.mono_ns
        end_ns = due_ns + int(duration_s * 1e9)
        while True:
            self._take(taken)
            if max_requests is not None and taken.finished() >= max_requests:
                taken.reason = "requests"
            if taken.reason != "duration" or due_ns >= end_ns:
                return
            # A reading that took longer than a period skips the deadlines that it missed.
            missed = max(0, time.monotonic_ns() - due_ns) // period_ns
            due_ns = min(due_ns + (1 + missed) * period_ns, end_ns)
            time.sleep(max(0, due_ns - time.monotonic_ns()) / 1e9)

    def _take(self, taken: "_Recording") -> None:
        asked_ns = time.monotonic_ns()
        try:
            page = scrape(self._client)
        except EngineError:
            taken.failures += 1
            taken.failures_in_a_row += 1
            if taken.failures_in_a_row >= MAX_FAILURES:
                taken.reason = "disconnected"
            return
        taken.failures_in_a_row = 0
        if difference(taken.last, page) is not None:
            probe(self._client)  # says so when several servers answer in turn
            taken.reason = "disconnected"  # one server, that was started again
            return
        taken.last = page
        t_ns = (asked_ns + time.monotonic_ns()) // 2
        taken.samples.append(Sample(t_ns=t_ns, source="metrics", values=page.series))


@dataclass(slots=True)
class _Recording:
    """Samples on their way to a Trace."""

    clock: Clock
    last: Scrape
    samples: list[Sample] = field(default_factory=list)
    failures: int = 0
    failures_in_a_row: int = 0
    reason: str = "duration"

    def finished(self) -> float:
        """Requests that finished since the first sample."""
        having = [s.values[FINISHED] for s in self.samples if FINISHED in s.values]
        return having[-1] - having[0] if having else 0.0


def _clock_now() -> Clock:
    return Clock(mono_ns=time.monotonic_ns(), unix_ns=time.time_ns())


def _is_process_here(start_s: float | None) -> bool:
    """Whether a process of this machine started at that moment."""
    if start_s is None:
        return False
    times = (process.info["create_time"] for process in psutil.process_iter(["create_time"]))
    return any(t is not None and abs(t - start_s) < SAME_START_S for t in times)


def _count(page: Scrape, name: str) -> int | None:
    return int(page.series[name]) if name in page.series else None


def _info(kind: ServerKind) -> EngineInfo:
    """What a server without the overlay tells about its engine."""
    cache = {name: _plain(text) for name, text in kind.scrape.cache_config.items()}
    cache.pop("engine", None)
    if kind.max_model_len is not None:
        cache["max_model_len"] = kind.max_model_len
    kv = {"num_blocks": cache.get("num_gpu_blocks"), "block_size": cache.get("block_size")}
    return EngineInfo(
        name="vllm",
        version=kind.version or "unknown",
        model=kind.model or "unknown",
        config=cache,
        kv={name: value for name, value in kv.items() if value is not None},
        num_engines=kind.scrape.num_engines,
    )


def _plain(text: str) -> Value | None:
    """A label's text, which is Python's print of the value, as the value."""
    # in:   "None"  "True"  "128"  "0.92"  "auto"
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
