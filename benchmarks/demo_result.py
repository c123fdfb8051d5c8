"""The figures of one run, with everything that is needed to judge them, as JSON.

python benchmarks/demo_result.py RUN --out benchmarks/results/NAME.json
"""

import argparse
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rtopt.storage import find_run, load, read_trace, to_json
from rtopt.types import Choice, Trial
from rtopt.version import VERSION

SHOWN = ("throughput", "itl_mean", "itl_p95", "ttft_mean", "ttft_p95", "e2e_mean")


def main() -> None:
    """Read the run's nouns and write what a reader would ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    run = find_run(args.run)
    baseline = read_trace(run.path / "baseline.jsonl.gz")
    rounds = []
    for path in sorted(run.path.glob("trial-*.json")):
        trial = load(Trial, path)
        choice = load(Choice, run.path / path.name.replace("trial", "choice"))
        forecast = next(o.forecast for o in choice.options if o.change == choice.change)
        arms = {
            arm: {
                name: [round(b.metrics[name], 2) for b in trial.blocks if b.arm == arm]
                for name in SHOWN
            }
            for arm in ("base", "candidate")
        }
        rounds.append(
            {
                "change": dict(trial.plan.change.knobs),
                "undo": dict(trial.undo.knobs),
                "verdict": to_json(trial.verdict),
                "plan": to_json(trial.plan),
                "forecast": forecast
                and {n: to_json(forecast.metrics[n]) for n in SHOWN if n in forecast.metrics},
                "blocks": arms,
                "seconds": round((trial.ended_unix_ns - trial.started_unix_ns) / 1e9, 1),
            }
        )
    about = run.about()
    result = {
        "what": "one run of the demo: measured block by block, forecast before the trial",
        "date": datetime.fromtimestamp(about["created_unix_ns"] / 1e9, UTC).strftime("%Y-%m-%d"),
        "rtopt": VERSION,
        "machine": to_json(replace(baseline.header.machine, kernel=None)),
        "engine": {
            "vllm": baseline.header.engine.version,
            "model": baseline.header.engine.model,
            "config": dict(baseline.header.engine.config),
        },
        "settings": about["settings"],
        "rounds": rounds,
    }
    args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
