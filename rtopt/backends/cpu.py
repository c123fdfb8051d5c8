"""State of the processors: /proc, the control group, and pressure where the kernel tells it.

Shares and rates are over the time since the reading before; the first reading has them too, since
making the reader takes one. What the machine does not offer at all is not tried again and counts as
no failure.
"""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rtopt.backends.backend import PiecewiseReader, Reader, Values
from rtopt.backends.cgroup import own_cgroup
from rtopt.backends.host import ROOT, meminfo
from rtopt.errors import UnavailableError
from rtopt.types import Accelerator

MAX_CLOCKS: Final = 8
"""Processors whose frequency is read; each costs a file."""
FAILING: Final = (OSError, ValueError, KeyError, IndexError)

Clock = Callable[[], float]


class CpuBackend:
    """The processors of this machine, through /proc."""

    def __init__(self, root: Path = ROOT, *, clock: Clock = time.monotonic) -> None:
        """Look where the files are.

        Args:
            root: The root of the file system.
            clock: Seconds that never go back.

        Raises:
            UnavailableError: There is no /proc.
        """
        if not (root / "proc/stat").exists():
            raise UnavailableError(
                f"cpu: {root / 'proc/stat'} is not there: the state of the processors is read on"
                " Linux only"
            )
        self._root = root
        self._clock = clock

    def accelerators(self) -> tuple[Accelerator, ...]:
        """None: the processors are no accelerator."""
        return ()

    def open_readers(self) -> Sequence[Reader]:
        """One reader, "cpu"; what this machine does not offer is left out from the start."""
        pieces: dict[str, Callable[[], Values]] = {}
        for name, piece in self._pieces().items():
            try:
                piece()
            except FAILING:
                continue
            pieces[name] = piece
        return [PiecewiseReader("cpu", pieces, FAILING)]

    def _pieces(self) -> dict[str, Callable[[], Values]]:
        proc = self._root / "proc"
        pressures = {
            f"pressure_{kind}": _Pressure(proc / "pressure" / kind, kind, self._clock)
            for kind in ("cpu", "memory", "io")
        }
        pieces: dict[str, Callable[[], Values]] = {
            "stat": _Stat(proc / "stat"),
            "load": lambda: _load(proc / "loadavg"),
            "memory": lambda: _memory(self._root),
            "clock": lambda: _clocks(self._root / "sys/devices/system/cpu"),
            **pressures,
        }
        group = own_cgroup(self._root)
        if group is not None:
            used = _Rate(group.cpu_used_s, "cgroup_cpus", self._clock)
            throttled = _Rate(group.throttled_s, "cgroup_throttled_frac", self._clock)
            pieces["cgroup_cpu"] = used
            pieces["cgroup_throttled"] = throttled
            pieces["cgroup_memory"] = lambda: {"cgroup_mem_bytes": group.memory_used_bytes()}
        return pieces


class _Stat:
    """Busy and stolen share of all processors of the machine."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before: tuple[int, ...] | None = None

    def __call__(self) -> Values:
        with self._path.open() as file:
            # in:   cpu  user nice system idle iowait irq softirq steal guest guest_nice
            # Guest time stands in user and nice already.
            now = tuple(int(part) for part in file.readline().split()[1:9])
        before, self._before = self._before, now
        if before is None:
            return {}
        grown = [b - a for a, b in zip(before, now, strict=True)]
        total = sum(grown)
        if total <= 0 or min(grown) < 0:
            return {}  # too early after the reading before, or a counter went back
        idle, iowait, steal = grown[3], grown[4], grown[7]
        return {
            "util_frac": (total - idle - iowait - steal) / total,
            "iowait_frac": iowait / total,
            "steal_frac": steal / total,
        }


class _Rate:
    """Growth of a count of seconds per second."""

    def __init__(self, seconds: Callable[[], float], name: str, clock: Clock) -> None:
        self._seconds = seconds
        self._name = name
        self._clock = clock
        self._before: tuple[float, float] | None = None

    def __call__(self) -> Values:
        now = (self._clock(), self._seconds())
        before, self._before = self._before, now
        if before is None or now[0] <= before[0]:
            return {}
        return {self._name: (now[1] - before[1]) / (now[0] - before[0])}


class _Pressure:
    """Share of time in which some task waited for a resource."""

    def __init__(self, path: Path, kind: str, clock: Clock) -> None:
        self._path = path
        self._rate = _Rate(self._waited_s, f"pressure_{kind}_frac", clock)

    def __call__(self) -> Values:
        return self._rate()

    def _waited_s(self) -> float:
        # in:   some avg10=0.00 avg60=0.00 avg300=0.08 total=6743400      microseconds
        with self._path.open() as file:
            return int(file.readline().rsplit("total=", 1)[1]) / 1e6


def _load(path: Path) -> Values:
    # in:   0.09 0.11 0.12 1/82 8504        the fourth: runnable / all tasks
    parts = path.read_text().split()
    return {"load_1min": float(parts[0]), "runnable": int(parts[3].partition("/")[0])}


def _memory(root: Path) -> Values:
    sizes = meminfo(root)
    return {
        "mem_total_bytes": sizes["MemTotal"],
        "mem_available_bytes": sizes["MemAvailable"],
        "mem_used_bytes": sizes["MemTotal"] - sizes["MemAvailable"],
    }


def _clocks(folder: Path) -> Values:
    """Mean frequency of some of the processors that this process may use."""
    cpus = sorted(os.sched_getaffinity(0))
    chosen = cpus[:: max(1, len(cpus) // MAX_CLOCKS)][:MAX_CLOCKS]
    khz = [int((folder / f"cpu{n}/cpufreq/scaling_cur_freq").read_text()) for n in chosen]
    return {"clock_hz": 1e3 * sum(khz) / len(khz)}
