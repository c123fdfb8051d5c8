"""Loads in the words of the command line."""

import math
import re

from rtopt.errors import UsageError
from rtopt.traffic.tally import GOODPUT_METRICS, check_limits

_LIMIT = re.compile(r"([a-z0-9]+)=([0-9]{1,12}(?:\.[0-9]{1,6})?)(ms|s)")


def parse_limits(texts: list[str]) -> dict[str, float]:
    """Read limits such as ttft=500ms or e2e=2s; in milliseconds.

    Raises:
        UsageError: Not of that form, or an unknown metric.
    """
    found = {}
    for text in texts:
        parts = _LIMIT.fullmatch(text.strip())
        if parts is None:
            known = ", ".join(GOODPUT_METRICS)
            raise UsageError(
                f"--goodput {text}: wanted METRIC=LIMIT of {known}, for example ttft=500ms"
            )
        found[parts[1]] = float(parts[2]) * (1000 if parts[3] == "s" else 1)
    check_limits(found)
    return found


def parse_span(name: str, text: str) -> tuple[int, int]:
    """Read a length, or SHORTEST:LONGEST.

    Raises:
        UsageError: Neither.
    """
    low, _, high = text.partition(":")
    high = high or low
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in (low, high)):
        raise UsageError(f"--{name} {text}: wanted a length, or SHORTEST:LONGEST")
    return int(low), int(high)


def parse_on_off(text: str | None) -> tuple[float, float]:
    """Read ON:OFF, seconds with arrivals and without; None: always.

    Raises:
        UsageError: Not two numbers.
    """
    if text is None:
        return 0.0, 0.0
    on, _, off = text.partition(":")
    try:
        found = float(on), float(off)
    except ValueError:
        raise UsageError(f"--on-off {text}: wanted ON:OFF, seconds, for example 10:20") from None
    if not all(0 < seconds < math.inf for seconds in found):
        raise UsageError(f"--on-off {text}: both must be above 0")
    return found
