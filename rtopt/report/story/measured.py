"""What was measured: before and after, beside the limits."""

from collections.abc import Mapping

from rtopt.metrics import get, measure
from rtopt.report.number import count, duration, percent, quantity
from rtopt.report.run import Run
from rtopt.report.section import Section, Table
from rtopt.report.story.arms import mean, pairs
from rtopt.report.story.words import metric
from rtopt.types import Slo, Trace, Trial

SHOWN = (
    "throughput",
    "ttft_mean",
    "ttft_p95",
    "itl_mean",
    "itl_p95",
    "e2e_mean",
    "e2e_p95",
)
GUARD_WORDS = {
    "held": "\u2713 held",
    "violated": "\u2717 broken",
    "uncertain": "? not proven",
    "no_data": "? no data",
}


def measured_section(run: Run) -> Section:
    """The baseline, and beside it the kept change (or the one tried last)."""
    lead = [_recorded(run.baseline)]
    kept = run.kept
    trials = kept or tuple(run.trials.values())[-1:]
    if not trials:
        table = _alone({} if run.baseline is None else measure(run.baseline))
    else:
        table = _beside(trials[0], trials[-1], is_kept=bool(kept))
        blocks = sum(len(pairs(trial)) for trial in trials)
        lead.append(
            f"The table compares {count(blocks, 'pair')} of blocks, one with the old and one with "
            "the new value in random order, so that drift of the machine cannot pass for a gain. "
            f"The objective is {metric(trials[-1].plan.objective)}; other numbers may move within "
            "the limits in the last column."
        )
        if not kept:
            lead.append("The change was not kept; its numbers show what was tried.")
    return Section(
        id="measured",
        kicker="Evidence",
        title="What was measured",
        lead=tuple(lead),
        tables=(table,),
    )


def _recorded(trace: Trace | None) -> str:
    if trace is None:
        return "There is no baseline recording in this run."
    engine = trace.header.engine
    text = (
        f"{engine.name} {engine.version} serving {engine.model} was recorded for "
        f"{duration(trace.duration_s)}: {count(len(trace.steps), 'step')}, "
        f"{count(len(trace.requests), 'finished request')}."
    )
    load = trace.header.load
    if load is None:
        return f"{text} How the load is offered was not stated; arrivals count as open."
    if load.clients is not None:
        return f"{text} {count(load.clients, 'client')} each waited for an answer before asking on."
    return f"{text} The load was {load.kind}: arrivals did not wait for answers."


def _alone(values: Mapping[str, float]) -> Table:
    rows = [
        (get(name).title, quantity(values[name], get(name).unit) if name in values else "no data")
        for name in SHOWN
    ]
    return Table(
        head=("", "Measured"), rows=tuple(rows), caption="Over the whole baseline recording."
    )


def _beside(first: Trial, last: Trial, *, is_kept: bool) -> Table:
    slos = {slo.metric: slo for slo in last.plan.slos}
    names = [*SHOWN, *(name for name in slos if name not in SHOWN)]
    rows = []
    for name in names:
        before, after = mean(first, "base", name), mean(last, "candidate", name)
        unit = get(name).unit
        rows.append(
            (
                get(name).title,
                "no data" if before is None else quantity(before, unit),
                "no data" if after is None else quantity(after, unit),
                _change(name, before, after),
                _limit(slos.get(name), last),
            )
        )
    return Table(
        head=("", "Before", "After" if is_kept else "On trial", "Change", "Limit (SLO)"),
        rows=tuple(rows),
        caption="Means over the blocks. Percentiles are those of each block, averaged.",
    )


def _change(name: str, before: float | None, after: float | None) -> str:
    if before is None or after is None or before <= 0:
        return "unknown"
    rel = after / before - 1
    text = percent(rel, signed=True)
    if rel == 0:
        return text
    is_better = (rel > 0) == (get(name).better == "higher")
    return f"{text} {'better' if is_better else 'worse'}"


def _limit(slo: Slo | None, trial: Trial) -> str:
    if slo is None:
        return "\u2013"
    states = {guard.name: guard.state for guard in trial.verdict.guards}
    sign = "\u2264" if get(slo.metric).better == "lower" else "\u2265"
    word = GUARD_WORDS[states.get(f"slo {slo.metric}", "no_data")]
    return f"{sign} {quantity(slo.limit, get(slo.metric).unit)}: {word}"
