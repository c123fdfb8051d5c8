"""The examples run, on a server as a reader would have it."""

import subprocess
import sys
from pathlib import Path

from rtopt.engines.vllm_process import VllmProcess
from rtopt.engines.vllm_server import VllmServer
from rtopt.traffic import LoadProcess

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_five_verbs_show_a_plan_and_change_nothing(
    server: VllmProcess, engine: VllmServer, load: LoadProcess
) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "01_attach.py"), server.url],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "plan: max_num_active_seqs from 4 to " in done.stdout
    assert "nothing was changed" in done.stdout
    report = done.stdout.partition("report: ")[2].strip()
    assert Path(report).is_file()
    assert engine.state().values()["max_num_active_seqs"] == 4
