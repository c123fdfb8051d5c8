"""What was tried: each trial with its verdict, its reasons and its guards."""

from rtopt.metrics import get
from rtopt.report.number import count, duration, interval, number, percent, quantity
from rtopt.report.run import Run
from rtopt.report.section import Badge, Section, Table
from rtopt.report.story.arms import mean, pairs
from rtopt.report.story.measured import GUARD_WORDS
from rtopt.report.story.words import doing, sentence
from rtopt.stats import Rule
from rtopt.types import Trial

BADGES = {
    "keep": Badge(text="\u2713 kept", tone="good"),
    "restore": Badge(text="\u21ba restored", tone="plain"),
    "inconclusive": Badge(text="? inconclusive, restored", tone="open"),
}


def tried_section(run: Run) -> Section:
    """All trials, in order."""
    title = "What was tried"
    if not run.trials:
        ended = "" if run.ended is None else f" {sentence(run.ended)}"
        lead = (f"Nothing was tried, and the engine was not touched.{ended}",)
        return Section(id="tried", kicker="Intervention", title=title, lead=lead)
    lead = (
        "Old and new value took turns on live traffic, in pairs whose order a coin decided. The "
        "gate looked after every pair; its default is to restore.",
    )
    parts = tuple(trial_part(n, trial, run) for n, trial in sorted(run.trials.items()))
    return Section(id="tried", kicker="Intervention", title=title, lead=lead, parts=parts)


def trial_part(round_: int, trial: Trial, run: Run) -> Section:
    """One trial in words and its table of guards."""
    badge = BADGES[trial.verdict.decision]
    if trial.id in run.undone:
        badge = Badge(text="\u21ba kept, taken back later", tone="plain")
    guards = tuple(
        (_guard_name(guard.name), GUARD_WORDS[guard.state], sentence(guard.text))
        for guard in trial.verdict.guards
    )
    tables = (
        Table(
            head=("Guard", "State", "What it saw"), rows=guards, is_prose=True, caption="Guards."
        ),
    )
    return Section(
        id=f"trial-{round_}",
        title=f"Trial {round_}: {doing(trial)}",
        badge=badge,
        lead=trial_sentences(trial),
        tables=tables if guards else (),
    )


def trial_sentences(trial: Trial) -> tuple[str, ...]:
    """What was found, why the gate decided as it did, and what it took."""
    plan, verdict = trial.plan, trial.verdict
    told = get(plan.objective)
    base, candidate = (
        mean(trial, "base", plan.objective),
        mean(trial, "candidate", plan.objective),
    )
    found = "No pair was completed, so no effect is known."
    if verdict.effect is not None and base is not None and candidate is not None:
        found = (
            f"{told.title}: {quantity(base, told.unit)} without the change, "
            f"{quantity(candidate, told.unit)} with it, "
            f"{percent(verdict.effect.value, signed=True)}"
        )
        if verdict.effect.interval is not None:
            found += f" ({interval(verdict.effect.interval)})"
        found += "."
    rule = Rule(
        alpha=plan.alpha, prior=plan.prior, min_pairs=plan.min_pairs, max_pairs=plan.max_pairs
    )
    decided = f"Decision: {verdict.decision}. {sentence(verdict.reason)}"
    took = (
        f"{count(len(pairs(trial)), 'pair')} of 2 blocks of {duration(plan.block_s)} each "
        f"({duration(plan.washout_s)} of it washout), "
        f"{count(verdict.exposed_requests, 'request')} exposed. "
        f"A keep needed evidence (e-value) of {number(rule.keep_e)}"
        + (f", and it reached {number(verdict.e_value)}." if verdict.e_value is not None else ".")
    )
    return (found, decided, took)


def _guard_name(name: str) -> str:
    return name.replace("_", " ") if not name.startswith(("slo", "margin")) else name
