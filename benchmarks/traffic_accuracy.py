"""How true the load generator is: a recorded hour's first minutes replayed on a real engine.

The arrivals of Azure's conversation trace, with lengths scaled to the embedded model. Lateness is
of sending against the schedule; tokens are counted by the answers and by the server's own metrics.

    python benchmarks/traffic_accuracy.py azure_2023_conv.csv --out benchmarks/results/NAME.json
"""

import argparse
import json
import platform
import tempfile
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import httpx

import rtopt
from rtopt.backends import machine
from rtopt.engines.vllm_process import VllmProcess
from rtopt.storage import to_json
from rtopt.traffic import Fit, Replay, describe, find_target, fit, read_workload, run_workload

FLAGS = ("--enforce-eager", "--max-num-seqs", "32")
COUNTERS = ("vllm:prompt_tokens_total", "vllm:generation_tokens_total")


def counters(url: str) -> dict[str, int]:
    """Prompt and output tokens since the server started, by its own metrics."""
    page = httpx.get(f"{url}/metrics", timeout=60, trust_env=False).text
    found = {}
    for line in page.splitlines():
        for name in COUNTERS:
            if line.startswith((f"{name}{{", f"{name} ")):
                found[name] = int(float(line.rsplit(" ", 1)[1]))
    return found


def main() -> None:
    """Replay, print, and write the result with everything that is needed to judge it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--duration-s", type=float, default=300.0)
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--scale-lengths", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    how = Fit(
        duration_s=args.duration_s * args.speed,
        speed=args.speed,
        scale_lengths=args.scale_lengths,
        max_prompt=512,
        max_output=64,
    )
    workload = fit(read_workload(args.file), how)
    with tempfile.TemporaryDirectory() as folder:
        process = VllmProcess(
            flags=FLAGS, log=Path(folder) / "vllm.log", prefix=("nice", "-n", "10")
        )
        with process:
            target = find_target(process.url)
            warm = fit(workload, Fit(duration_s=2.0))
            load = Replay(url=process.url, model=target.model, seed=args.seed, salt="warm")
            run_workload(warm, load, target)
            before = counters(process.url)
            tally, _ = run_workload(workload, replace(load, salt="measured"), target)
            after = counters(process.url)
    served = {name: after[name] - before[name] for name in COUNTERS}
    requests = tally.finished + tally.failed
    result = {
        "what": "a recorded workload replayed in an open loop: lateness, tokens, CPU",
        "late_ms": tally.late_ms,
        "later_than_5_ms": tally.late,
        "tokens": {
            "asked": {
                "prompt": sum(ask.prompt_tokens for ask in workload.asks),
                "output": sum(ask.output_tokens for ask in workload.asks),
            },
            "answers": {"prompt": tally.prompt_tokens, "output": tally.output_tokens},
            "server": {"prompt": served[COUNTERS[0]], "output": served[COUNTERS[1]]},
        },
        "cpu_pct_of_one_core": 100 * tally.cpu_frac,
        "cpu_ms_per_request": 1e3 * tally.cpu_frac * tally.wall_s / requests,
        "tally": asdict(tally),
        "workload": asdict(describe(workload)),
        "settings": {
            "duration_s": args.duration_s,
            "speed": args.speed,
            "scale_lengths": args.scale_lengths,
            "seed": args.seed,
        },
        "engine": {"model": target.model, "flags": FLAGS},
        "machine": to_json(replace(machine(), kernel=None)),
        "python": platform.python_version(),
        "rtopt": rtopt.__version__,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"sent late, ms: {tally.late_ms}; {tally.late} of {requests} later than 5 ms")
    print(f"tokens: {result['tokens']}")
    print(
        f"load generator: {result['cpu_pct_of_one_core']:.1f} % of one core,"
        f" {result['cpu_ms_per_request']:.2f} ms a request"
    )


if __name__ == "__main__":
    main()
