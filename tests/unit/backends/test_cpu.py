from pathlib import Path

import pytest

from rtopt.backends.cpu import CpuBackend
from rtopt.errors import UnavailableError

STAT = "cpu  {} 0 0 {} {} 0 0 {} 0 0\ncpu0 1 2 3\n"


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine as /proc and /sys show it."""
    write(tmp_path, "proc/stat", STAT.format(100, 100, 0, 0))
    write(tmp_path, "proc/loadavg", "0.50 0.11 0.12 3/82 8504\n")
    write(tmp_path, "proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\nHugePages_Total: 0\n")
    write(
        tmp_path,
        "proc/pressure/cpu",
        "some avg10=0.00 avg60=0.00 avg300=0.08 total=1000000\nfull avg10=0.00 total=0\n",
    )
    return tmp_path


class Seconds:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_shares_are_over_the_time_since_the_reading_before(root: Path) -> None:
    clock = Seconds()
    (reader,) = CpuBackend(root, clock=clock).open_readers()
    clock.now = 2.0
    write(root, "proc/stat", STAT.format(160, 120, 10, 10))
    write(root, "proc/pressure/cpu", "some avg10=0 avg60=0 avg300=0 total=1500000\n")
    assert reader.source == "cpu"
    assert reader.read() == pytest.approx(
        {
            "util_frac": 0.6,
            "iowait_frac": 0.1,
            "steal_frac": 0.1,
            "load_1min": 0.5,
            "runnable": 3,
            "mem_total_bytes": 1_024_000,
            "mem_available_bytes": 409_600,
            "mem_used_bytes": 614_400,
            "pressure_cpu_frac": 0.25,
        }
    )
    assert reader.failures == 0


def test_a_failed_reading_is_absent_and_counted_and_the_others_stay(root: Path) -> None:
    (reader,) = CpuBackend(root).open_readers()
    (root / "proc/meminfo").unlink()
    write(root, "proc/loadavg", "garbage")
    values = reader.read()
    assert not {"mem_used_bytes", "load_1min", "runnable"} & set(values)
    assert reader.failures == 2
    assert reader.read().keys() == values.keys() | {"pressure_cpu_frac"}
    assert reader.failures == 4


def test_what_the_machine_does_not_offer_is_no_failure(root: Path) -> None:
    (reader,) = CpuBackend(root).open_readers()
    assert "clock_hz" not in reader.read()
    assert reader.failures == 0


def test_a_counter_that_went_back_gives_no_share(root: Path) -> None:
    (reader,) = CpuBackend(root).open_readers()
    write(root, "proc/stat", STAT.format(10, 200, 0, 0))
    assert "util_frac" not in reader.read()


def test_a_container_of_version_two_tells_its_use(root: Path) -> None:
    write(root, "proc/self/cgroup", "0::/pod/a\n")
    write(root, "sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
    group = "sys/fs/cgroup/pod/a/"
    write(root, group + "cpu.stat", "usage_usec 1000000\nthrottled_usec 0\n")
    write(root, group + "memory.current", "4096\n")
    clock = Seconds()
    (reader,) = CpuBackend(root, clock=clock).open_readers()
    clock.now = 4.0
    write(root, group + "cpu.stat", "usage_usec 7000000\nthrottled_usec 2000000\n")
    values = reader.read()
    assert values["cgroup_cpus"] == pytest.approx(1.5)
    assert values["cgroup_throttled_frac"] == pytest.approx(0.5)
    assert values["cgroup_mem_bytes"] == 4096


def test_a_container_of_version_one_tells_its_use(root: Path) -> None:
    write(root, "proc/self/cgroup", "4:memory:/a\n2:cpuacct:/a\n1:cpu:/a\n")
    write(root, "sys/fs/cgroup/cpu/a/cpu.stat", "nr_throttled 0\nthrottled_time 0\n")
    write(root, "sys/fs/cgroup/cpuacct/a/cpuacct.usage", "1000000000\n")
    write(root, "sys/fs/cgroup/memory/memory.usage_in_bytes", "8192\n")  # own folder not visible
    clock = Seconds()
    (reader,) = CpuBackend(root, clock=clock).open_readers()
    clock.now = 1.0
    write(root, "sys/fs/cgroup/cpuacct/a/cpuacct.usage", "1250000000\n")
    values = reader.read()
    assert values["cgroup_cpus"] == pytest.approx(0.25)
    assert values["cgroup_throttled_frac"] == 0.0
    assert values["cgroup_mem_bytes"] == 8192


def test_a_machine_without_proc_says_why(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="on Linux only"):
        CpuBackend(tmp_path)


def test_the_frequency_is_the_mean_of_the_processors(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 5})
    for cpu, khz in ((0, 1_000_000), (5, 3_000_000)):
        write(root, f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq", f"{khz}\n")
    (reader,) = CpuBackend(root).open_readers()
    assert reader.read()["clock_hz"] == pytest.approx(2e9)
