"""The control group of this process: what a container may use, and what it does use."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

UNLIMITED_BYTES: Final = 1 << 60
"""Version 1 writes "no limit" as a number near 2**63."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cgroup:
    """Folders of this process's group per controller; absent where there is none."""

    version: int
    cpu: Path | None
    cpuacct: Path | None
    memory: Path | None

    def cpu_limit(self) -> float | None:
        """Processors that the quota allows; None without a quota.

        Raises:
            OSError: A file could not be read.
            ValueError: A file holds something else.
        """
        if self.cpu is None:
            return None
        if self.version == 2:
            if not (self.cpu / "cpu.max").exists():  # the root group has no such file
                return None
            quota, period = (self.cpu / "cpu.max").read_text().split()
            return None if quota == "max" else int(quota) / int(period)
        quota_us = int((self.cpu / "cpu.cfs_quota_us").read_text())
        period_us = int((self.cpu / "cpu.cfs_period_us").read_text())
        return quota_us / period_us if quota_us > 0 else None

    def cpu_used_s(self) -> float:
        """Processor seconds used since the group was made.

        Raises:
            OSError: A file could not be read.
            ValueError: A file holds something else.
            KeyError: The count is not in it.
        """
        if self.version == 2 and self.cpu is not None:
            return _table(self.cpu / "cpu.stat")["usage_usec"] / 1e6
        if self.cpuacct is not None:
            return int((self.cpuacct / "cpuacct.usage").read_text()) / 1e9
        raise KeyError("cpuacct")

    def throttled_s(self) -> float:
        """Seconds for which the quota held the group back, since it was made.

        Raises:
            OSError: A file could not be read.
            ValueError: A file holds something else.
            KeyError: The count is not in it.
        """
        if self.cpu is None:
            raise KeyError("cpu")
        table = _table(self.cpu / "cpu.stat")
        return table["throttled_usec"] / 1e6 if self.version == 2 else table["throttled_time"] / 1e9

    def memory_limit_bytes(self) -> int | None:
        """Memory that the group may use; None without a limit.

        Raises:
            OSError: A file could not be read.
            ValueError: A file holds something else.
        """
        if self.memory is None:
            return None
        name = "memory.max" if self.version == 2 else "memory.limit_in_bytes"
        if not (self.memory / name).exists():
            return None
        text = (self.memory / name).read_text().strip()
        limit = UNLIMITED_BYTES if text == "max" else int(text)
        return limit if limit < UNLIMITED_BYTES else None

    def memory_used_bytes(self) -> int:
        """Memory in use, file cache included.

        Raises:
            OSError: A file could not be read.
            ValueError: A file holds something else.
            KeyError: There is no such controller.
        """
        if self.memory is None:
            raise KeyError("memory")
        name = "memory.current" if self.version == 2 else "memory.usage_in_bytes"
        return int((self.memory / name).read_text())


def own_cgroup(root: Path) -> Cgroup | None:
    """Find the group of this process; None where the machine shows none.

    Args:
        root: The root of the file system.
    """
    try:
        text = (root / "proc/self/cgroup").read_text()
    except OSError:
        return None
    # in:   4:memory:/a/b          version 1, one line per hierarchy
    #       0::/a/b                version 2, one hierarchy for all
    paths: dict[str, str] = {}
    for line in text.splitlines():
        _, names, path = line.split(":", 2)
        paths.update(dict.fromkeys(names.split(","), path))
    mount = root / "sys/fs/cgroup"
    if (mount / "cgroup.controllers").exists():
        own = _folder(mount, paths.get("", "/"))
        return Cgroup(version=2, cpu=own, cpuacct=own, memory=own)
    if "cpu" not in paths and "memory" not in paths:
        return None
    found = {
        name: _folder(mount / name, paths[name])
        for name in ("cpu", "cpuacct", "memory")
        if name in paths and (mount / name).is_dir()
    }
    return Cgroup(
        version=1,
        cpu=found.get("cpu"),
        cpuacct=found.get("cpuacct"),
        memory=found.get("memory"),
    )


def _folder(mount: Path, path: str) -> Path:
    """The group's folder; in a container that sees only its own group, the mount itself."""
    inside = mount / path.lstrip("/")
    return inside if inside.is_dir() else mount


def _table(path: Path) -> dict[str, int]:
    """Lines of a name and a number."""
    return {name: int(value) for name, value in map(str.split, path.read_text().splitlines())}
