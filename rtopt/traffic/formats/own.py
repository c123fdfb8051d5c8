"""rtopt's own workload file: a header line, then one JSON line a request; nothing is lost."""

import json
from pathlib import Path
from typing import Any, Final

from rtopt.errors import TraceError, UsageError
from rtopt.types import Ask, Load, Workload

NAME: Final = "rtopt"
SCHEMA: Final = "rtopt.workload/1"
_PLAIN: Final = ("duration_ns", "think_ns", "source", "seed", "block_tokens", "missed_frac")


def recognises(head: str) -> bool:
    """Whether the first line is our header."""
    return head.lstrip().startswith("{") and '"rtopt.workload/' in head


# The first line, then one for each request:
#   {"schema": "rtopt.workload/1", "load": {"kind": "open"}, "duration_ns": 60000000000, ...}
#   {"arrival_ns": 0, "prompt_tokens": 374, "output_tokens": 44, "blocks": [1, 2], ...}
def read(text: str, path: Path) -> Workload:
    """The workload as written, without lines that were damaged since.

    Raises:
        TraceError: The header is damaged or too new.
    """
    first, *lines = text.splitlines()
    head = _header(first, path)
    asks: list[Ask] = []
    damaged, why = 0, ""
    for number, line in enumerate(lines, start=2):
        if not line.strip():
            continue
        try:
            asks.append(_ask(json.loads(line)))
        except (ValueError, TypeError, RecursionError) as error:
            damaged += 1
            why = why or f"line {number}: {type(error).__name__}"
    if damaged and not asks:
        raise TraceError(f"{path}: no request in it is readable ({why})")
    notes = tuple(head.pop("notes"))
    if damaged:
        notes += (f"{damaged} damaged lines left out, the first {why}",)
    return Workload(asks=tuple(asks), notes=notes, **head)


def write_workload(workload: Workload, path: Path) -> str:
    """Write the file, and say what it is.

    Raises:
        UsageError: It cannot be written there.
    """
    load = {"kind": workload.load.kind, "clients": workload.load.clients}
    head: dict[str, Any] = {
        "schema": SCHEMA,
        "load": {key: value for key, value in load.items() if value is not None},
        **{key: value for key in _PLAIN if (value := getattr(workload, key)) is not None},
        "notes": list(workload.notes),
    }
    lines = [json.dumps(head), *(json.dumps(_plain(ask)) for ask in workload.asks)]
    write_lines(lines, path)
    return f"{len(workload.asks)} requests as {SCHEMA}"


def write_lines(lines: list[str], path: Path) -> None:
    """Write ASCII lines.

    Raises:
        UsageError: It cannot be written there.
    """
    try:
        path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error


def _plain(ask: Ask) -> dict[str, Any]:
    found: dict[str, Any] = {
        "arrival_ns": ask.arrival_ns,
        "prompt_tokens": ask.prompt_tokens,
        "output_tokens": ask.output_tokens,
    }
    if ask.cached_tokens:
        found["cached_tokens"] = ask.cached_tokens
    if ask.blocks:
        found["blocks"] = list(ask.blocks)
    return found


def _header(line: str, path: Path) -> dict[str, Any]:
    try:
        data = json.loads(line)
        if data["schema"] != SCHEMA:
            raise TraceError(f"{path}: {str(data['schema'])[:40]} is not {SCHEMA}, which is known")
        load = data["load"]
        if load["kind"] not in ("open", "closed"):
            raise ValueError("load")
        clients = load.get("clients")
        made: dict[str, Any] = {
            "load": Load(kind=load["kind"], clients=None if clients is None else _int(clients, 1)),
            "duration_ns": _int(data["duration_ns"], 0),
            "think_ns": _int(data.get("think_ns", 0), 0),
            "source": str(data.get("source", "")),
            "notes": [str(note) for note in data.get("notes", ())],
        }
        for key, low in (("seed", -(2**63)), ("block_tokens", 1)):
            if data.get(key) is not None:
                made[key] = _int(data[key], low)
        if (missed := data.get("missed_frac")) is not None:
            made["missed_frac"] = float(missed)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise TraceError(
            f"{path}: line 1 is no header of {SCHEMA} ({type(error).__name__})"
        ) from error
    return made


def _ask(data: Any) -> Ask:
    known = {"arrival_ns", "prompt_tokens", "output_tokens", "cached_tokens", "blocks"}
    if not isinstance(data, dict) or set(data) - known:
        raise ValueError("not a request")
    return Ask(
        arrival_ns=_int(data.get("arrival_ns"), 0),
        prompt_tokens=_int(data.get("prompt_tokens"), 1),
        output_tokens=_int(data.get("output_tokens"), 1),
        cached_tokens=_int(data.get("cached_tokens", 0), 0),
        blocks=tuple(_int(block, -(2**63)) for block in data.get("blocks", ())),
    )


def _int(value: Any, low: int) -> int:
    if type(value) is not int or not low <= value < 2**63:
        raise ValueError("not a number of this range")
    return value
