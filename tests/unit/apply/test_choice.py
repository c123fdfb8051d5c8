"""Which change is tried next."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from rtopt.apply import choose, load_levers
from rtopt.errors import EvidenceError, UsageError
from rtopt.types import (
    Attribution,
    Cause,
    Change,
    Choice,
    EngineInfo,
    EngineState,
    Envelope,
    Estimate,
    Finding,
    Interval,
    Knob,
    Lever,
    Plan,
    Prediction,
    Slo,
    Trial,
    Value,
    Verdict,
)

LEVERS = load_levers()
ACTIVE, TOKENS = "max_num_active_seqs", "max_num_scheduled_tokens"
STATE = EngineState(
    info=EngineInfo(
        name="vllm",
        version="0.32.0",
        model="m",
        config={
            "max_num_seqs": 32,
            "max_num_batched_tokens": 2048,
            "enable_chunked_prefill": True,
            "max_model_len": 1024,
        },
    ),
    knobs=(
        Knob(name=ACTIVE, value=4, start=4, snapshot=4, low=1, high=32),
        Knob(name=TOKENS, value=2048, start=2048, snapshot=2048, low=32, high=2048),
    ),
    boot="first",
)
ABSTAINED = Attribution(method="rules", abstained="the window is too short")


def named(*causes: Cause) -> Attribution:
    return Attribution(
        method="rules",
        findings=tuple(Finding(cause=cause, share=0.9, evidence=()) for cause in causes),
    )


def forecast(knobs: Mapping[str, Value]) -> Prediction:
    """Throughput grows with the square root of the slots, and so does the time between tokens."""
    slots = float(knobs.get(ACTIVE, 4))
    itl = Estimate(
        value=30 * slots**0.5, interval=Interval(low=29 * slots**0.5, high=99, level=0.9)
    )
    return Prediction(
        method="replay",
        knobs=dict(knobs),
        metrics={"throughput": Estimate(value=50 * slots**0.5), "itl_p95": itl},
    )


def pick(
    attribution: Attribution,
    *,
    slos: Sequence[Slo] = (),
    tried: Sequence[Trial] = (),
    only: str | None = None,
    min_gain_frac: float = 0.0,
    levers: Mapping[str, Lever] = LEVERS,
    objective: str = "throughput",
) -> Choice:
    return choose(
        attribution,
        levers,
        STATE,
        forecast=forecast,
        objective=objective,
        slos=slos,
        tried=tried,
        min_gain_frac=min_gain_frac,
        only=only,
    )


def reasons(choice: Choice) -> dict[object, str | None]:
    return {
        tuple(o.change.knobs.items()) if o.change else o.lever: o.rejected for o in choice.options
    }


def trial_of(change: Change) -> Trial:
    return Trial(
        id="t-1",
        plan=Plan(change=change, objective="throughput"),
        undo=change,
        blocks=(),
        verdict=Verdict(decision="restore", reason=""),
    )


def test_the_largest_forecast_gain_is_tried() -> None:
    choice = pick(named(Cause.SLOTS_FULL))
    assert choice.change is not None
    assert choice.change.knobs == {ACTIVE: 32}
    assert choice.now is not None
    (best,) = [option for option in choice.options if option.rejected is None]
    assert best.gain_frac == pytest.approx(8**0.5 - 1)


def test_every_candidate_and_every_lever_is_told_with_its_reason() -> None:
    told = reasons(pick(named(Cause.SLOTS_FULL)))
    assert told[((ACTIVE, 16),)] == "ranked behind from 4 to 32 (forecast gain +182.8%)"
    assert told[((ACTIVE, 2),)] == "forecast throughput is no better (-29.3%)"
    assert "the named causes are: slots_full" in str(told[TOKENS])


def test_where_attribution_abstained_nothing_is_changed() -> None:
    choice = pick(ABSTAINED)
    assert choice.change is None
    assert "too short" in choice.reason
    assert len(choice.options) == len(LEVERS)


def test_a_lever_that_the_user_named_needs_no_cause() -> None:
    choice = pick(ABSTAINED, only=ACTIVE)
    assert choice.change is not None
    assert {option.lever for option in choice.options} == {ACTIVE}


def test_an_unknown_lever_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match=f"Known: {ACTIVE}, {TOKENS}"):
        pick(ABSTAINED, only="nonsense")


def test_a_lever_is_not_used_for_a_cause_that_it_makes_worse() -> None:
    choice = pick(named(Cause.SLOTS_FULL, Cause.PREEMPTION))
    assert choice.change is None
    assert reasons(choice)[ACTIVE] == "it makes preemption worse"
    assert f"{ACTIVE}: it makes preemption worse" in choice.reason


def test_a_lever_that_needs_a_restart_is_passed_over() -> None:
    levers = {ACTIVE: replace(LEVERS[ACTIVE], scope="restart")}
    assert "restart" in str(reasons(pick(named(Cause.SLOTS_FULL), levers=levers))[ACTIVE])


def test_a_forecast_that_breaks_a_limit_is_passed_over() -> None:
    choice = pick(named(Cause.SLOTS_FULL), slos=[Slo(metric="itl_p95", limit=90)])
    assert choice.change is not None
    assert choice.change.knobs == {ACTIVE: 8}
    assert "of 170 ms breaks the limit of 90 ms" in str(reasons(choice)[((ACTIVE, 32),)])


def test_an_interval_that_reaches_the_limit_does_not_break_it() -> None:
    choice = pick(named(Cause.SLOTS_FULL), slos=[Slo(metric="itl_p95", limit=117)])
    assert choice.change is not None
    assert choice.change.knobs == {ACTIVE: 16}  # 120 ms, interval from 116


def test_what_was_tried_is_not_tried_again() -> None:
    done = trial_of(Change(lever=ACTIVE, knobs={ACTIVE: 32}, reason=""))
    choice = pick(named(Cause.SLOTS_FULL), tried=[done])
    assert choice.change is not None
    assert choice.change.knobs == {ACTIVE: 16}
    assert reasons(choice)[((ACTIVE, 32),)] == "tried in t-1: restore"


def test_a_gain_below_the_smallest_wanted_is_passed_over() -> None:
    choice = pick(named(Cause.SLOTS_FULL), min_gain_frac=2.0)
    assert choice.change is None
    assert reasons(choice)[((ACTIVE, 32),)] == "forecast gain of 182.8% is below 200.0%"


def test_gains_within_a_point_follow_the_levers_own_order() -> None:
    def flat(knobs: Mapping[str, Value]) -> Prediction:
        slots = int(knobs.get(ACTIVE, 4))
        value = 100.0 if slots == 4 else 150 + slots / 100
        return Prediction(
            method="replay", knobs=dict(knobs), metrics={"throughput": Estimate(value=value)}
        )

    choice = choose(named(Cause.SLOTS_FULL), LEVERS, STATE, forecast=flat, objective="throughput")
    assert choice.change is not None
    assert choice.change.knobs == {ACTIVE: 8}


def test_for_a_time_a_lower_forecast_is_the_gain() -> None:
    choice = pick(named(Cause.SLOTS_FULL), objective="itl_p95")
    assert choice.change is not None
    assert choice.change.knobs == {ACTIVE: 1}


@pytest.mark.parametrize("only", [None, ACTIVE])
@pytest.mark.parametrize("raises", [True, False])
def test_without_a_forecast_only_a_named_lever_is_tried(only: str | None, raises: bool) -> None:
    def blind(knobs: Mapping[str, Value]) -> Prediction:
        if raises:
            raise EvidenceError("only 3 steps")
        return Prediction(method="replay", knobs=dict(knobs), refusal="only 3 steps")

    choice = choose(
        named(Cause.SLOTS_FULL),
        LEVERS,
        STATE,
        forecast=blind,
        objective="throughput",
        only=only,
    )
    if only is None:
        assert choice.change is None
        assert reasons(choice)[((ACTIVE, 8),)] == "no forecast: only 3 steps"
    else:
        assert choice.change is not None
        assert choice.change.knobs == {ACTIVE: 8}
    assert all(option.gain_frac is None for option in choice.options)


@pytest.mark.parametrize(
    ("knobs", "why"),
    [
        ({ACTIVE: 64}, "outside the safe 1..32"),
        ({ACTIVE: 0}, "outside the safe 1..32"),
        ({ACTIVE: 4}, "runs with this already"),
        ({TOKENS: 64}, "not one of the lever's knobs"),
        ({ACTIVE: "many"}, "not a number"),
    ],
)
def test_a_proposal_outside_the_envelope_is_never_tried(
    knobs: Mapping[str, Value], why: str
) -> None:
    bad = replace(
        LEVERS[ACTIVE],
        envelope=lambda ctx: Envelope(low=0, high=64),
        propose=lambda ctx: [Change(lever=ACTIVE, knobs=knobs, reason="bad")],
    )
    choice = pick(named(Cause.SLOTS_FULL), levers={ACTIVE: bad})
    assert choice.change is None
    assert why in str(choice.options[0].rejected)


def test_a_knob_that_is_not_live_here_is_passed_over() -> None:
    still = replace(STATE, knobs=STATE.knobs[1:])
    info = replace(STATE.info, config={**STATE.info.config, ACTIVE: 4})
    choice = choose(
        named(Cause.SLOTS_FULL),
        LEVERS,
        replace(still, info=info),
        forecast=forecast,
        objective="throughput",
    )
    assert choice.change is None
    assert "can't be moved while this engine runs" in str(reasons(choice)[((ACTIVE, 8),)])
