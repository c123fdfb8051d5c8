"""Everything that the command line prints for a person, and the JSON for a program."""

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table

from rtopt.types import Progress

_out = Console(highlight=False, soft_wrap=True)
_err = Console(stderr=True, highlight=False, soft_wrap=True)

_MAX_LINE = 2000
_REPEAT_S = 15
"""Without a terminal, the same message is printed again after so long."""


def say(text: str) -> None:
    """One or more lines on standard output, as they are."""
    _out.print(text, markup=False)


def note(text: str) -> None:
    """One line beside the result, on standard error."""
    _err.print(text, markup=False, style="dim")


def fail(text: str) -> None:
    """The one line of an error; what a server or a file said may hold line breaks and worse."""
    line = "".join(c if c.isprintable() else " " for c in text[:_MAX_LINE])
    _err.print(f"rtopt: {line}", markup=False, style="red")


def as_json(data: object) -> None:
    """The noun, for a program."""
    sys.stdout.write(json.dumps(data, indent=2) + "\n")


def table(rows: Iterable[Sequence[str]], *head: str) -> None:
    """A small table."""
    made = Table(*head, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        made.add_row(*row)
    _out.print(made)


@contextmanager
def progress() -> Iterator[Progress]:
    """Show where a long piece of work is: one live line on a terminal, else a line a change."""
    if _err.is_terminal:
        with _err.status("") as status:

            def live(message: str, done: float | None = None) -> None:
                status.update(_line(message, done))

            yield live
        return
    last, at = "", 0.0

    def plain(message: str, done: float | None = None) -> None:
        nonlocal last, at
        stem = message.partition("(")[0]  # a counter inside the message is not a new message
        if stem != last or time.monotonic() - at > _REPEAT_S:
            last, at = stem, time.monotonic()
            _err.print(_line(message, done), markup=False)

    yield plain


def _line(message: str, done: float | None) -> str:
    return (
        message if done is None else f"{message} [{done:.0%}]".replace("[", "(").replace("]", ")")
    )
