"""What is fixed before the first block."""

import math

import numpy as np
import pytest

from rtopt.apply import GateSettings, make_plan
from rtopt.errors import EvidenceError, UsageError
from rtopt.types import (
    Change,
    Clock,
    End,
    EngineInfo,
    Header,
    Machine,
    Margin,
    Plan,
    Slo,
    Step,
    Trace,
)

CHANGE = Change(lever="max_num_active_seqs", knobs={"max_num_active_seqs": 32}, reason="8 to 32")
SETTINGS = GateSettings()
CLOCK = Clock(mono_ns=0, unix_ns=0)
SECOND = 10**9


def recorded(levels: list[float], *, block_s: int = 30, washout_s: int = 6) -> Trace:
    """One block per level; in its washout the engine is at a crawl, which must not count."""
    steps = [
        Step(
            t_ns=(block * block_s + second + 1) * SECOND,
            output_tokens=1 if second < washout_s else round(1000 * level),
        )
        for block, level in enumerate(levels)
        for second in range(block_s)
    ]
    info = EngineInfo(name="vllm", version="0", model="m")
    return Trace(
        header=Header(
            source="overlay",
            engine=info,
            machine=Machine(cpu="", num_cpus=1),
            clock=CLOCK,
            start_ns=0,
            knobs={},
        ),
        end=End(end_ns=len(levels) * block_s * SECOND, clock=CLOCK),
        steps=tuple(steps),
    )


def plan_of(settings: GateSettings = SETTINGS, baseline: Trace | None = None) -> Plan:
    return make_plan(CHANGE, settings, objective="throughput", baseline=baseline)


def test_the_noise_is_that_of_neighbouring_baseline_blocks_after_the_washout() -> None:
    plan = plan_of(baseline=recorded([1.0, 1.1, 1.0, 1.1]))
    assert plan.noise_sd == pytest.approx(math.log(1.1), rel=1e-3)


def test_a_short_baseline_leaves_the_noise_unknown_not_zero() -> None:
    plan = plan_of(baseline=recorded([1.0, 1.1, 1.0]))
    assert plan.noise_sd is None
    assert set(plan.false_keep) == {"0"}
    assert plan_of().false_keep == plan.false_keep


def test_false_keeps_are_simulated_with_these_settings() -> None:
    rng = np.random.default_rng(0)
    baseline = recorded([float(x) for x in np.exp(rng.normal(0, 0.047, 20))])
    plan = plan_of(baseline=baseline)
    assert plan.noise_sd == pytest.approx(0.067, rel=0.4)
    assert plan.false_keep["0"] <= 0.01
    assert plan.false_keep["-2%"] <= 0.001
    assert plan.false_keep["-5%"] == 0
    loose = plan_of(GateSettings(alpha=0.2, prior=1), baseline)
    assert loose.false_keep["0"] > 5 * plan.false_keep["0"]


def test_alpha_is_split_over_the_levers_of_the_run() -> None:
    plan = make_plan(CHANGE, SETTINGS, objective="throughput", num_levers=5)
    assert plan.alpha == pytest.approx(0.002)


def test_a_gain_that_drowns_in_the_noise_is_refused() -> None:
    noisy = recorded([1.0, 1.1, 1.0, 1.1, 1.0])
    with pytest.raises(EvidenceError, match=r"gain / noise 0\.5\d, wanted 0\.7"):
        plan_of(GateSettings(min_gain_frac=0.05), noisy)
    assert plan_of(GateSettings(min_gain_frac=0.2), noisy).min_gain_frac == 0.2


def test_a_gain_that_too_few_pairs_can_not_show_is_refused() -> None:
    noisy = recorded([1.0, 1.1, 1.0, 1.1, 1.0])
    with pytest.raises(EvidenceError, match="of trials of 10 pairs"):
        plan_of(GateSettings(min_gain_frac=0.1, max_pairs=10), noisy)


def test_a_horizon_that_no_change_can_pass_is_refused() -> None:
    with pytest.raises(UsageError, match="needs at least 8 pairs even without noise"):
        plan_of(GateSettings(max_pairs=7))


def test_throughput_trades_latency_and_latency_does_not_trade_throughput() -> None:
    assert plan_of().margins == ()
    margins = make_plan(CHANGE, SETTINGS, objective="itl_mean").margins
    assert [m.metric for m in margins] == [
        "itl_p95",
        "ttft_mean",
        "ttft_p95",
        "ttft_p99",
        "throughput",
    ]
    assert [m.metric for m in margins if not m.certify] == ["ttft_p95", "ttft_p99"]
    own = (Margin(metric="ttft_mean", worse_frac=0.5),)
    assert make_plan(CHANGE, SETTINGS, objective="itl_mean", margins=own).margins == own


@pytest.mark.parametrize(
    ("objective", "slo", "why"),
    [
        ("nonsense", Slo(metric="itl_p95", limit=1), "nonsense"),
        ("throughput", Slo(metric="nonsense", limit=1), "nonsense"),
        ("throughput", Slo(metric="itl_p95", limit=0), "must be above 0"),
        ("preemptions", Slo(metric="itl_p95", limit=1), "must be a time or a rate"),
    ],
)
def test_an_impossible_aim_is_refused(objective: str, slo: Slo, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        make_plan(CHANGE, SETTINGS, objective=objective, slos=[slo])


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha": 0.0},
        {"alpha": 0.6},
        {"prior": 0.0},
        {"min_pairs": 1},
        {"max_pairs": 3},
        {"washout_s": 30.0},
        {"min_gain_frac": -0.1},
    ],
)
def test_impossible_settings_are_refused_by_name(wrong: dict[str, float]) -> None:
    (name,) = wrong
    with pytest.raises(UsageError, match=f"{name}="):
        GateSettings(**wrong)  # type: ignore[arg-type]  # min_pairs takes an int, given as one
