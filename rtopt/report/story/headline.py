"""The top of the page: one sentence of verdict, the promise, and the few numbers that matter."""

from collections.abc import Sequence
from math import prod

from rtopt.metrics import get, measure
from rtopt.report.number import count, interval, number, percent, quantity
from rtopt.report.run import Run
from rtopt.report.section import Fact, Tone
from rtopt.report.story.arms import exposed, mean
from rtopt.report.story.kept import start_flags
from rtopt.report.story.words import doing, metric, sentence
from rtopt.types import Estimate, Interval, Trial

ENDED = {"keep": "kept", "restore": "restored", "inconclusive": "inconclusive, so restored"}


def headline(run: Run) -> str:
    """The verdict in one sentence, or the reason why there is none."""
    kept = run.kept
    if kept:
        return _gain(kept)
    taken_back = [t for t in run.trials.values() if t.id in run.undone]
    if taken_back:
        return (
            f"Nothing stands: rtopt had kept a change ({doing(taken_back[-1])}), "
            "and it was taken back later."
        )
    if run.trials:
        tried = count(len(run.trials), "change")
        return f"rtopt tried {tried} and kept none: the engine runs as it did before."
    if run.choices:
        choice = run.choices[max(run.choices)]
        if choice.change is None:
            return f"rtopt changed nothing. {sentence(choice.reason)}"
        return "rtopt found a change worth trying and did not try it: the engine was not touched."
    speed = None if run.baseline is None else measure(run.baseline).get("throughput")
    if speed is None:
        return "rtopt changed nothing, and this run holds no measured throughput."
    return f"rtopt measured {number(speed)} output tokens per second and changed nothing."


def because(run: Run) -> str:
    """Why nothing was kept, one reason per trial; empty when something was."""
    if run.kept:
        return ""
    return " ".join(
        sentence(f"{doing(trial)}: {ENDED[trial.verdict.decision]} ({trial.verdict.reason})")
        for trial in run.trials.values()
        if not trial.verdict.keep
    )


def promise(run: Run) -> str:
    """What the run guarantees, and how many requests it took to find out."""
    trials = tuple(run.trials.values())
    if not trials:
        return "No request was exposed to any change."
    bound = sum(trial.plan.alpha for trial in trials)
    candidate, total = exposed(trials)
    return (
        f"The promise: P(any kept lever is worse than baseline) \u2264 {percent(bound)}, however "
        f"often the gate looked. To find out, {number(candidate)} of {number(total)} measured "
        "requests were served with a change on trial; the rest saw the engine as it was."
    )


def facts(run: Run) -> tuple[Fact, ...]:
    """At most four numbers: the objective, its limits, the risk, and how to make it last."""
    if not run.trials:
        return ()
    found = [_objective(run), *_limits(run)[:1], _risk(run)]
    if run.kept:
        flags = " ".join(flag for trial in run.kept for flag in start_flags(trial))
        found.append(
            Fact(
                label="Make it permanent with",
                value=flags,
                note="a restart without it loses the gain",
                is_code=True,
            )
        )
    return tuple(fact for fact in found if fact is not None)


def combined(kept: Sequence[Trial]) -> Estimate | None:
    """Effect of all kept changes together; its interval holds by the union bound."""
    effects = [trial.verdict.effect for trial in kept]
    if any(effect is None for effect in effects):
        return None
    known = [effect for effect in effects if effect is not None]
    value = prod(1 + effect.value for effect in known) - 1
    bands = [effect.interval for effect in known if effect.interval is not None]
    if len(bands) < len(known):
        return Estimate(value=value)
    low, high = prod(1 + b.low for b in bands) - 1, prod(1 + b.high for b in bands) - 1
    level = 1 - sum(1 - b.level for b in bands)
    return Estimate(value=value, interval=Interval(low=low, high=high, level=level))


def _gain(kept: Sequence[Trial]) -> str:
    objective = kept[0].plan.objective
    before, after = mean(kept[0], "base", objective), mean(kept[-1], "candidate", objective)
    verb = "raised" if get(objective).better == "higher" else "cut"
    text = f"rtopt {verb} {metric(objective)}"
    if before is not None and after is not None:
        unit = get(objective).unit
        text += f" from {_bare(before, unit)} to {_bare(after, unit)}"
    effect = combined(kept)
    if effect is not None:
        text += f": {percent(effect.value, signed=True)}"
        if effect.interval is not None:
            text += f" ({interval(effect.interval)})"
    return f"{text} by {', then '.join(doing(trial) for trial in kept)}."


def _bare(value: float, unit: str) -> str:
    """A rate without its unit, which the metric's name says already."""
    return number(value) if unit.endswith("/s") else quantity(value, unit)


def _objective(run: Run) -> Fact | None:
    trials = run.kept or tuple(run.trials.values())
    objective = trials[0].plan.objective
    unit = get(objective).unit
    before, after = mean(trials[0], "base", objective), mean(trials[-1], "candidate", objective)
    if before is None:
        return None
    if not run.kept or after is None:
        return Fact(label=get(objective).title, value=quantity(before, unit), note="unchanged")
    effect = combined(run.kept)
    note = "" if effect is None else percent(effect.value, signed=True)
    return Fact(
        label=get(objective).title,
        value=f"{_bare(before, unit)} \u2192 {quantity(after, unit)}",
        note=note,
        tone="good",
    )


def _limits(run: Run) -> list[Fact]:
    """How the limits that the user gave fared under the change that was tried last."""
    trials = run.kept or tuple(run.trials.values())
    plan, verdict = trials[-1].plan, trials[-1].verdict
    if not plan.slos:
        return [Fact(label="Limits (SLO)", value="none given", tone="open")]
    states = {guard.name: guard.state for guard in verdict.guards}
    found = [states.get(f"slo {slo.metric}", "no_data") for slo in plan.slos]
    tone: Tone = "open"
    value = "not proven"
    if "violated" in found:
        tone, value = "bad", "broken"
    elif all(state == "held" for state in found):
        tone, value = "good", "all held"
    text = []
    for slo in plan.slos:
        told = get(slo.metric)
        sign = "\u2264" if told.better == "lower" else "\u2265"
        now = mean(trials[-1], "candidate", slo.metric)
        limit = f"{sign} {quantity(slo.limit, told.unit)}"
        shown = f"no data for {limit}" if now is None else f"{quantity(now, told.unit)} {limit}"
        text.append(f"{slo.metric} {shown}")
    return [Fact(label="Limits (SLO)", value=value, note=", ".join(text), tone=tone)]


def _risk(run: Run) -> Fact:
    bound = sum(trial.plan.alpha for trial in run.trials.values())
    candidate, total = exposed(run.trials.values())
    return Fact(
        label="Risk of keeping a change that is worse",
        value=f"\u2264 {percent(bound)}",
        note=f"{number(candidate)} of {number(total)} measured requests were exposed",
    )
