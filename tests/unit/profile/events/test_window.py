import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rtopt.engines.window import trial_window
from rtopt.errors import EngineError, GoneError, HeldError, UnavailableError, UsageError
from rtopt.profile.events import choose, events
from rtopt.profile.events.routes import ProfilerRoutes
from rtopt.types import Held
from tests.unit.profile.events.conftest import LiveEngine, ProfiledServer


def test_a_window_profiles_so_many_steps_and_finds_its_file(
    server: ProfiledServer, engine: LiveEngine
) -> None:
    (server.folder / "rank0.1.pt.trace.json.gz").write_bytes(b"of yesterday")
    before = server.steps
    taken = events(engine, server.url, iterations=2, folder=server.folder)
    (start, stop) = server.calls
    assert start[0] == "/start_profile"
    assert start[1]["max_iterations"] == 2, "the workers stop by themselves whatever happens to us"
    assert stop[0] == "/stop_profile"
    assert server.steps > before + 2
    (file,) = taken.files
    assert file.name.startswith(start[1]["profile_prefix"])
    assert (taken.plane.plane, taken.plane.name) == ("event", "kineto")
    assert taken.plane.version == "vllm 0.32.0"


def test_a_server_that_ignores_the_prefix_gives_its_new_files(
    server: ProfiledServer, engine: LiveEngine
) -> None:
    (server.folder / "rank0.1.pt.trace.json.gz").write_bytes(b"of yesterday")
    server.ignores_prefix = True
    taken = events(engine, server.url, iterations=1, folder=server.folder)
    assert [path.name for path in taken.files] == [f"rank0.{server.steps}.pt.trace.json.gz"]


def test_files_elsewhere_are_named_and_not_invented(
    server: ProfiledServer, engine: LiveEngine
) -> None:
    taken = events(engine, server.url, iterations=1)
    assert taken.files == ()
    assert "server's disk" in taken.where
    assert server.calls[0][1]["profile_prefix"] in taken.where


def test_a_folder_that_is_not_the_servers_is_told(
    server: ProfiledServer, engine: LiveEngine, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    taken = events(engine, server.url, iterations=1, folder=other)
    assert taken.files == ()
    assert "is it the same one?" in taken.where


def test_a_server_without_a_profiler_is_refused_with_the_flag_to_restart_with(
    server: ProfiledServer, engine: LiveEngine
) -> None:
    server.has_profiler = False
    with pytest.raises(UnavailableError) as refused:
        events(engine, server.url, iterations=1)
    assert server.calls == []
    flag, value = shlex.split(str(refused.value.facts["flag"]))
    assert flag == "--profiler-config"
    assert json.loads(value)["torch_profiler_with_stack"] is False
    assert json.loads(value)["torch_profiler_record_shapes"] is True
    assert json.loads(value)["detailed_trace_annotation"] is True


def test_the_header_says_why_there_are_no_events(
    server: ProfiledServer, engine: LiveEngine
) -> None:
    server.has_profiler = False
    with ProfilerRoutes(server.url) as routes:
        plane = choose(engine, routes)
    assert plane.name == "none"
    assert "without a profiler" in (plane.reason or "")


def test_an_engine_that_makes_no_steps_ends_the_window_in_time(
    server: ProfiledServer, engine: LiveEngine
) -> None:
    server.counts_steps = False
    taken = events(engine, server.url, iterations=5, folder=server.folder, wait_s=0.1)
    assert server.session is None
    assert len(taken.files) == 1


def test_another_session_is_left_alone(server: ProfiledServer, engine: LiveEngine) -> None:
    server.session = {"profile_prefix": "theirs"}
    with pytest.raises(HeldError, match="another profiler session"):
        events(engine, server.url, iterations=1)
    assert server.session == {"profile_prefix": "theirs"}
    with trial_window(engine.boot):
        pass


def test_an_interrupt_switches_the_profiler_off(server: ProfiledServer, engine: LiveEngine) -> None:
    def interrupt(text: str, _: float | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        events(engine, server.url, iterations=1, progress=interrupt)
    assert server.session is None
    with trial_window(engine.boot):
        pass


def test_no_window_opens_while_a_trial_holds_the_engine(
    server: ProfiledServer, engine: LiveEngine
) -> None:
    engine.held = Held(holder="rtopt-1", remaining_s=9)
    with pytest.raises(HeldError, match="rtopt-1 has a trial"):
        events(engine, server.url, iterations=1)
    assert server.calls == []


def test_no_window_opens_while_a_trial_runs_here(
    server: ProfiledServer, engine: LiveEngine
) -> None:
    with (
        trial_window(engine.boot),
        pytest.raises(HeldError, match="a trial, or another event window"),
    ):
        events(engine, server.url, iterations=1)
    assert server.calls == []


def test_no_trial_starts_while_a_window_is_open(server: ProfiledServer, engine: LiveEngine) -> None:
    seen: list[str] = []

    def meanwhile(text: str, _: float | None) -> None:
        with pytest.raises(HeldError, match="event window is open"), trial_window(engine.boot):
            pass
        with trial_window("another engine"):
            seen.append(text)

    events(engine, server.url, iterations=1, progress=meanwhile)
    assert seen
    with trial_window(engine.boot):
        pass


def test_a_stop_that_was_not_confirmed_bars_trials_until_one_is(
    server: ProfiledServer, engine: LiveEngine
) -> None:
    server.stop_status = 500
    with pytest.raises(EngineError, match="may still be on"):
        events(engine, server.url, iterations=1)
    with pytest.raises(HeldError, match="cut off"), trial_window(engine.boot):
        pass
    server.stop_status = 200
    events(engine, server.url, iterations=1)
    with trial_window(engine.boot):
        pass


def test_a_killed_window_bars_trials_and_the_next_one_stops_its_profiler(
    server: ProfiledServer, engine: LiveEngine
) -> None:
    killed = (
        "import os, sys; from rtopt.engines.window import event_window\n"
        "with event_window(sys.argv[1]) as window:\n"
        "    window.mark(); os.kill(os.getpid(), 9)"
    )
    ended = subprocess.run([sys.executable, "-c", killed, engine.boot], check=False)
    assert ended.returncode == -signal.SIGKILL
    server.session = {"profile_prefix": "cut-off"}
    with pytest.raises(HeldError, match="cut off"), trial_window(engine.boot):
        pass
    events(engine, server.url, iterations=1)
    assert [path for path, _ in server.calls] == [
        "/stop_profile",
        "/start_profile",
        "/stop_profile",
    ]
    with trial_window(engine.boot):
        pass


def test_two_trials_are_the_leases_affair() -> None:
    with trial_window("boot"), trial_window("boot"):
        pass


def test_an_engine_that_has_gone_leaves_no_mark(engine: LiveEngine) -> None:
    with pytest.raises(GoneError):
        events(engine, "http://127.0.0.1:9", iterations=1)
    with trial_window(engine.boot):
        pass


@pytest.mark.parametrize("steps", [0, -1, 1001])
def test_a_number_of_steps_that_makes_no_window_is_refused(
    server: ProfiledServer, engine: LiveEngine, steps: int
) -> None:
    with pytest.raises(UsageError, match="wanted 1 to 1000"):
        events(engine, server.url, iterations=steps)
    assert server.calls == []


def test_a_folder_that_is_not_there_is_refused(
    server: ProfiledServer, engine: LiveEngine, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="not a folder"):
        events(engine, server.url, iterations=1, folder=tmp_path / "none")
    assert server.calls == []
