"""Run a file of cases: one line each, exit 1 if any fails."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from tests.cases.adapters import ADAPTERS
from tests.cases.case import run


def main(arguments: list[str] | None = None) -> int:
    """Print the outcome of every case of the kind asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.cases")
    parser.add_argument("file", type=Path)
    parser.add_argument("--kind")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    lines = asked.file.read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines if line.strip()]
    kinds = sorted({case["kind"] for case in cases})
    if asked.kind is not None and asked.kind not in kinds:
        parser.error(f"--kind {asked.kind}: the file has {', '.join(kinds)}")
    outcomes = [run(case, ADAPTERS) for case in cases if asked.kind in (None, case["kind"])]
    for one in outcomes:
        shown = (
            json.dumps(asdict(one))
            if asked.json
            else f"{one.id} {one.kind} {one.status} {one.reason} "
            f"expected={json.dumps(one.expected)} got={json.dumps(one.got)}"
        )
        sys.stdout.write(shown + "\n")
    return int(any(one.status == "fail" for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())
