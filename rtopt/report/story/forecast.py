"""Prediction beside measurement, for the engine as it was and for each kept change."""

from collections.abc import Mapping
from dataclasses import dataclass

from rtopt.metrics import get, measure
from rtopt.report.number import between, percent, quantity
from rtopt.report.run import Run
from rtopt.report.section import Section, Table
from rtopt.report.story.arms import mean
from rtopt.report.story.words import sentence, setting
from rtopt.types import Deviation, Estimate, Gap, Prediction, Trial

SHOWN = ("throughput", "itl_mean", "itl_p95", "ttft_mean", "ttft_p95", "e2e_mean")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One set of knobs: what was expected and what came."""

    title: str
    is_extrapolated: bool
    source: str
    """What the measured values are of."""
    predicted: Mapping[str, Estimate]
    measured: Mapping[str, float]

    @property
    def shown(self) -> tuple[str, ...]:
        """Metrics with both values."""
        return tuple(n for n in SHOWN if n in self.predicted and n in self.measured)


def comparisons(run: Run) -> tuple[Comparison, ...]:
    """As it was first, then each trial whose change had a forecast."""
    found = []
    if 1 in run.predictions and run.predictions[1].refusal is None and 1 in run.deviations:
        found.append(_as_it_was(run.predictions[1], run.deviations[1]))
    for round_, trial in sorted(run.trials.items()):
        forecast = chosen_forecast(run, round_)
        if forecast is not None and forecast.refusal is None:
            found.append(_changed(run, round_, trial, forecast))
    return tuple(found)


def chosen_forecast(run: Run, round_: int) -> Prediction | None:
    """The forecast of the change that was tried in this round."""
    choice = run.choices.get(round_)
    if choice is None or choice.change is None:
        return None
    return next((o.forecast for o in choice.options if o.change == choice.change), None)


def forecast_section(run: Run) -> Section:
    """Tables of predicted, measured and error."""
    found = comparisons(run)
    lead = ["The forecast was made before the change was tried, from the baseline recording alone."]
    refused = [p.refusal for _, p in sorted(run.predictions.items()) if p.refusal is not None]
    if not found:
        lead = ["This run holds no prediction that can be set beside a measurement."]
    lead += [sentence(f"A prediction was refused: {why}") for why in refused]
    absent: dict[str, str] = {}
    for deviation in run.deviations.values():
        absent |= deviation.absent
    lead += [f"Not compared: {name} ({why})." for name, why in absent.items()]
    return Section(
        id="forecast",
        kicker="Evidence",
        title="Prediction beside measurement",
        lead=tuple(lead),
        tables=tuple(_table(c) for c in found),
    )


def _as_it_was(prediction: Prediction, deviation: Deviation) -> Comparison:
    gaps: Mapping[str, Gap] = deviation.metrics
    return Comparison(
        title="As it was",
        is_extrapolated=prediction.is_extrapolated,
        source="the baseline recording",
        predicted=prediction.metrics,
        measured={name: gap.measured for name, gap in gaps.items()},
    )


def _changed(run: Run, round_: int, trial: Trial, forecast: Prediction) -> Comparison:
    if round_ in run.afters:
        measured, source = measure(run.afters[round_]), "the recording after it was kept"
    else:
        arms = {name: mean(trial, "candidate", name) for name in SHOWN}
        measured = {name: value for name, value in arms.items() if value is not None}
        source = "its blocks on trial"
    return Comparison(
        title=f"With {setting(trial.plan.change.knobs)}",
        is_extrapolated=forecast.is_extrapolated,
        source=source,
        predicted=forecast.metrics,
        measured=measured,
    )


def _table(found: Comparison) -> Table:
    rows = []
    for name in found.shown:
        expected, value, unit = found.predicted[name], found.measured[name], get(name).unit
        band = "" if expected.interval is None else between(expected.interval, unit)
        inside = (
            "\u2013"
            if expected.interval is None
            else "inside"
            if expected.interval.low <= value <= expected.interval.high
            else "outside"
        )
        error = percent(expected.value / value - 1, signed=True) if value else "unknown"
        shown = quantity(expected.value, unit)
        rows.append(
            (get(name).title, shown, band or "no interval", quantity(value, unit), error, inside)
        )
    label = " Extrapolated: the recording has no data there." if found.is_extrapolated else ""
    return Table(
        head=("", "Predicted", "Interval", "Measured", "Error", "Measured in interval"),
        rows=tuple(rows),
        caption=f"{found.title}; measured over {found.source}.{label}",
    )
