"""Numbers as a person would write them."""

import pytest

from rtopt.report.number import (
    MINUS,
    THIN,
    between,
    count,
    duration,
    interval,
    moment,
    number,
    percent,
    quantity,
)
from rtopt.types import Interval


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (61.234, "61.2"),
        (193.4, "193"),
        (0.5, "0.5"),
        (0.04567, "0.0457"),
        (1234.6, "1235"),
        (46_592, f"46{THIN}592"),
        (-3.14159, f"{MINUS}3.14"),
        (100.0, "100"),
        (float("inf"), "beyond measure"),
    ],
)
def test_a_number_has_three_digits(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (61.234, "tok/s", f"61.2{THIN}tok/s"),
        (812.3, "ms", f"812{THIN}ms"),
        (12_345.0, "ms", f"12.3{THIN}s"),
        (0.953, "frac", f"95{THIN}%"),
        (3, "1", "3"),
    ],
)
def test_a_quantity_has_its_unit(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


@pytest.mark.parametrize(
    ("frac", "text"),
    [
        (2.16, "+216 %"),
        (0.0324, "+3.2 %"),
        (-0.0041, f"{MINUS}0.41 %"),
        (0.0, "0 %"),
        (-0.00001, "0 %"),
        (0.0996, "+10 %"),
        (-0.995, f"{MINUS}99.5 %"),
        (-1.0, f"{MINUS}100 %"),
    ],
)
def test_a_change_in_per_cent_has_a_sign(frac: float, text: str) -> None:
    assert percent(frac, signed=True) == text.replace(" ", THIN)


def test_an_interval_says_its_level() -> None:
    told = interval(Interval(low=1.9, high=2.45, level=0.99))
    assert told == "99 % interval +190 % to +245 %".replace(" %", f"{THIN}%")


def test_both_ends_of_an_interval_have_one_unit() -> None:
    assert between(Interval(low=800, high=1200, level=0.9), "ms") == f"0.8 to 1.2{THIN}s"
    assert between(Interval(low=0.1, high=0.2, level=0.9), "frac") == f"10{THIN}% to 20{THIN}%"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(45, "45 s"), (60, "1 min"), (200, "3 min 20 s"), (7500, "2 h 5 min"), (3599.7, "1 h")],
)
def test_a_duration_is_told_in_two_units_at_most(seconds: float, text: str) -> None:
    told = duration(seconds)
    assert told.replace(THIN, " ") == text


def test_one_thing_is_not_plural() -> None:
    assert (count(1, "pair"), count(12, "pair")) == ("1 pair", "12 pairs")


def test_a_moment_is_in_utc() -> None:
    assert moment(0) == "1970-01-01 00:00:00 UTC"
