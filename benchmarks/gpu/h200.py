"""What tracing costs and shows on one GPU: at most 8 minutes, results as JSON.

A decode loop of torch, no vLLM. Each section has its own time limit and runs in a process of its
own, so a crash or a hang is a record of that section and the next one still runs; CUPTI, too, is
then free again. Only torch and numpy are needed; what else is missing is a record.

    python benchmarks/gpu/h200.py --out h200.json
    python benchmarks/gpu/h200.py --dry --out dry.json     # small, on the CPU: does it run?
"""

import argparse
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
TOTAL_S: Final = 480.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One question, answered by `measure(is_dry)` of a module beside this file."""

    module: str
    limit_s: float


SECTIONS: Final[Mapping[str, Section]] = {
    "versions": Section(module="versions", limit_s=30),
    "overhead": Section(module="overhead", limit_s=150),
    "second_subscriber": Section(module="subscribers", limit_s=40),
    "graph_nodes": Section(module="graph_nodes", limit_s=60),
    "random_data": Section(module="random_data", limit_s=60),
    "buffers": Section(module="buffers", limit_s=90),
}


def run(
    sections: Mapping[str, Section], *, is_dry: bool, total_s: float = TOTAL_S
) -> dict[str, Any]:
    """Each section's record, in order; one that failed has "error" instead of "result"."""
    began_s = time.monotonic()
    records: dict[str, Any] = {}
    for name, section in sections.items():
        left_s = total_s - (time.monotonic() - began_s)
        if left_s <= 0:
            records[name] = {"error": f"not begun: the {total_s:g} s of the whole are used up"}
            continue
        records[name] = _record(section, min(section.limit_s, left_s), is_dry=is_dry)
    return {"took_s": round(time.monotonic() - began_s, 1), "dry": is_dry, "sections": records}


def _record(section: Section, limit_s: float, *, is_dry: bool) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.gpu.h200", "--child", section.module]
    began_s = time.monotonic()
    try:
        ended = subprocess.run(
            [*command, "--dry"] if is_dry else command,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no answer in {limit_s:g} s", "took_s": round(limit_s, 1)}
    took = {"took_s": round(time.monotonic() - began_s, 1)}
    # torch and CUPTI print too; the answer is the last line.
    lines = ended.stdout.splitlines()
    try:
        answer = json.loads(lines[-1]) if ended.returncode == 0 and lines else None
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        told = " | ".join(ended.stderr.splitlines()[-3:])[-600:]
        return {"error": f"ended with code {ended.returncode}: {told or 'nothing said'}"} | took
    return {"result": answer} | took


def main(words: Sequence[str] | None = None) -> None:
    """Run all sections, or, as a child, one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("h200.json"))
    parser.add_argument("--dry", action="store_true", help="small sizes, on the CPU")
    parser.add_argument("--only", choices=sorted(SECTIONS), action="append")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args(words)
    if asked.child:
        measure = importlib.import_module(f"benchmarks.gpu.{asked.child}").measure
        print(json.dumps(measure(is_dry=asked.dry)))
        return
    chosen = {name: SECTIONS[name] for name in asked.only or SECTIONS}
    results = run(chosen, is_dry=asked.dry)
    asked.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    for name, record in results["sections"].items():
        print(f"{name}: {record.get('error') or 'done'} ({record.get('took_s', 0)} s)")


if __name__ == "__main__":
    main()
