"""What was considered: every candidate with its forecast, and why it was passed over."""

from rtopt.metrics import get
from rtopt.report.number import between, percent, quantity
from rtopt.report.run import Run
from rtopt.report.section import Section, Table
from rtopt.report.story.words import sentence, setting
from rtopt.types import Choice, Option


def options_section(run: Run) -> Section:
    """The choice of each round, in tables."""
    rounds = sorted(run.choices.items())
    title = "What was considered"
    if not rounds:
        lead = ("No change was looked for in this run.",)
        return Section(id="options", kicker="Claim", title=title, lead=lead)
    objective = _objective(run)
    lead = (
        "Each candidate was played through on the engine's own scheduler, fed with the recorded "
        "requests, before anything was touched.",
    )
    return Section(
        id="options",
        kicker="Claim",
        title=title,
        lead=(*lead, *(_chosen(n, choice, len(rounds)) for n, choice in rounds)),
        tables=tuple(
            _table(n, choice, objective, is_tried=n in run.trials)
            for n, choice in rounds
            if choice.options
        ),
    )


def _objective(run: Run) -> str:
    """What gains are forecast in: the trials' objective; throughput when nothing was tried."""
    trials = tuple(run.trials.values())
    return trials[0].plan.objective if trials else "throughput"


def _chosen(round_: int, choice: Choice, rounds: int) -> str:
    start = f"Round {round_}: " if rounds > 1 else ""
    return start + sentence(choice.reason)


def _table(round_: int, choice: Choice, objective: str, *, is_tried: bool) -> Table:
    chosen = "\u2713 tried" if is_tried else "chosen, not tried"
    rows = tuple(_row(option, choice, objective, chosen) for option in choice.options)
    now = choice.now.metrics.get(objective) if choice.now is not None else None
    told = "" if now is None else f"; at present knobs {quantity(now.value, get(objective).unit)}"
    return Table(
        head=("Candidate", f"Forecast {objective}", "Gain", "Decision"),
        rows=rows,
        caption=f"Round {round_}{told}.",
        is_prose=True,
    )


def _row(option: Option, choice: Choice, objective: str, chosen: str) -> tuple[str, ...]:
    name = option.lever if option.change is None else setting(option.change.knobs)
    gain = "\u2013" if option.gain_frac is None else percent(option.gain_frac, signed=True)
    is_chosen = choice.change is not None and option.change == choice.change
    why = chosen if is_chosen else sentence(option.rejected or "passed over")
    return (name, _forecast(option, objective), gain, why)


def _forecast(option: Option, objective: str) -> str:
    if option.forecast is None:
        return "\u2013"
    if option.forecast.refusal is not None:
        return f"refused: {option.forecast.refusal}"
    found = option.forecast.metrics.get(objective)
    if found is None:
        return "no data"
    unit = get(objective).unit
    text = quantity(found.value, unit)
    if found.interval is not None:
        text += f" ({between(found.interval, unit)})"
    return text + (", extrapolated" if option.forecast.is_extrapolated else "")
