"""What recording costs a real engine: throughput with a recording open against without.

Paired and interleaved: each pair holds one window with a recording open and one without, in random
order. In both windows tokens are counted by the load generator's clients, not by the overlay.

    python benchmarks/overlay_cost.py --pairs 12 --window-s 10 --out benchmarks/results/NAME.json
"""

import argparse
import json
import math
import platform
import random
import statistics
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
from scipy import stats

import rtopt
from rtopt.backends import machine
from rtopt.engines import connect
from rtopt.engines.vllm_process import VllmProcess
from rtopt.engines.vllm_server import VllmServer
from rtopt.storage import to_json
from rtopt.traffic import ClosedLoop, LoadProcess

MODEL = "SmolLM2-135M-Instruct"
FLAGS = ("--enforce-eager", "--max-num-seqs", "32")
CLIENTS = 16
SETTLE_S = 1.0


def tokens(url: str) -> float:
    """Output tokens that the server has counted since it started."""
    for line in httpx.get(f"{url}/metrics", timeout=30).text.splitlines():
        if line.startswith("vllm:generation_tokens_total"):
            return float(line.rsplit(" ", 1)[1])
    raise SystemExit("the server does not count its tokens")


def rate(url: str, window_s: float) -> float:
    """Output tokens per second over a window, from the server's own counter."""
    before, began = tokens(url), time.monotonic()
    time.sleep(window_s)
    return (tokens(url) - before) / (time.monotonic() - began)


def measure(server: VllmServer, *, on: bool, window_s: float) -> float:
    """One window, with or without a recording open."""
    if not on:
        time.sleep(SETTLE_S)
        return rate(server.url, window_s)
    with httpx.stream(
        "GET", f"{server.url}/rtopt/trace?seconds={window_s + 60}", timeout=60
    ) as stream:
        lines = stream.iter_lines()
        end = time.monotonic() + SETTLE_S
        while time.monotonic() < end:
            next(lines)
        before, began = tokens(server.url), time.monotonic()
        while time.monotonic() - began < window_s:
            next(lines)
        return (tokens(server.url) - before) / (time.monotonic() - began)


def main() -> None:
    """Measure, print, and write the result with everything that is needed to judge it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=16)
    parser.add_argument("--window-s", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    coin = random.Random(args.seed)
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        process = VllmProcess(flags=FLAGS, log=Path(folder) / "vllm.log")
        with (
            process,
            LoadProcess(
                ClosedLoop(url=process.url, model=MODEL, clients=CLIENTS, seed=args.seed)
            ) as load,
        ):
            server = connect(process.url)
            assert isinstance(server, VllmServer)
            info = server.state().info
            time.sleep(10)
            before = server.overlay_cost()
            for number in range(args.pairs):
                order = [True, False] if coin.random() < 0.5 else [False, True]
                found = {on: measure(server, on=on, window_s=args.window_s) for on in order}
                pairs.append({"on": found[True], "off": found[False]})
                print(f"pair {number + 1}: {found[True]:.1f} on, {found[False]:.1f} off")
            after = server.overlay_cost()
            tally = load.stop()
    ratios = [math.log(p["off"] / p["on"]) for p in pairs]
    mean, sd = statistics.fmean(ratios), statistics.stdev(ratios)
    half = stats.t.ppf(0.975, len(ratios) - 1) * sd / math.sqrt(len(ratios))
    steps = after["steps"] - before["steps"]
    result = {
        "what": "slowdown by an open recording: tokens/s without / with - 1",
        "slowdown_pct": 100 * math.expm1(mean),
        "interval_95_pct": [100 * math.expm1(mean - half), 100 * math.expm1(mean + half)],
        "pair_sd_pct": 100 * sd,
        "counted_us_per_step": (after["record_ns"] - before["record_ns"]) / steps / 1e3,
        "steps": steps,
        "pairs": pairs,
        "workload": {"clients": CLIENTS, "closed": True, "failed": tally.failed},
        "settings": {"pairs": args.pairs, "window_s": args.window_s, "seed": args.seed},
        "engine": {"vllm": info.version, "model": info.model, "flags": FLAGS},
        "machine": to_json(replace(machine(), kernel=None)),
        "python": platform.python_version(),
        "rtopt": rtopt.__version__,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    low, high = result["interval_95_pct"]
    print(f"slowdown {result['slowdown_pct']:+.2f} % (95 % interval {low:+.2f} to {high:+.2f} %)")
    print(f"{result['counted_us_per_step']:.0f} us per step counted in the engine's front end")


if __name__ == "__main__":
    main()
