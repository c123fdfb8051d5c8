import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from rtopt.errors import EngineError, RtoptError, StoppedError, UsageError
from rtopt.profile import record_to, run, summary
from rtopt.profile.sampler import Sampler
from rtopt.storage import read_trace
from rtopt.types import (
    Change,
    Clock,
    End,
    EngineInfo,
    EngineState,
    Header,
    Load,
    Machine,
    Step,
    Trace,
)


def clock_now(shift_s: float = 0.0) -> Clock:
    return Clock(mono_ns=time.monotonic_ns(), unix_ns=time.time_ns() + int(shift_s * 1e9))


@dataclass
class StillEngine:
    """An engine that does nothing for the time of a recording, on a clock as given."""

    clock: Callable[[], Clock] = clock_now
    source: str = "overlay"
    local: bool = True
    reason: str = "duration"
    num_steps: int = 0

    def state(self) -> EngineState:
        raise EngineError("no state")

    def apply(self, change: Change) -> Change:
        raise EngineError(f"no {change.lever}")

    def settle(self, *, keep: bool) -> EngineState:
        raise EngineError(f"nothing to settle: {keep}")

    def is_local(self) -> bool:
        return self.local

    def record(
        self, duration_s: float, *, load: Load | None = None, max_requests: int | None = None
    ) -> Trace:
        start = self.clock()
        time.sleep(duration_s)
        end = self.clock()
        return Trace(
            header=Header(
                source=self.source,  # type: ignore[arg-type] # one of the sources
                engine=EngineInfo(name="vllm", version="0.32.0", model="m"),
                machine=Machine(cpu="as the engine says"),
                clock=start,
                start_ns=start.mono_ns,
                knobs={},
                load=load,
            ),
            end=End(end_ns=end.mono_ns, clock=end, reason=self.reason),
            steps=tuple(
                Step(t_ns=start.mono_ns + 1 + i, output_tokens=1) for i in range(self.num_steps)
            ),
        )


@dataclass
class Readings:
    """A source of state that counts, and fails now and then."""

    fail_every: int = 0
    source: str = "test"
    failures: int = 0
    reads: int = 0

    def read(self) -> dict[str, float]:
        self.reads += 1
        if self.fail_every and self.reads % self.fail_every == 0:
            self.failures += 1
            return {}
        return {"n": float(self.reads)}


def num_samplers() -> int:
    return sum(thread.name.startswith("rtopt-sampler") for thread in threading.enumerate())


def test_the_state_of_the_machine_is_recorded_beside_a_local_engine() -> None:
    trace = run(StillEngine(), duration_s=0.3, load=Load(kind="open"), period_s=0.05)
    cpu = [sample for sample in trace.samples if sample.source == "cpu"]
    assert 4 <= len(cpu) <= 7
    assert all(trace.start_ns < sample.t_ns <= trace.end_ns for sample in trace.samples)
    assert trace.header.load == Load(kind="open")
    assert trace.header.machine.cpu == "as the engine says"
    assert trace.notes == ()
    assert num_samplers() == 0


def test_of_an_engine_on_another_machine_no_state_is_kept_and_a_note_says_so() -> None:
    def elsewhere() -> Clock:
        return clock_now(shift_s=3600)

    trace = run(StillEngine(elsewhere), duration_s=0.05, period_s=0.01)
    assert trace.samples == ()
    assert any("does not run here" in note for note in trace.notes)
    assert run(StillEngine(elsewhere), duration_s=0.1, period_s=0.02, local=True).samples


@pytest.mark.parametrize("local", [True, False])
def test_a_server_without_the_overlay_is_asked_where_it_runs(local: bool) -> None:
    trace = run(StillEngine(source="metrics", local=local), duration_s=0.1, period_s=0.02)
    assert bool(trace.samples) == local
    assert (trace.header.machine.num_cpus is not None) == local


def test_a_replay_has_no_machine() -> None:
    assert run(StillEngine(source="replay"), duration_s=0.05, period_s=0.01).samples == ()


def test_an_interrupted_recording_keeps_its_state_and_its_reason() -> None:
    trace = run(StillEngine(reason="interrupted"), duration_s=0.1, period_s=0.02)
    assert trace.end.reason == "interrupted"
    assert trace.samples


