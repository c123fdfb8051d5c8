"""The loop: profile -> predict -> attribute -> apply -> report. The only file that knows all."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from rtopt import apply, attribute, predict, profile
from rtopt.config import RunConfig
from rtopt.cost import StepTime
from rtopt.errors import HeldError
from rtopt.ledger import Ledger
from rtopt.metrics import cut
from rtopt.types import Engine, Lever, Plan, Prediction, Progress, Trace, Value, silent

Confirm = Callable[[Plan], bool]
"""Asked before each change; False ends the run with nothing changed."""


def yes(_plan: Plan) -> bool:
    """Agree to every plan."""
    return True


def run(
    engine: Engine,
    config: RunConfig,
    ledger: Ledger,
    *,
    levers: Mapping[str, Lever],
    only: str | None = None,
    confirm: Confirm = yes,
    progress: Progress = silent,
) -> str:
    """Turn the loop until nothing is worth trying or the budget is used up.

    Args:
        engine: A live engine with the overlay, or a replayed one.
        config: Objective, limits, gate and budget.
        ledger: Gets every noun of the run.
        levers: What may be changed.
        only: Try this one lever, whatever the diagnosis says.
        confirm: Asked before each change.
        progress: Told where the run is.

    Returns:
        Why the run ended; its trials are in the ledger.

    Raises:
        EvidenceError: Too little was recorded to predict or to plan. What an earlier turn kept
            stays kept, nothing else was changed.
    """

    def record() -> Trace:
        return undisturbed(
            profile.run(engine, duration_s=config.profile_s, load=config.load, progress=progress)
        )

    progress("loading the engine's own scheduler (about 10 s, once)", None)
    predict.prepare(engine.state().info)
    budget, started = config.budget, time.monotonic()
    heard = [record()]  # every recording of this run; together they teach what a step costs
    baseline = _settled(heard[0], config.settle_s)
    ledger.baseline(baseline)
    for _ in range(budget.trials):
        progress("predict: replaying on the engine's own scheduler", None)
        step_time = predict.fit_step_time(*heard)
        prediction = predict.run(baseline, step_time=step_time)
        deviation = predict.compare(baseline, prediction)
        attribution = attribute.rank(baseline, deviation, ledger.trials)
        choice = apply.choose(
            attribution,
            levers,
            engine.state(),
            forecast=partial(_forecast, baseline, step_time, prediction),
            objective=config.metric,
            slos=config.slos,
            tried=ledger.trials,
            min_gain_frac=config.gate.min_gain_frac,
            only=only,
        )
        ledger.thought(prediction, deviation, attribution, choice)
        if choice.change is None:
            return choice.reason
        plan = apply.make_plan(
            choice.change,
            config.gate,
            objective=config.metric,
            slos=config.slos,
            num_levers=budget.trials,
            baseline=baseline,
        )
        ledger.planned(plan)
        if not confirm(plan):
            return "the plan was not confirmed; nothing was changed"
        trial = apply.run_trial(
            engine,
            plan,
            journal=ledger.journal,
            load=config.load,
            progress=progress,
            max_minutes=_left(budget.max_minutes, (time.monotonic() - started) / 60),
            max_exposed=_left(budget.max_exposed, ledger.exposed),
        )
        ledger.tried(trial)
        if trial.verdict.keep:
            baseline = record()
            heard.append(baseline)
            ledger.after(baseline)
    return f"all {budget.trials} trials that this run may make were made"


Amount = TypeVar("Amount", int, float)


def _left(limit: Amount | None, used: Amount) -> Amount | None:
    """What is left of a budget; a trial with nothing left ends before its first block."""
    return None if limit is None else max(limit - used, limit * 0)


def _forecast(
    baseline: Trace, step_time: StepTime, now: Prediction, knobs: Mapping[str, Value]
) -> Prediction:
    """What-ifs on one baseline; the present knobs were already predicted."""
    return predict.by_replay(baseline, set=knobs, step_time=step_time) if knobs else now


def undisturbed(trace: Trace) -> Trace:
    """The trace, unless somebody else moved the engine while it was recorded.

    Raises:
        HeldError: Somebody did; it says who and what.
    """
    if trace.marks:
        first = trace.marks[0]
        raise HeldError(
            f"{first.by} changed the engine to {dict(first.knobs)} during the recording, so it is"
            " no baseline. We changed nothing."
        )
    return trace


def _settled(trace: Trace, settle_s: float) -> Trace:
    """The trace without its first seconds."""
    return cut(trace, trace.start_ns + int(settle_s * 1e9), trace.end_ns) if settle_s else trace
