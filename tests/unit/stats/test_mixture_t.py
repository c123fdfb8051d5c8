"""The mixture-t e-process."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from rtopt.stats import confidence_sequence, fewest, log_e, log_e_path

SERIES = st.lists(st.floats(-1, 1).map(lambda x: round(x, 3)), min_size=2, max_size=30)


def test_it_is_the_documented_formula() -> None:
    values, g, n = [0.1, 0.3, 0.2, -0.1], 0.3, 4
    t2 = n * np.mean(values) ** 2 / np.var(values, ddof=1)
    nu = n - 1
    by_hand = -0.5 * math.log(1 + n * g) - n / 2 * (
        math.log(1 + t2 / (nu * (1 + n * g))) - math.log(1 + t2 / nu)
    )
    assert log_e(values, prior=g) == pytest.approx(by_hand, rel=1e-12)


def test_it_is_the_likelihood_ratio_of_a_mixture_over_standardised_effects() -> None:
    # e = integral of noncentral-t likelihoods over N(0, g) / central-t likelihood, at n = 5.
    values, g, n = [0.2, 0.5, 0.1, 0.4, 0.6], 0.3, 5
    t = np.mean(values) / (np.std(values, ddof=1) / math.sqrt(n))
    mixed, _ = integrate.quad(
        lambda d: stats.nct.pdf(t, n - 1, d * math.sqrt(n)) * stats.norm.pdf(d, scale=math.sqrt(g)),
        -4,
        4,
    )
    assert math.exp(log_e(values, prior=g)) == pytest.approx(
        mixed / stats.t.pdf(t, n - 1), rel=1e-4
    )


def test_fewer_than_two_values_are_no_evidence() -> None:
    assert log_e([], prior=0.3) == 0
    assert log_e([5.0], prior=0.3) == 0
    assert log_e_path(np.array([5.0]), prior=0.3)[0] == 0


def test_values_without_spread_take_the_limit_of_the_formula() -> None:
    top = 0.5 * (6 - 1) * math.log(1 + 6 * 0.3)
    assert log_e([0.2] * 6, prior=0.3) == pytest.approx(top)
    assert log_e([0.0] * 6, prior=0.3) == pytest.approx(-0.5 * math.log(1 + 6 * 0.3))
    nearly = [0.2 + 1e-9 * k for k in range(6)]
    assert log_e(nearly, prior=0.3) == pytest.approx(top, rel=1e-6)


@given(SERIES, st.floats(0.1, 100))
def test_the_scale_of_the_values_does_not_matter(values: list[float], scale: float) -> None:
    assert log_e([scale * x for x in values], prior=0.3) == pytest.approx(
        log_e(values, prior=0.3), abs=1e-6
    )


@given(SERIES)
def test_the_path_ends_where_the_whole_series_does(values: list[float]) -> None:
    path = log_e_path(np.array([values, values[::-1]]), prior=0.3)
    assert path[0, -1] == pytest.approx(log_e(values, prior=0.3))
    assert path[1, -1] == pytest.approx(log_e(values, prior=0.3))


@given(st.lists(st.floats(-1, 1), min_size=12, max_size=30))
def test_the_confidence_sequence_holds_exactly_what_is_not_refuted(values: list[float]) -> None:
    sequence = confidence_sequence(values, alpha=0.05, prior=0.3)
    assert sequence is not None
    width = sequence.high - sequence.low
    limit = math.log(1 / 0.05)
    if width > 1e-6:
        for inside in (sequence.low + 0.01 * width, sequence.high - 0.01 * width):
            assert log_e(values, delta=inside, prior=0.3) < limit
        for outside in (sequence.low - 0.01 * width, sequence.high + 0.01 * width):
            assert log_e(values, delta=outside, prior=0.3) > limit


def test_too_few_values_refute_nothing_and_give_no_interval() -> None:
    least = fewest(alpha=0.02, prior=0.3)
    assert least == 8
    assert confidence_sequence([1.0] * (least - 1), alpha=0.02, prior=0.3) is None
    point = confidence_sequence([1.0] * least, alpha=0.02, prior=0.3)
    assert point is not None
    assert point.low == point.high == pytest.approx(1.0)


def test_the_sequence_covers_the_truth_at_all_times_at_once() -> None:
    rng = np.random.default_rng(1)
    paths = log_e_path(rng.standard_normal((4000, 60)), prior=0.3)
    assert np.mean((paths >= math.log(1 / 0.05)).any(axis=-1)) <= 0.05
