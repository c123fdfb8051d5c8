"""Intervals of numbers from consecutive steps."""

import numpy as np
import pytest

from rtopt.attribute.jackknife import jackknife
from rtopt.errors import EvidenceError


def test_the_interval_of_a_mean_is_its_textbook_width() -> None:
    y_N = np.random.default_rng(3).normal(10.0, 1.0, 1000)
    found = jackknife(lambda rows: float(y_N[rows].mean()), 1000)
    assert found.low < 10.0 < found.high
    # 2.26 (t, 9 degrees of freedom) / sqrt(1000); the sd of ten blocks is known to 24 %.
    assert (found.high - found.low) / 2 == pytest.approx(2.26 / np.sqrt(1000), rel=0.5)


def test_it_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(200):
        y_N = rng.normal(0.0, 1.0, 100)
        found = jackknife(lambda rows, y_N=y_N: float(y_N[rows].mean()), 100)  # type: ignore[misc] # mypy cannot infer a lambda with a default
        hits += found.low <= 0 <= found.high
    assert 180 <= hits <= 199


def test_too_few_steps_are_refused() -> None:
    with pytest.raises(EvidenceError, match="29 steps"):
        jackknife(lambda rows: 0.0, 29)
