"""A trace as a folder of CSV files, one per kind of record, with units in the columns' names.

What is absent is an empty cell; a kind without records has no file. Lists are JSON in a cell.
Readings of state and the knobs of marks have a column each. `trace.json` holds header and end.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from rtopt.errors import UsageError
from rtopt.storage import to_json, write_text
from rtopt.types import (
    DeviceEvent,
    HostEvent,
    InFlight,
    Mark,
    Request,
    Sample,
    Step,
    Trace,
)

Row = Mapping[str, object]

SPREAD: Final[Mapping[type, str]] = {Sample: "values", Mark: "knobs"}
"""Field of a kind that is a mapping; each of its names becomes a column."""


def write_csv(trace: Trace, out: Path) -> None:
    """Write the files into a new or empty folder.

    Raises:
        UsageError: The folder holds something, or cannot be written to.
    """
    kinds: dict[str, tuple[type, Sequence[Any]]] = {
        "steps": (Step, trace.steps),
        "requests": (Request, trace.requests),
        "in_flight": (InFlight, trace.in_flight),
        "marks": (Mark, trace.marks),
        "samples": (Sample, trace.samples),
        "device": (DeviceEvent, trace.device),
        "host": (HostEvent, trace.host),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise UsageError(f"{out}: is not empty; wanted a new folder. Nothing was written.")
        for name, (cls, records) in kinds.items():
            if records:
                _write(out / f"{name}.csv", cls, records)
    except OSError as error:
        raise UsageError(f"{out}: cannot be written: {error.strerror}") from error
    about = {"header": to_json(trace.header), "end": to_json(trace.end), "notes": trace.notes}
    write_text(out / "trace.json", json.dumps(about, indent=2) + "\n")


def _write(path: Path, cls: type, records: Sequence[Any]) -> None:
    spread = SPREAD.get(cls)
    columns = [f.name for f in fields(cls) if f.name != spread]
    if spread is not None:
        columns += sorted({_column(spread, n) for r in records for n in getattr(r, spread)})
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(_rows(records, spread))


def _rows(records: Iterable[Any], spread: str | None) -> Iterator[dict[str, object]]:
    for record in records:
        row = {f.name: _cell(getattr(record, f.name)) for f in fields(record) if f.name != spread}
        if spread is not None:
            values = getattr(record, spread)
            row |= {_column(spread, name): _cell(value) for name, value in values.items()}
        yield row


def _column(spread: str, name: str) -> str:
    """A name of the mapping, apart from the record's own fields."""
    return f"{spread}.{name}"


def _cell(value: object) -> object:
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return json.dumps(value, separators=(",", ":"))
    return value
