"""BurstGPT: seconds since the start, model, and token counts; a failed request has no answer."""

from pathlib import Path
from typing import Final

from rtopt.traffic.formats.number import seconds_to_ns, whole
from rtopt.traffic.formats.rows import Rows
from rtopt.types import Workload

NAME: Final = "burstgpt"
_TIME, _PROMPT, _OUTPUT = "Timestamp", "Request tokens", "Response tokens"


def recognises(head: str) -> bool:
    """Whether the first line names their columns."""
    return {_TIME, _PROMPT, _OUTPUT} <= set(_cells(head))


# in:   Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
#       5,ChatGPT,472,18,490,Conversation log
def read(text: str, path: Path) -> Workload:
    """The requests that were answered; times have whole seconds in the published files."""
    rows = Rows(path)
    head, *lines = text.splitlines()
    names = _cells(head)
    time, prompt, output = (names.index(name) for name in (_TIME, _PROMPT, _OUTPUT))
    for number, line in enumerate(lines, start=2):
        if not line.strip():
            continue
        cells = _cells(line)
        if len(cells) != len(names):
            rows.damage(f"line {number}", f"{len(cells)} columns, wanted {len(names)}")
            continue
        try:
            at = seconds_to_ns(float(cells[time]))
        except ValueError:
            at = None
        rows.add(f"line {number}", at, whole(cells[prompt]), whole(cells[output]))
    return rows.workload(NAME)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")]