@pytest.mark.parametrize("error", [EngineError("gone"), KeyboardInterrupt()])
def test_the_sampler_stops_when_the_recording_fails(error: BaseException) -> None:
    class Failing(StillEngine):
        def record(
            self, duration_s: float, *, load: Load | None = None, max_requests: int | None = None
        ) -> Trace:
            raise error

    with pytest.raises(type(error)):
        run(Failing(), duration_s=30.0)
    assert num_samplers() == 0


def test_progress_tells_how_far_it_is() -> None:
    told: list[tuple[str, float | None]] = []

    def progress(message: str, done: float | None = None) -> None:
        told.append((message, done))

    run(StillEngine(), duration_s=0.2, period_s=0.05, progress=progress)
    shares = [share for _, share in told if share is not None]
    assert shares == sorted(shares)
    assert 0 <= shares[0] < shares[-1] <= 1
    assert told[0][0].startswith("recording (0 of 0 s)")


def test_readings_keep_their_period_and_failed_ones_are_absent_and_counted() -> None:
    readings = Readings(fail_every=3)
    with Sampler([readings], period_s=0.02) as sampler:
        time.sleep(0.19)
    assert 8 <= readings.reads <= 11
    values = [sample.values["n"] for sample in sampler.samples]
    assert values == [n for n in range(1, readings.reads + 1) if n % 3]
    assert sampler.failed_reads() == {"test": readings.reads // 3}


def test_a_slow_reading_skips_deadlines_and_does_not_catch_up() -> None:
    class Slow(Readings):
        def read(self) -> dict[str, float]:
            time.sleep(0.05)
            return super().read()

    readings = Slow()
    with Sampler([readings], period_s=0.02):
        time.sleep(0.3)
    # Each reading of 50 ms takes the deadlines at 20 and 40 ms with it: one per 60 ms.
    assert 4 <= readings.reads <= 6


def test_an_error_in_the_sampler_is_not_lost() -> None:
    class Broken(Readings):
        def read(self) -> dict[str, float]:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), Sampler([Broken()]):
        pass


def test_a_recording_is_written_and_given_as_it_stands_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    trace = record_to(path, StillEngine(num_steps=50), duration_s=0.05, local=True)
    assert len(trace.steps) == 50
    assert read_trace(path) == replace(trace, notes=())


def test_the_size_cap_cuts_what_is_given_too(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    engine = StillEngine(num_steps=500)
    trace = record_to(path, engine, duration_s=0.05, max_bytes=10_000, local=False)
    assert trace.end.reason == "size"
    assert 0 < len(trace.steps) < 500
    assert len(trace.steps) + trace.end.dropped["step"] == 500
    assert read_trace(path).steps == trace.steps
    labels = {label: value for label, value, _ in summary(trace)}
    assert labels["Not kept: step"] == str(trace.end.dropped["step"])


def test_a_file_that_cannot_be_written_is_refused_before_recording(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no" / "t.jsonl"):
        with pytest.raises(UsageError, match="Nothing was recorded"):
            record_to(path, StillEngine(), duration_s=30.0)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_without_permission_is_refused_before_recording(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="Nothing was recorded"):
        record_to(tmp_path / "t.jsonl", StillEngine(), duration_s=30.0)


def test_the_summary_names_what_was_recorded_in_units_for_people() -> None:
    trace = run(StillEngine(num_steps=10), duration_s=0.1, period_s=0.02)
    rows = {label: (value, unit) for label, value, unit in summary(trace)}
    assert rows["Engine"] == ("vllm 0.32.0, m", "")
    assert rows["Steps"] == ("10", "")
    assert rows["Output tokens per second"][1] == "tok/s"
    assert rows["Processors busy"][1] == "%"
    assert "Mean time to first token" not in rows, "nothing was measured, so nothing is shown"


@pytest.mark.parametrize(
    ("reason", "error"), [("interrupted", StoppedError), ("disconnected", EngineError)]
)
def test_a_recording_that_must_be_whole_is_not_kept_when_it_was_cut_off(
    reason: str, error: type[RtoptError]
) -> None:
    engine = StillEngine(reason=reason)
    assert run(engine, duration_s=0.05).end.reason == reason
    with pytest.raises(error, match="nothing was on trial"):
        run(engine, duration_s=0.05, must_be_whole=True)
