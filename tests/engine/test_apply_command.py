"""A trial on a real engine under load: plan, keep, undo, kill, interrupt, resume."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rtopt import predict
from rtopt.config import RunConfig, read_config
from rtopt.engines.vllm_process import VllmProcess
from rtopt.engines.vllm_server import VllmServer
from rtopt.errors import EvidenceError
from rtopt.session import Session
from rtopt.storage import RunDir, list_runs
from rtopt.traffic import LoadProcess
from rtopt.types import Plan
from tests.engine.command import rtopt

CONFIG = Path(__file__).parent / "short.toml"
LEVER = "max_num_active_seqs"


@pytest.fixture(scope="module")
def config() -> RunConfig:
    return read_config(CONFIG, {})


@pytest.fixture(autouse=True, scope="module")
def _prepared(server: VllmProcess) -> None:
    """The engine's scheduler is loaded once, while nothing competes for the processor."""
    engine = VllmServer(server.url)
    predict.prepare(engine.state().info)
    engine.close()


def value_of(engine: VllmServer) -> object:
    return engine.state().values()[LEVER]


def last_run() -> RunDir:
    return max(list_runs(), key=lambda r: r.id)


CONTROLLER = """
import sys
from pathlib import Path
from rtopt.apply import Journal, make_plan, run_trial
from rtopt.config import read_config
from rtopt.engines import connect
from rtopt.errors import RtoptError
from rtopt.storage import new_run
from rtopt.types import Change

config = read_config(Path(sys.argv[2]), {})
change = Change(lever="max_num_active_seqs", knobs={"max_num_active_seqs": 16}, reason="a test")
plan = make_plan(change, config.gate, objective=config.metric)
journal = Journal(new_run("apply").path / "journal.jsonl")
try:
    run_trial(connect(sys.argv[1]), plan, journal=journal, load=config.load)
except RtoptError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
"""
"""A trial without the loop around it: what is killed here need not first load a scheduler."""


def start_trial(url: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, url, str(CONFIG)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )


def wait_for_trial(engine: VllmServer, controller: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 150
    while value_of(engine) == 4:
        assert controller.poll() is None, controller.communicate()
        assert time.monotonic() < end, "the candidate was never put on"
        time.sleep(0.1)


def test_an_idle_engine_is_too_little_evidence_to_change_anything(
    engine: VllmServer, config: RunConfig
) -> None:
    with pytest.raises(EvidenceError):
        Session(engine, config=config).apply(LEVER)
    assert value_of(engine) == 4
    assert engine.state().held is None


def test_a_plan_is_shown_and_nothing_is_changed(
    engine: VllmServer, config: RunConfig, load: LoadProcess
) -> None:
    time.sleep(3)
    shown: list[Plan] = []
    Session(engine, config=config).plan(LEVER, show=shown.append)
    assert shown[0].change.knobs[LEVER] != 4
    assert value_of(engine) == 4
    assert engine.state().held is None


def test_a_good_lever_is_kept_stays_and_can_be_undone(
    server: VllmProcess, engine: VllmServer, config: RunConfig, load: LoadProcess
) -> None:
    time.sleep(3)
    session = Session(engine, config=config)
    trial = session.apply(LEVER)
    assert trial is not None
    assert trial.verdict.decision == "keep", trial.verdict.reason
    assert trial.verdict.effect is not None
    assert trial.verdict.effect.value > 0.5
    assert session.report().is_file()
    kept = value_of(engine)
    assert isinstance(kept, int)
    assert kept > 4
    assert engine.state().held is None, "a kept lever needs no lease"
    time.sleep(11)
    assert value_of(engine) == kept, "and so it outlives one"
    assert load.stop().failed == 0

    run = last_run()
    undone = rtopt("undo", run.id)
    assert undone.returncode == 0, undone.stderr
    assert value_of(engine) == 4
    again = rtopt("undo", run.id)
    assert again.returncode == 2, "there is nothing left to take back"


def test_kill_9_during_a_trial_restores_within_the_lease_and_resume_says_so(
    server: VllmProcess, engine: VllmServer, load: LoadProcess
) -> None:
    with start_trial(server.url) as controller:
        wait_for_trial(engine, controller)
        controller.send_signal(signal.SIGKILL)
        killed = time.monotonic()
    while value_of(engine) != 4 or engine.state().held is not None:
        assert time.monotonic() - killed < 12, "lease (10 s) plus one step, and polling"
        time.sleep(0.1)
    assert load.stop().failed == 0
    story = rtopt("apply", server.url, "--resume", last_run().id)
    assert story.returncode == 0, story.stderr
    assert re.search(r"cut off|ended|died|killed", story.stdout), story.stdout
    assert "max_num_active_seqs=4" in story.stdout


def test_ctrl_c_during_a_trial_restores_at_once(
    server: VllmProcess, engine: VllmServer, load: LoadProcess
) -> None:
    with start_trial(server.url) as controller:
        wait_for_trial(engine, controller)
        controller.send_signal(signal.SIGINT)
        _, errors = controller.communicate(timeout=60)
    assert controller.returncode == 130, errors
    assert value_of(engine) == 4
    assert engine.state().held is None
