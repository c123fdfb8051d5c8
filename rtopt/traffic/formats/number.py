"""Numbers as other people's files have them."""

import math
import re
from datetime import UTC, datetime

_STAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?\s*(Z|[+-]\d\d:\d\d)?"
)


def seconds_to_ns(value: object, *, per_s: int = 1) -> int | None:
    """A time in 1/`per_s` seconds as nanoseconds; None when it is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e15 < value < 1e15:
        return None
    whole = math.floor(value)
    return (whole * 10**9 + round((value - whole) * 1e9)) // per_s


def stamp_to_ns(text: str) -> int | None:
    """A calendar time with up to nine digits of fraction as nanoseconds; None: it is none."""
    found = _STAMP.fullmatch(text.strip())
    if found is None:
        return None
    zone = found[4] if found[4] and found[4] != "Z" else "+00:00"
    try:
        moment = datetime.fromisoformat(f"{found[1]}T{found[2]}{zone}")
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    return (since.days * 86_400 + since.seconds) * 10**9 + int((found[3] or "0").ljust(9, "0"))


def whole(text: str) -> int | str:
    """A whole number, also one written as 12.0; else the text as it is."""
    text = text.strip()
    head, _, tail = text.partition(".")
    is_number = head.isascii() and head.isdecimal() and len(head) < 19 and not tail.strip("0")
    return int(head) if is_number else text
