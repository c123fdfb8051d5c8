"""The examples run, on a server as a reader would have it."""

import runpy
import sys
import time
from pathlib import Path

import pytest

from rtopt.engines.vllm_process import VllmProcess
from rtopt.engines.vllm_server import VllmServer
from rtopt.traffic import LoadProcess

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_five_verbs_show_a_plan_and_change_nothing(
    server: VllmProcess,
    engine: VllmServer,
    load: LoadProcess,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # In this process, which has the engine's scheduler loaded: a new one would have to load it
    # while the engine takes both cores.
    time.sleep(3)
    monkeypatch.setattr(sys, "argv", ["01_attach.py", server.url])
    runpy.run_path(str(EXAMPLES / "01_attach.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert "plan: max_num_active_seqs from 4 to " in shown
    assert "nothing was changed" in shown
    assert Path(shown.partition("report: ")[2].strip()).is_file()
    assert engine.state().values()["max_num_active_seqs"] == 4
