"""Azure's public traces of LLM inference: TIMESTAMP,ContextTokens,GeneratedTokens."""

from pathlib import Path
from typing import Final

from rtopt.traffic.formats.number import stamp_to_ns, whole
from rtopt.traffic.formats.rows import Rows
from rtopt.types import Workload

NAME: Final = "azure"
_HEAD: Final = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"]


def recognises(head: str) -> bool:
    """Whether the first line is theirs."""
    return head.strip().split(",") == _HEAD


# in:   2023-11-16 18:17:03.9799600,4808,10
def read(text: str, path: Path) -> Workload:
    """The requests; the last line of the published files has no line break."""
    rows = Rows(path)
    for number, line in enumerate(text.splitlines()[1:], start=2):
        if not line.strip():
            continue
        cells = line.split(",")
        at = stamp_to_ns(cells[0])
        if len(cells) != len(_HEAD) or at is None:
            rows.damage(f"line {number}", "wanted a time and two numbers")
            continue
        rows.add(f"line {number}", at, whole(cells[1]), whole(cells[2]))
    return rows.workload(NAME)
