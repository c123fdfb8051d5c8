"""`rtopt apply` against a real engine under load: plan, keep, undo, kill, interrupt, resume."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rtopt.engines.vllm_process import VllmProcess
from rtopt.engines.vllm_server import VllmServer
from rtopt.storage import RunDir, list_runs
from rtopt.traffic import LoadProcess
from tests.engine.command import rtopt

CONFIG = str(Path(__file__).parent / "short.toml")
LEVER = ("--lever", "max_num_active_seqs", "--config", CONFIG)


def value_of(engine: VllmServer) -> object:
    return engine.state().values()["max_num_active_seqs"]


def last_run() -> RunDir:
    return max(list_runs(), key=lambda r: r.id)


def start_apply(url: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rtopt", "apply", url, *LEVER, "--rollback"]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )


def wait_for_trial(engine: VllmServer, timeout_s: float = 120) -> None:
    end = time.monotonic() + timeout_s
    while value_of(engine) == 4:
        assert time.monotonic() < end, "the candidate was never put on"
        time.sleep(0.1)


def test_without_rollback_the_plan_is_printed_and_nothing_is_changed(
    server: VllmProcess, engine: VllmServer, load: LoadProcess
) -> None:
    time.sleep(4)
    done = rtopt("apply", server.url, *LEVER)
    assert done.returncode == 0, done.stderr
    assert "Nothing was changed" in done.stdout
    assert "max_num_active_seqs" in done.stdout
    state = engine.state()
    assert state.held is None
    assert value_of(engine) == 4


def test_a_good_lever_is_kept_stays_and_can_be_undone(
    server: VllmProcess, engine: VllmServer, load: LoadProcess
) -> None:
    time.sleep(4)
    done = rtopt("apply", server.url, *LEVER, "--rollback")
    assert done.returncode == 0, done.stderr
    run = last_run()
    assert "kept" in done.stdout
    assert (run.path / "report.html").is_file()
    kept = value_of(engine)
    assert isinstance(kept, int)
    assert kept > 4
    assert engine.state().held is None, "a kept lever needs no lease"
    time.sleep(11)
    assert value_of(engine) == kept, "and so it outlives one"
    assert load.stop().failed == 0

    undone = rtopt("undo", run.id)
    assert undone.returncode == 0, undone.stderr
    assert value_of(engine) == 4
    again = rtopt("undo", run.id)
    assert again.returncode == 2, "there is nothing left to take back"


def test_kill_9_during_a_trial_restores_within_the_lease_and_resume_says_so(
    server: VllmProcess, engine: VllmServer, load: LoadProcess
) -> None:
    time.sleep(2)
    with start_apply(server.url) as controller:
        wait_for_trial(engine)
        controller.send_signal(signal.SIGKILL)
        killed = time.monotonic()
    while value_of(engine) != 4 or engine.state().held is not None:
        assert time.monotonic() - killed < 12, "lease (10 s) plus one step, and polling"
        time.sleep(0.1)
    assert load.stop().failed == 0
    story = rtopt("apply", "--resume", last_run().id)
    assert story.returncode == 0, story.stderr
    assert re.search(r"cut off|ended|died|killed", story.stdout)
    assert "max_num_active_seqs=4" in story.stdout


def test_ctrl_c_during_a_trial_restores_at_once(
    server: VllmProcess, engine: VllmServer, load: LoadProcess
) -> None:
    time.sleep(2)
    with start_apply(server.url) as controller:
        wait_for_trial(engine)
        controller.send_signal(signal.SIGINT)
        _, errors = controller.communicate(timeout=60)
    assert controller.returncode == 130, errors
    assert value_of(engine) == 4
    assert engine.state().held is None


@pytest.mark.parametrize("words", [("max_num_seqs",), ("",)])
def test_an_unknown_lever_is_a_usage_error_that_lists_the_known(
    words: tuple[str], server: VllmProcess, load: LoadProcess
) -> None:
    time.sleep(2)
    done = rtopt("apply", server.url, "--lever", *words, "--config", CONFIG)
    assert done.returncode == 2
    assert "max_num_active_seqs" in done.stderr
