"""Choosing the next change to try: what attribution nominates, ranked by forecast.

Nothing is dropped silently: every lever and every candidate is in `Choice.options` with the reason
why it was passed over.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from rtopt.apply.registry import find_lever
from rtopt.errors import EvidenceError
from rtopt.metrics import get
from rtopt.types import (
    Attribution,
    Change,
    Choice,
    Context,
    EngineState,
    Envelope,
    Estimate,
    Lever,
    Option,
    Prediction,
    Slo,
    Trial,
    Value,
)

Forecast = Callable[[Mapping[str, Value]], Prediction]
"""Changed knobs to expected metrics; no knobs means the present ones."""


_TOLD = 3
"""Options named in the reason why there is no change."""


def choose(
    attribution: Attribution,
    levers: Mapping[str, Lever],
    state: EngineState,
    *,
    forecast: Forecast,
    objective: str,
    slos: Sequence[Slo] = (),
    tried: Sequence[Trial] = (),
    min_gain_frac: float = 0.0,
    only: str | None = None,
) -> Choice:
    """Pick the change with the largest forecast gain, or say why there is none.

    Gains within a point of each other count as equal, and then the lever's own order decides: a
    forecast is not better than that.

    Args:
        attribution: The named causes. Where it abstained nothing is changed, unless `only` is set.
        levers: The levers, by id.
        state: The engine as it is now.
        forecast: What to expect for changed knobs.
        objective: Metric id.
        slos: Absolute limits; a forecast whose whole interval breaks one is passed over.
        tried: Trials of this run; a change is not tried twice.
        min_gain_frac: Smallest forecast gain worth a trial.
        only: Id of the one lever that the user asked for. It need not target a named cause, and a
            candidate without a forecast may be tried: the gate decides.

    Raises:
        UsageError: `only` or a metric is unknown.
    """
    wanted = list(levers.values()) if only is None else [find_lever(levers, only)]
    get(objective)
    for slo in slos:
        get(slo.metric)
    if attribution.abstained is not None and only is None:
        passed = f"no cause is named: {attribution.abstained}"
        return Choice(
            change=None,
            reason=f"Attribution abstained ({attribution.abstained}); nothing is changed.",
            options=tuple(Option(lever=it.id, change=None, rejected=passed) for it in wanted),
        )
    now = _or_none(forecast, {})
    options = [
        _priced(option, forecast=forecast, now=now, objective=objective)
        if option.rejected is None
        else option
        for lever in wanted
        for option in _offered(lever, attribution, state, tried, is_asked=only is not None)
    ]
    options = [
        replace(option, rejected=_why_not(option, objective, slos, min_gain_frac, only))
        if option.rejected is None
        else option
        for option in options
    ]
    return _best(options, now)


def _offered(
    lever: Lever,
    attribution: Attribution,
    state: EngineState,
    tried: Sequence[Trial],
    *,
    is_asked: bool,
) -> Iterator[Option]:
    """What a lever offers, each candidate checked; or one option with why it can't be used."""
    context = Context(
        knobs=state.values(),
        causes=attribution.causes,
        lever=lever.id,
        numbers=attribution.numbers,
    )
    unusable = _why_unusable(lever, context, is_asked=is_asked)
    if unusable is not None:
        yield Option(lever=lever.id, change=None, rejected=unusable)
        return
    changes = lever.propose(context)
    if not changes:
        yield Option(
            lever=lever.id, change=None, rejected="it has no other value to offer from here"
        )
    limits = lever.envelope(context)
    for change in changes:
        passed = _why_invalid(change, lever, limits, state) or _why_again(change, tried)
        yield Option(lever=lever.id, change=change, rejected=passed)


def _why_unusable(lever: Lever, context: Context, *, is_asked: bool) -> str | None:
    if lever.scope == "restart":
        return "it needs a restart of the engine; only live levers are tried"
    reason = lever.applies(context)
    if reason is not None:
        return reason
    against = sorted(context.causes.intersection(lever.never_for))
    if against:
        return f"it makes {', '.join(against)} worse"
    if not is_asked and context.causes.isdisjoint(lever.targets):
        named = ", ".join(sorted(context.causes)) or "none"
        return f"it targets {', '.join(lever.targets)}, and the named causes are: {named}"
    return None


