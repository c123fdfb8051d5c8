"""An event window through the real server's own profiler, behind an API key."""

import time
from contextlib import closing

import pytest

from rtopt.engines import connect
from rtopt.engines.vllm_process import VllmProcess
from rtopt.engines.window import trial_window
from rtopt.errors import HeldError, UnavailableError
from rtopt.profile.events import events
from rtopt.traffic import ClosedLoop, LoadProcess

MODEL = "SmolLM2-135M-Instruct"
STEPS = 4


def test_a_window_leaves_one_file_and_bars_trials_while_it_is_open(
    guarded: VllmProcess, api_key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RTOPT_API_KEY", api_key)
    with closing(connect(guarded.url)) as engine:
        boot = engine.state().boot
        barred = []

        def said(_: str, __: float | None) -> None:
            with pytest.raises(HeldError, match="event window"), trial_window(boot):
                pass
            barred.append(True)

        load = ClosedLoop(url=guarded.url, model=MODEL, clients=2, seed=7, duration_s=60)
        with LoadProcess(load):
            time.sleep(2)
            taken = events(engine, guarded.url, iterations=STEPS, progress=said)
        with trial_window(boot):
            pass  # free again
    assert barred
    assert taken.plane.name == "kineto"
    (file,) = taken.files
    assert file.stat().st_size > 0


def test_a_server_without_a_profiler_is_refused_with_the_flag_that_gives_one(
    server: VllmProcess,
) -> None:
    with (
        closing(connect(server.url)) as engine,
        pytest.raises(UnavailableError, match="--profiler-config"),
    ):
        events(engine, server.url, iterations=STEPS)
