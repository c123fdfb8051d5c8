"""The processor side of this machine, as /proc and the control group tell it."""

import math
import os
import platform
from pathlib import Path
from typing import Final

from rtopt.backends.cgroup import Cgroup, own_cgroup
from rtopt.types import Machine

ROOT: Final = Path("/")


def host(root: Path = ROOT) -> Machine:
    """What this process may use of the machine; accelerators are not in it."""
    group = own_cgroup(root)
    return Machine(
        cpu=_cpu_model(root) or platform.machine(),
        num_cpus=_num_cpus(group),
        memory_bytes=_memory_bytes(root, group),
        kernel=platform.release(),
        python=platform.python_version(),
    )


def _cpu_model(root: Path) -> str | None:
    try:
        text = (root / "proc/cpuinfo").read_text()
    except OSError:
        return None
    # Arm has no model name; its "CPU part" is a number that says less than the architecture.
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return None


def _num_cpus(group: Cgroup | None) -> int:
    """Processors by affinity, or by the quota when that is less."""
    by_affinity = len(os.sched_getaffinity(0))
    try:
        limit = None if group is None else group.cpu_limit()
    except (OSError, ValueError):
        limit = None  # the affinity holds in any case
    return by_affinity if limit is None else min(by_affinity, max(1, math.ceil(limit)))


def _memory_bytes(root: Path, group: Cgroup | None) -> int | None:
    """Memory of the machine, or of the group when that is less."""
    try:
        total = meminfo(root)["MemTotal"]
        limit = None if group is None else group.memory_limit_bytes()
    except (OSError, ValueError, KeyError):
        return None
    return total if limit is None else min(total, limit)


def meminfo(root: Path) -> dict[str, int]:
    """Sizes of /proc/meminfo in bytes.

    Raises:
        OSError: It could not be read.
        ValueError: A line holds something else.
    """
    # in:   MemTotal:       24684092 kB
    sizes: dict[str, int] = {}
    for line in (root / "proc/meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        number, *unit = rest.split()
        if unit == ["kB"]:
            sizes[name] = int(number) * 1024
    return sizes