def _why_invalid(change: Change, lever: Lever, limits: Envelope, state: EngineState) -> str | None:
    """Why a proposed change may not be put on this engine, or None."""
    live = {knob.name: knob for knob in state.knobs}
    for name, value in change.knobs.items():
        if name not in lever.knobs:
            return f"{name} is not one of the lever's knobs ({', '.join(lever.knobs)})"
        if name not in live:
            return f"{name} can't be moved while this engine runs"
        if isinstance(value, str):
            return f"{name}={value}: not a number, so the envelope can't be checked"
        low, high = max(limits.low, live[name].low), min(limits.high, live[name].high)
        if not low <= value <= high:
            return f"{name}={value} is outside the safe {low:g}..{high:g}"
    if all(live[name].value == value for name, value in change.knobs.items()):
        return "the engine runs with this already"
    return None


def _why_again(change: Change, tried: Sequence[Trial]) -> str | None:
    for trial in tried:
        if trial.plan.change.knobs == change.knobs:
            return f"tried in {trial.id}: {trial.verdict.decision}"
    return None


def _or_none(forecast: Forecast, knobs: Mapping[str, Value]) -> Prediction:
    """Forecast; too little evidence becomes a refusal, so that the reason is kept."""
    try:
        return forecast(knobs)
    except EvidenceError as error:
        return Prediction(method="none", knobs=dict(knobs), refusal=str(error))


def _priced(option: Option, *, forecast: Forecast, now: Prediction, objective: str) -> Option:
    """Add the forecast and its gain to an option; absent where there is none."""
    assert option.change is not None
    prediction = _or_none(forecast, option.change.knobs)
    before, after = now.metrics.get(objective), prediction.metrics.get(objective)
    if before is None or after is None or before.value <= 0:
        return replace(option, forecast=prediction)
    rel = after.value / before.value - 1
    gain = rel if get(objective).better == "higher" else -rel
    return replace(option, forecast=prediction, gain_frac=gain)


def _why_not(
    option: Option,
    objective: str,
    slos: Sequence[Slo],
    min_gain_frac: float,
    only: str | None,
) -> str | None:
    """Why a forecast option is not worth a trial, or None."""
    assert option.forecast is not None
    for slo in slos:
        expected = option.forecast.metrics.get(slo.metric)
        if expected is not None and _breaks(slo, expected):
            unit = get(slo.metric).unit
            return (
                f"forecast {slo.metric} of {expected.value:.0f} {unit} breaks the limit of"
                f" {slo.limit:g} {unit}"
            )
    if option.gain_frac is None:
        why = option.forecast.refusal or f"no forecast of {objective} at present knobs"
        return None if only is not None else f"no forecast: {why}"
    if option.gain_frac <= 0:
        return f"forecast {objective} is no better ({option.gain_frac:+.1%})"
    if option.gain_frac < min_gain_frac:
        return f"forecast gain of {option.gain_frac:.1%} is below {min_gain_frac:.1%}"
    return None


def _breaks(slo: Slo, expected: Estimate) -> bool:
    """Whether the whole interval lies beyond the limit; without an interval, the value."""
    interval = expected.interval
    if get(slo.metric).better == "lower":
        return (interval.low if interval else expected.value) > slo.limit
    return (interval.high if interval else expected.value) < slo.limit


def _best(options: Sequence[Option], now: Prediction) -> Choice:
    """Pick the largest gain; the others say what they lost against."""
    open_options = [option for option in options if option.rejected is None]
    if not open_options:
        return Choice(
            change=None,
            reason=f"Nothing to try. {_told(options)}",
            options=tuple(options),
            now=now,
        )
    best = max(
        open_options,
        key=lambda option: -1.0 if option.gain_frac is None else round(option.gain_frac, 2),
    )
    told = "no forecast" if best.gain_frac is None else f"forecast gain {best.gain_frac:+.1%}"
    assert best.change is not None
    return Choice(
        change=best.change,
        reason=f"{best.lever} {best.change.reason}: {told}, the best of {len(open_options)}.",
        options=tuple(
            replace(option, rejected=f"ranked behind {best.change.reason} ({told})")
            if option.rejected is None and option is not best
            else option
            for option in options
        ),
        now=now,
    )


def _told(options: Sequence[Option]) -> str:
    """Why the first few options were passed over, in one line; the rest are in the options."""
    texts = [
        f"{it.lever}{f' {it.change.reason}' if it.change else ''}: {it.rejected}"
        for it in options[:_TOLD]
    ]
    more = f" (and {len(options) - _TOLD} more)" if len(options) > _TOLD else ""
    return "; ".join(texts) + more + "."
