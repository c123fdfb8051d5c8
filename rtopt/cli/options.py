"""Options that several commands share, each written once."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from rtopt.cli.show import note
from rtopt.config import RunConfig, parse_load, parse_slo, read_config
from rtopt.errors import UsageError
from rtopt.storage import read_trace, to_json
from rtopt.types import Trace

Url = Annotated[str, typer.Argument(help="The server, for example http://127.0.0.1:8000.")]
TraceFile = Annotated[Path, typer.Argument(help="A trace that `rtopt profile` wrote.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
TokenFile = Annotated[
    Path | None,
    typer.Option(help="File with the server's token; `rtopt serve` keeps one where we look."),
]
Config = Annotated[Path | None, typer.Option(help="TOML file with the run's settings.")]
Objective = Annotated[
    str | None, typer.Option(help="What to improve: throughput, ttft, itl or e2e.")
]
SloTexts = Annotated[
    list[str] | None,
    typer.Option("--slo", help="A limit that must hold, for example itl_p95=200ms. Repeatable."),
]
LoadText = Annotated[
    str | None,
    typer.Option("--load", help="How traffic is offered: open, or closed:N with N clients."),
]
MaxMinutes = Annotated[float | None, typer.Option(help="Longest time for the run, in minutes.")]
MaxExposed = Annotated[
    int | None, typer.Option(help="Most requests that may be served by a change on trial.")
]
Levers = Annotated[Path | None, typer.Option(help="Folder with more levers.")]


def megabytes(number: float) -> int:
    """A size in bytes.

    Raises:
        UsageError: Not a size.
    """
    if not 0 < number < math.inf:
        raise UsageError(f"--max-mb {number:g}: must be above 0. Nothing was done.")
    return math.ceil(number * 1e6)


def open_trace(path: Path) -> Trace:
    """Read a trace, and note what of it was not readable."""
    trace = read_trace(path)
    for text in trace.notes:
        note(f"{path}: {text}; the rest is used")
    return trace


def config_of(
    path: Path | None,
    *,
    objective: str | None = None,
    slos: list[str] | None = None,
    load: str | None = None,
    max_minutes: float | None = None,
    max_exposed: int | None = None,
) -> RunConfig:
    """The run's settings: the file, with the flags over it."""
    flags: dict[str, Any] = {
        "objective": objective,
        "slos": [to_json(parse_slo(text)) for text in slos] if slos else None,
        "load": to_json(parse_load(load)) if load else None,
        "budget": {"max_minutes": max_minutes, "max_exposed": max_exposed},
    }
    return read_config(path, flags)
