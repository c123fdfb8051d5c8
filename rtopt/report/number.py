"""Numbers as a person would write them: three digits, a thin unit, a real minus sign."""

import math
from datetime import UTC, datetime

from rtopt.types import Interval

THIN = "\u202f"
"""Narrow space that does not break."""
MINUS = "\u2212"


def number(value: float) -> str:
    """Three significant digits, thousands parted from 10,000 on.

    >>> number(61.234), number(193.0), number(0.5), number(1234.6)
    ('61.2', '193', '0.5', '1235')
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "beyond measure"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{abs(value):.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    if abs(value) >= 10_000:
        text = f"{round(abs(value)):,}".replace(",", THIN)
    return (MINUS if value < 0 else "") + text


def quantity(value: float, unit: str) -> str:
    """A number with its unit; shares as per cent, long times in seconds."""
    match unit:
        case "frac":
            return percent(value)
        case "ms" if abs(value) >= 1000:
            return f"{number(value / 1000)}{THIN}s"
        case "1" | "count" | "":
            return number(value)
        case _:
            return f"{number(value)}{THIN}{unit}"


def percent(frac: float, *, signed: bool = False) -> str:
    """A share or a change in per cent: whole from 10 on, one decimal below, two below 1."""
    value = frac * 100
    size = abs(value)
    digits = 0 if size >= 9.95 else 1 if size >= 0.995 else 2
    if 99 < size < 100:  # almost all is not all
        digits = 1 if size < 99.95 else 2
    text = f"{size:.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    if size >= 10_000:
        text = f"{round(size):,}".replace(",", THIN)
    sign = MINUS if value < 0 and text != "0" else "+" if signed and text != "0" else ""
    return f"{sign}{text}{THIN}%"


def interval(of: Interval) -> str:
    """An interval of a relative change: "98 % interval +190 % to +245 %"."""
    low, high = percent(of.low, signed=True), percent(of.high, signed=True)
    return f"{percent(of.level)} interval {low} to {high}"


def between(of: Interval, unit: str) -> str:
    """An interval in a unit: "120 to 180 ms"."""
    if unit == "ms" and abs(of.high) >= 1000:
        return f"{number(of.low / 1000)} to {quantity(of.high, unit)}"
    low = percent(of.low) if unit == "frac" else number(of.low)
    return f"{low} to {quantity(of.high, unit)}"


def duration(seconds: float) -> str:
    """A length of time: "45 s", "3 min 20 s", "2 h 5 min"."""
    if seconds < 60:
        return f"{number(seconds)}{THIN}s"
    whole = round(seconds)
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        return f"{minutes}{THIN}min" + (f" {rest}{THIN}s" if rest else "")
    hours, rest = divmod(round(whole / 60), 60)
    return f"{hours}{THIN}h" + (f" {rest}{THIN}min" if rest else "")


def count(amount: int, noun: str) -> str:
    """An amount of things: "1 pair", "12 pairs"."""
    return f"{number(amount)} {noun}{'' if amount == 1 else 's'}"


def moment(unix_ns: int) -> str:
    """Date and time in UTC, to the second."""
    return f"{datetime.fromtimestamp(unix_ns // 10**9, UTC):%Y-%m-%d %H:%M:%S} UTC"
