"""One event window on the real CPU engine: its profiler on for some steps, under traffic, and off.

Checks what the fakes of the unit tests assume: that a server without a profiler is refused by
name, that a window bars a trial while it is open, and that its files are found by their prefix.

    python benchmarks/event_window.py
"""

import json
import os
import tempfile
import time
from contextlib import closing
from pathlib import Path

from rtopt.engines import connect
from rtopt.engines.vllm_process import VllmProcess
from rtopt.engines.window import trial_window
from rtopt.errors import HeldError
from rtopt.profile.events import events
from rtopt.profile.events.routes import WANTED
from rtopt.traffic import ClosedLoop, LoadProcess

MODEL = "SmolLM2-135M-Instruct"
STEPS = 8


def main() -> None:
    """Start the engine, take one window, print what came of it as JSON."""
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_STATE_HOME"] = name
        traces = Path(name) / "traces"
        traces.mkdir()
        config = json.dumps(WANTED | {"torch_profiler_dir": str(traces)})
        flags = ("--enforce-eager", "--max-num-seqs", "8", "--profiler-config", config)
        with VllmProcess(flags=flags, log=Path(name) / "vllm.log") as server:
            print(json.dumps(window(server.url), indent=2))


def window(url: str) -> dict[str, object]:
    """What one window under load gave, and how long it took."""
    refused: list[str] = []
    with closing(connect(url)) as engine:
        boot = engine.state().boot

        def said(text: str, _: float | None) -> None:
            if not refused:
                try:
                    with trial_window(boot):
                        raise SystemExit("a trial was allowed within an event window")
                except HeldError as error:
                    refused.append(str(error))
            last.append(text)

        last: list[str] = []
        load = ClosedLoop(url=url, model=MODEL, clients=4, seed=7, duration_s=60)
        with LoadProcess(load):
            time.sleep(3)
            began_s = time.monotonic()
            taken = events(engine, url, iterations=STEPS, progress=said)
            took_s = time.monotonic() - began_s
        with trial_window(boot):
            pass  # free again
    return {
        "plane": str(taken.plane),
        "files": [{"name": path.name, "bytes": path.stat().st_size} for path in taken.files],
        "where": taken.where,
        "took_s": round(took_s, 1),
        "steps": last[-2:],
        "refused_trial": refused,
    }


if __name__ == "__main__":
    main()
