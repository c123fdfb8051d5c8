"""What recording costs a real engine: throughput with a recording open against without.

Paired and interleaved: each pair holds one window with a recording open and one without, in random
order; tokens are counted by the server's own metrics. The engine computes on the first core and
everything else runs on the others. Windows are short and many, and the estimate is Hodges and
Lehmann's with its signed-rank interval: a shared machine falls to half its speed for some seconds
at a time, and a pair that holds such a moment must not decide.

    python benchmarks/overlay_cost.py --pairs 300 --out benchmarks/results/NAME.json
"""

import argparse
import json
import math
import os
import platform
import random
import statistics
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations_with_replacement
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
SETTLE_S = 0.3


def reading(client: httpx.Client) -> tuple[float, float]:
    """Output tokens since the server started, and the middle of the question on our clock."""
    asked = time.monotonic()
    page = client.get("/metrics").text
    middle = (asked + time.monotonic()) / 2
    for line in page.splitlines():
        if line.startswith("vllm:generation_tokens_total"):
            return float(line.rsplit(" ", 1)[1]), middle
    raise SystemExit("the server does not count its tokens")


def rate(client: httpx.Client, window_s: float) -> float:
    """Output tokens per second over a window, from the server's own counter."""
    before, began = reading(client)
    time.sleep(window_s)
    after, ended = reading(client)
    return (after - before) / (ended - began)


def drain(client: httpx.Client, stop: threading.Event, seconds: float) -> None:
    """Keep a recording open and read what comes, as a controller does."""
    with client.stream("GET", f"/rtopt/trace?seconds={seconds}") as stream:
        for _ in stream.iter_raw():
            if stop.is_set():
                return


def measure(client: httpx.Client, *, on: bool, window_s: float) -> float:
    """One window, with or without a recording open."""
    stop = threading.Event()
    with ThreadPoolExecutor(max_workers=1) as pool:
        reader = pool.submit(drain, client, stop, window_s + 60) if on else None
        time.sleep(SETTLE_S)
        found = rate(client, window_s)
        stop.set()
        if reader is not None:
            reader.result()
    return found


def hodges_lehmann(values: list[float]) -> tuple[float, float, float]:
    """Centre of a symmetric distribution, with its 95 % signed-rank interval.

    Source:
        Hodges, Lehmann. Annals of Mathematical Statistics 34(2), 1963; the interval by the normal
        approximation of Wilcoxon's statistic (Hollander, Wolfe, chapter 3).
    """
    means = sorted((a + b) / 2 for a, b in combinations_with_replacement(values, 2))
    n = len(values)
    half = stats.norm.ppf(0.975) * math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    below = max(0, math.floor(n * (n + 1) / 4 - half))
    return statistics.median(means), means[below], means[-1 - below]


def main() -> None:
    """Measure, print, and write the result with everything that is needed to judge it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--window-s", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    coin = random.Random(args.seed)
    first, *others = sorted(os.sched_getaffinity(0))
    if not others:
        raise SystemExit("one core: wanted one for the engine and one for everything else")
    os.sched_setaffinity(0, others)
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        process = VllmProcess(
            flags=FLAGS,
            log=Path(folder) / "vllm.log",
            extra_env={"VLLM_CPU_OMP_THREADS_BIND": str(first)},
        )
        with (
            process,
            LoadProcess(
                ClosedLoop(url=process.url, model=MODEL, clients=CLIENTS, seed=args.seed)
            ) as load,
        ):
            server = connect(process.url)
            assert isinstance(server, VllmServer)
            info = server.state().info
            client = httpx.Client(base_url=process.url, timeout=60, trust_env=False)
            time.sleep(10)
            before = server.overlay_cost()
            for number in range(args.pairs):
                order = [True, False] if coin.random() < 0.5 else [False, True]
                found = {on: measure(client, on=on, window_s=args.window_s) for on in order}
                pairs.append({"on": found[True], "off": found[False]})
                print(
                    f"pair {number + 1}: {found[True]:.1f} on, {found[False]:.1f} off", flush=True
                )
            after = server.overlay_cost()
            tally = load.stop()
    ratios = [math.log(p["off"] / p["on"]) for p in pairs]
    mean, low, high = hodges_lehmann(ratios)
    steps = after["steps"] - before["steps"]
    result = {
        "what": "slowdown by an open recording: tokens/s without / with - 1 (Hodges-Lehmann)",
        "slowdown_pct": 100 * math.expm1(mean),
        "interval_95_pct": [100 * math.expm1(low), 100 * math.expm1(high)],
        "pair_sd_pct": 100 * statistics.stdev(ratios),
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
