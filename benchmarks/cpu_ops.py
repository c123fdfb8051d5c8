"""One real event trace of the CPU engine, cut down to three decode steps at batch 4.

Starts the embedded model with vLLM's torch profiler (stacks off, shapes on, detailed annotations),
offers four requests, and keeps the three consecutive decode steps that took the least time: a
shared machine takes the engine's processor away for milliseconds. What names the machine or a path
is left out. `tests/unit/profile/ops` reads the result.

    python benchmarks/cpu_ops.py --out tests/unit/profile/fixtures/kineto_cpu.json.gz
"""

import argparse
import gzip
import json
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import httpx

from rtopt.engines.vllm_process import VllmProcess
from rtopt.profile.ops import account, describe, split
from rtopt.types import HostEvent

MODEL: Final = "SmolLM2-135M-Instruct"
BATCH: Final = 4
PROMPT_TOKENS: Final = 32
OUTPUT_TOKENS: Final = 64
DELAY_STEPS: Final = 12
"""Prefills and the first decode steps, which are slow, lie before the window."""
TRACED_STEPS: Final = 24
KEPT_STEPS: Final = 3
DECODE: Final = re.compile(
    rf"execute_{BATCH}_context_0\(.*\)_generation_{BATCH}\(sq{BATCH}sk\d+sqsq\d+sqsk\d+\)"
)
KEPT_KEYS: Final = (
    "schemaVersion",
    "record_shapes",
    "with_flops",
    "vllm_version",
    "displayTimeUnit",
    "baseTimeNanoseconds",
)
KEPT_ARGS: Final = ("Input Dims", "Input type")
KEPT_CATEGORIES: Final = ("cpu_op", "user_annotation")


def capture(folder: Path) -> Path:
    """Run the engine with the profiler on; the worker's trace."""
    config = {
        "profiler": "torch",
        "torch_profiler_dir": str(folder),
        "torch_profiler_with_stack": False,
        "torch_profiler_record_shapes": True,
        "detailed_trace_annotation": True,
        "ignore_frontend": True,
    }
    flags = ("--enforce-eager", "--max-num-seqs", "8", "--profiler-config", json.dumps(config))
    window = {"delay_iterations": DELAY_STEPS, "max_iterations": TRACED_STEPS}
    with (
        VllmProcess(flags=flags, log=folder / "vllm.log") as server,
        httpx.Client(base_url=server.url, timeout=120, trust_env=False) as client,
    ):
        client.post("/start_profile", json=window).raise_for_status()
        with ThreadPoolExecutor(max_workers=BATCH) as pool:
            for answer in pool.map(lambda number: complete(client, number), range(BATCH)):
                answer.raise_for_status()
        client.post("/stop_profile").raise_for_status()
    (found,) = folder.glob("*.pt.trace.json*")
    return found


def complete(client: httpx.Client, number: int) -> httpx.Response:
    """One request with a prompt of its own and an answer of fixed length."""
    first = 1000 * (number + 1)
    asked = {
        "model": MODEL,
        "prompt": list(range(first, first + PROMPT_TOKENS)),
        "max_tokens": OUTPUT_TOKENS,
        "ignore_eos": True,
    }
    return client.post("/v1/completions", json=asked)


def cut(document: dict[str, Any]) -> dict[str, Any]:
    """The quickest run of consecutive decode steps, without what names the machine."""
    events = [e for e in document["traceEvents"] if e.get("ph") == "X"]
    steps = sorted((e for e in events if e["name"].startswith("execute_")), key=lambda e: e["ts"])
    runs = [
        steps[at : at + KEPT_STEPS]
        for at in range(len(steps) - KEPT_STEPS + 1)
        if all(DECODE.fullmatch(step["name"]) for step in steps[at : at + KEPT_STEPS])
    ]
    if not runs:
        raise SystemExit(f"no {KEPT_STEPS} decode steps at batch {BATCH} in a row; run it again")
    kept = min(runs, key=lambda run: max(step["dur"] for step in run))
    print("steps of", *(f"{step['dur'] / 1e3:.1f}" for step in kept), "ms")
    windows = [(step["ts"], step["ts"] + step["dur"]) for step in kept]
    assert all(before[1] <= after[0] for before, after in pairwise(windows))
    inside = (
        e
        for e in events
        if e.get("cat") in KEPT_CATEGORIES
        and any(began <= e["ts"] and e["ts"] + e["dur"] <= ended for began, ended in windows)
    )
    return {
        **{key: document[key] for key in KEPT_KEYS if key in document},
        "traceEvents": [slim(event) for event in sorted(inside, key=lambda e: e["ts"])],
        "traceName": "kineto_cpu.json",
    }


def slim(event: dict[str, Any]) -> dict[str, Any]:
    """An event with the arguments that a reader uses."""
    args = {name: event["args"][name] for name in KEPT_ARGS if event.get("args", {}).get(name)}
    return {key: event[key] for key in ("ph", "cat", "name", "pid", "tid", "ts", "dur")} | {
        "args": args
    }


def host_of(document: dict[str, Any]) -> list[HostEvent]:
    """The ops and annotations of the cut trace."""
    return [
        HostEvent(
            t_ns=round(event["ts"] * 1000),
            dur_ns=round(event["dur"] * 1000),
            name=event["name"],
            what="op" if event["cat"] == "cpu_op" else "range",
            thread=event["tid"],
            dims=tuple(
                tuple(dims) if all(isinstance(size, int) for size in dims) else ()
                for dims in event["args"].get("Input Dims", ())
            ),
        )
        for event in document["traceEvents"]
    ]


def main() -> None:
    """Capture, cut, write; print where the time of the steps went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--from-file", type=Path, help="cut this trace; start no engine")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = asked.from_file or capture(Path(folder))
        data = source.read_bytes()
        document = cut(json.loads(gzip.decompress(data) if source.suffix == ".gz" else data))
    text = json.dumps(document, separators=(",", ":")).encode("ascii")
    asked.out.write_bytes(gzip.compress(text, 9, mtime=0))
    print(f"{len(document['traceEvents'])} events, {asked.out.stat().st_size} bytes: {asked.out}")
    for name, ms, share, count in describe([account(step) for step in split(host_of(document))]):
        print(f"{name:30} {ms:>8} ms {share:>7} {count:>5}")


if __name__ == "__main__":
    main()
