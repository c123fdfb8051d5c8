from pathlib import Path

import pytest

from rtopt.backends.host import host


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    write(tmp_path, "proc/cpuinfo", "processor : 0\nmodel name\t: Some Processor\n")
    write(tmp_path, "proc/meminfo", "MemTotal:  1000 kB\n")
    return tmp_path


def test_a_machine_without_a_container_has_all_of_it(root: Path) -> None:
    machine = host(root)
    assert (machine.cpu, machine.num_cpus, machine.memory_bytes) == (
        "Some Processor",
        8,
        1_024_000,
    )


@pytest.mark.parametrize(
    ("limit", "num_cpus"), [("max 100000", 8), ("150000 100000", 2), ("5000 100000", 1)]
)
def test_a_quota_limits_the_processors(root: Path, limit: str, num_cpus: int) -> None:
    write(root, "proc/self/cgroup", "0::/\n")
    write(root, "sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
    write(root, "sys/fs/cgroup/cpu.max", limit + "\n")
    write(root, "sys/fs/cgroup/memory.max", "512000\n")
    machine = host(root)
    assert machine.num_cpus == num_cpus
    assert machine.memory_bytes == 512_000


def test_a_quota_of_version_one_limits_too(root: Path) -> None:
    write(root, "proc/self/cgroup", "2:cpu,cpuacct:/a\n3:memory:/a\n")
    write(root, "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "300000\n")
    write(root, "sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n")
    write(root, "sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n")
    machine = host(root)
    assert machine.num_cpus == 3
    assert machine.memory_bytes == 1_024_000


def test_memory_that_cannot_be_read_is_absent(root: Path) -> None:
    (root / "proc/meminfo").unlink()
    assert host(root).memory_bytes is None
