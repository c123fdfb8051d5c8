"""No trial runs on an engine while a profiler of ours does."""

from pathlib import Path

import pytest

from rtopt.engines.window import event_window
from tests.unit.cli.conftest import CommandLine
from tests.unit.cli.fakes import KNOB, Overlay, serving

TOKEN = "a-token"


@pytest.fixture(autouse=True)
def _state_of_the_command(rtopt: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(Path(rtopt.state).parent))


@pytest.mark.parametrize("command", [("apply", "--lever", KNOB, "--rollback"), ("tune",)])
def test_a_trial_is_refused_while_an_event_window_is_open(
    rtopt: CommandLine, command: tuple[str, ...]
) -> None:
    overlay = Overlay(token=TOKEN)
    with serving(overlay) as url, event_window(overlay.boot):
        done = rtopt(command[0], url, *command[1:], RTOPT_TOKEN=TOKEN)
    assert "an event window is open on this engine" in done.line()
    assert done.code == 8
    assert overlay.value == overlay.start


def test_a_cut_off_event_window_bars_a_trial_too(rtopt: CommandLine) -> None:
    overlay = Overlay(token=TOKEN)
    with event_window(overlay.boot) as window:
        window.mark()
    with serving(overlay) as url:
        done = rtopt("apply", url, "--lever", KNOB, "--rollback", RTOPT_TOKEN=TOKEN)
    assert "was cut off" in done.line()
    assert done.code == 8
    assert overlay.value == overlay.start


def test_a_server_without_a_profiler_names_the_flag_to_restart_with(rtopt: CommandLine) -> None:
    with serving(Overlay()) as url:
        done = rtopt("profile", url, "--events", "3")
    assert "--profiler-config" in done.line()
    assert done.code == 3
