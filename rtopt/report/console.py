"""The same story as the page's, in a few lines for a terminal."""

from pathlib import Path

from rtopt.metrics import get
from rtopt.report.number import number, percent
from rtopt.report.run import Run, open_run
from rtopt.report.story.forecast import comparisons
from rtopt.report.story.headline import because, headline, promise
from rtopt.report.story.kept import start_flags
from rtopt.report.story.words import metric, setting
from rtopt.types import Plan

_SHOWN = ("throughput", "itl_mean", "ttft_mean")


def describe_plan(plan: Plan) -> str:
    """What would be tried, how it is decided, and how often it is decided wrongly."""
    wrong = ", ".join(
        f"{percent(share)} at {effect} effect" if effect == "0" else f"{percent(share)} at {effect}"
        for effect, share in plan.false_keep.items()
    )
    limits = "; ".join(
        f"{s.metric} at most {number(s.limit)} {get(s.metric).unit}" for s in plan.slos
    )
    noise = "unknown" if plan.noise_sd is None else percent(plan.noise_sd)
    return "\n".join(
        (
            f"Plan: {setting(plan.change.knobs)} ({plan.change.reason})",
            f"  decided by {metric(plan.objective)} in randomised pairs of"
            f" {plan.block_s:g} s blocks ({plan.washout_s:g} s washout),"
            f" {plan.min_pairs} to {plan.max_pairs} pairs,"
            f" at most {plan.max_pairs * 2 * plan.block_s / 60:.0f} minutes",
            f"  kept only if proven better: P(kept although worse) <= {percent(plan.alpha)};"
            " otherwise restored",
            f"  limits: {limits or 'none given'}",
            f"  noise per pair: {noise}; kept by mistake in simulation: {wrong or 'unknown'}",
        )
    )


def describe_run(path: Path) -> str:
    """How a run ended: verdict, promise, forecast beside measurement, and what makes it last."""
    run = open_run(path)
    lines = [headline(run), because(run), *_forecasts(run), promise(run)]
    flags = [" ".join(flag) for trial in run.kept for flag in [start_flags(trial)] if flag]
    if flags:
        lines.append(
            f"A restart would lose it; to make it permanent: vllm serve ... {' '.join(flags)}"
        )
        lines.append(f"To take it back: rtopt undo {run.id}")
    return "\n".join(line for line in lines if line)


def _forecasts(run: Run) -> list[str]:
    lines = []
    for found in comparisons(run):
        pairs = (
            f"{name} {number(found.predicted[name].value)} predicted,"
            f" {number(found.measured[name])} measured"
            for name in found.shown
            if name in _SHOWN
        )
        label = " (extrapolated)" if found.is_extrapolated else ""
        lines.append(f"{found.title}{label}: {'; '.join(pairs)}")
    return lines
