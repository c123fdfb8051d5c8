"""What knobs, changes and metrics are called in a sentence."""

import re
from collections.abc import Callable, Mapping

from rtopt.metrics import get
from rtopt.report.number import THIN, number
from rtopt.types import Change, Trial, Value

KNOBS: Mapping[str, Callable[[str, str], str]] = {
    "max_num_active_seqs": lambda new, old: f"letting {new} requests run at once instead of {old}",
    "max_num_scheduled_tokens": lambda new, old: (
        f"computing at most {new} tokens per step instead of {old}"
    ),
}
"""Knob to what moving it means; any other is called by its name."""


def value(of: Value) -> str:
    """A knob's value."""
    if isinstance(of, bool):
        return "on" if of else "off"
    return of if isinstance(of, str) else number(of)


def doing(trial: Trial) -> str:
    """What a trial changes, as "letting 32 requests run at once instead of 4"."""
    return moving(trial.plan.change, trial.undo)


def moving(change: Change, undo: Change) -> str:
    """A change from the values of its undo to its own, as a gerund."""
    told = []
    for knob, new in change.knobs.items():
        old = undo.knobs.get(knob)
        if old is not None and knob in KNOBS:
            told.append(KNOBS[knob](value(new), value(old)))
        else:
            was = "" if old is None else f" instead of {value(old)}"
            told.append(f"setting {knob} to {value(new)}{was}")
    return " and ".join(told)


def setting(knobs: Mapping[str, Value]) -> str:
    """Knob values: "max_num_active_seqs = 32"."""
    return ", ".join(f"{knob} = {value(of)}" for knob, of in knobs.items())


def metric(name: str) -> str:
    """A metric within a sentence: "output tokens per second"."""
    title = get(name).title
    return title[0].lower() + title[1:]


def sentence(text: str) -> str:
    """The text with a capital first letter, one full stop, and a thin space before each %."""
    text = re.sub(r"(?<=\d)%", f"{THIN}%", text.strip())
    if not text:
        return ""
    # A knob's or metric's name keeps its letters.
    is_name = "_" in text.split(maxsplit=1)[0]
    first = text[0] if is_name else text[0].upper()
    return first + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
