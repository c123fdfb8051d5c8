"""Made-up arrivals have the statistics that were asked for."""

from itertools import pairwise
from statistics import fmean, pstdev

import pytest

from rtopt.errors import UsageError
from rtopt.traffic import Arrivals, workload_by_arrivals
from rtopt.types import Workload


def gap_cv(workload: Workload) -> float:
    gaps = [b.arrival_ns - a.arrival_ns for a, b in pairwise(workload.asks)]
    return pstdev(gaps) / fmean(gaps)


@pytest.mark.parametrize("cv", [0.3, 1.0, 3.0])
def test_gaps_vary_as_asked_at_the_same_mean_rate(cv: float) -> None:
    made = workload_by_arrivals(Arrivals(rate_per_s=20, duration_s=1000, cv=cv, seed=3))
    # 20,000 gaps: the rate's standard error is cv * 0.7 %, the variation's a few percent.
    assert len(made.asks) / 1000 == pytest.approx(20, rel=0.03 * max(1, cv))
    assert gap_cv(made) == pytest.approx(cv, rel=0.08)


def test_on_off_arrivals_leave_the_pauses_empty_and_keep_the_mean_rate() -> None:
    made = workload_by_arrivals(
        Arrivals(rate_per_s=10, duration_s=600, on_s=2.0, off_s=3.0, seed=1)
    )
    assert all(ask.arrival_ns / 1e9 % 5.0 < 2.0 for ask in made.asks)
    assert len(made.asks) / 600 == pytest.approx(10, rel=0.05)


def test_a_seed_gives_the_same_asks_and_another_seed_others() -> None:
    def asks(seed: int) -> object:
        return workload_by_arrivals(Arrivals(rate_per_s=5, duration_s=20, seed=seed)).asks

    assert asks(1) == asks(1)
    assert asks(1) != asks(2)


def test_prefixes_become_blocks_before_the_prompts_own_tokens() -> None:
    made = workload_by_arrivals(
        Arrivals(
            rate_per_s=10,
            duration_s=20,
            prompt_tokens=(5, 9),
            output_tokens=(3, 3),
            prefixes=2,
            prefix_tokens=100,
        )
    )
    assert made.block_tokens == 100
    assert {ask.blocks for ask in made.asks} == {(0,), (1,)}
    assert {ask.prompt_tokens for ask in made.asks} == set(range(105, 110))
    assert {ask.output_tokens for ask in made.asks} == {3}


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"rate_per_s": 0.0}, "--rate 0"),
        ({"duration_s": float("inf")}, "--duration inf"),
        ({"cv": -1.0}, "--cv -1"),
        ({"prompt_tokens": (9, 3)}, "--prompt-tokens 9:3"),
        ({"output_tokens": (0, 3)}, "--output-tokens 0:3"),
        ({"on_s": 3.0}, "--on-off"),
        ({"prefixes": 3}, "--prefix-tokens"),
        ({"rate_per_s": 1e6, "duration_s": 1e6}, "more than 1000000 requests"),
    ],
)
def test_numbers_out_of_range_are_refused_by_name(wrong: dict[str, object], named: str) -> None:
    asked: dict[str, object] = {"rate_per_s": 1.0, "duration_s": 1.0, **wrong}
    with pytest.raises(UsageError, match=named):
        workload_by_arrivals(Arrivals(**asked))  # type: ignore[arg-type] # of mixed types
