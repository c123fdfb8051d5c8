"""Guards: what they call held, violated, uncertain, or no data."""

import pytest

from rtopt.apply.guard import Pair, check
from rtopt.types import Block, Change, GuardResult, Margin, Plan, Slo

CHANGE = Change(lever="a", knobs={"a": 1}, reason="")


def pair(base: dict[str, float], candidate: dict[str, float], requests: int = 1000) -> Pair:
    return (
        Block(pair=0, arm="base", start_ns=0, end_ns=1, metrics=base, requests=requests),
        Block(pair=0, arm="candidate", start_ns=0, end_ns=1, metrics=candidate, requests=requests),
    )


def result(name: str, plan: Plan, pairs: list[Pair]) -> GuardResult:
    (found,) = [g for g in check(plan, pairs, restarted=False) if g.name == name]
    return found


def state(name: str, plan: Plan, pairs: list[Pair]) -> str:
    return result(name, plan, pairs).state


PLAIN = Plan(change=CHANGE, objective="throughput")
SLO = Plan(
    change=CHANGE,
    objective="throughput",
    slos=(Slo(metric="itl_p95", limit=100), Slo(metric="throughput", limit=50)),
)
MARGIN = Plan(
    change=CHANGE,
    objective="itl_mean",
    margins=(
        Margin(metric="ttft_mean", worse_frac=0.1),
        Margin(metric="ttft_p99", worse_frac=0.25, certify=False),
    ),
)


@pytest.mark.parametrize(
    ("itl", "state_"),
    [([80, 82, 81, 79] * 2, "held"), ([120, 121, 119, 122] * 2, "violated"), ([80], "uncertain")],
)
def test_an_upper_limit_is_proven_broken_or_open(itl: list[float], state_: str) -> None:
    pairs = [pair({}, {"itl_p95": value, "throughput": 60}) for value in itl]
    assert state("slo itl_p95", SLO, pairs) == state_


def test_a_lower_limit_works_the_other_way_round() -> None:
    fast = [pair({}, {"itl_p95": 1, "throughput": value}) for value in [60, 61, 59, 60] * 2]
    slow = [pair({}, {"itl_p95": 1, "throughput": value}) for value in [40, 41, 39, 40] * 2]
    assert state("slo throughput", SLO, fast) == "held"
    assert state("slo throughput", SLO, slow) == "violated"


def test_the_baseline_does_not_excuse_a_broken_limit() -> None:
    pairs = [pair({"itl_p95": 300}, {"itl_p95": v}) for v in [120, 121, 119, 122] * 2]
    assert state("slo itl_p95", SLO, pairs) == "violated"


def test_a_limit_on_a_count_takes_zero() -> None:
    plan = Plan(change=CHANGE, objective="throughput", slos=(Slo(metric="preemptions", limit=3),))
    assert state("slo preemptions", plan, [pair({}, {"preemptions": 0})] * 8) == "held"


def test_one_block_without_data_is_not_a_pass() -> None:
    pairs = [pair({}, {"itl_p95": 50})] * 7 + [pair({}, {})]
    found = result("slo itl_p95", SLO, pairs)
    assert found.state == "no_data"
    assert "1 of 8" in found.text
    assert state("slo itl_p95", SLO, []) == "no_data"


@pytest.mark.parametrize(
    ("ratio", "state_"), [(1.0, "held"), (1.1, "uncertain"), (1.3, "violated")]
)
def test_a_margin_compares_with_the_baseline(ratio: float, state_: str) -> None:
    noise = [1.01, 0.99, 1.02, 0.98] * 3
    pairs = [
        pair({"ttft_mean": 100, "ttft_p99": 1}, {"ttft_mean": 100 * ratio * x, "ttft_p99": 1})
        for x in noise
    ]
    assert state("margin ttft_mean", MARGIN, pairs) == state_


def test_a_margin_that_only_vetoes_holds_until_there_is_evidence_of_harm() -> None:
    def p99(*ratios: float) -> list[Pair]:
        return [
            pair({"ttft_mean": 1, "ttft_p99": 1}, {"ttft_mean": 1, "ttft_p99": r}) for r in ratios
        ]

    assert state("margin ttft_p99", MARGIN, p99(0.7, 1.9, 1.1)) == "held"
    assert state("margin ttft_p99", MARGIN, p99(*[1.9, 2.0, 1.8] * 3)) == "violated"


@pytest.mark.parametrize(
    ("base", "candidate", "state_"),
    [(0, 0, "held"), (0, 1, "violated"), (5, 6, "held"), (5, 9, "violated"), (2, 2, "held")],
)
def test_errors_above_the_baseline_violate(base: int, candidate: int, state_: str) -> None:
    assert state("errors", PLAIN, [pair({"errors": base}, {"errors": candidate})]) == state_


@pytest.mark.parametrize(
    ("base", "candidate", "state_"),
    [(0, 0, "held"), (0, 2, "held"), (0, 3, "violated"), (4, 8, "held"), (4, 9, "violated")],
)
def test_preemptions_more_than_doubled_violate(base: int, candidate: int, state_: str) -> None:
    pairs = [pair({"preemptions": base}, {"preemptions": candidate})]
    assert state("preemptions", PLAIN, pairs) == state_


@pytest.mark.parametrize("name", ["errors", "preemptions"])
def test_a_hard_guard_without_data_is_not_a_pass(name: str) -> None:
    assert state(name, PLAIN, [pair({}, {})]) == "no_data"
    assert state(name, PLAIN, []) == "no_data"


def test_a_restart_violates() -> None:
    (found,) = [g for g in check(PLAIN, [], restarted=True) if g.name == "engine_restart"]
    assert found.state == "violated"
