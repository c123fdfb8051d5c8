"""rtopt export."""

from pathlib import Path
from typing import Annotated

import typer

from rtopt.cli.options import TraceFile, open_trace
from rtopt.cli.show import note
from rtopt.report.exports import export


def run(
    trace_file: TraceFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write; for csv a new folder.")],
    form: Annotated[
        str, typer.Option("--format", help="perfetto (opens in ui.perfetto.dev) or csv.")
    ] = "perfetto",
) -> None:
    """Write a trace in another program's format."""
    export(open_trace(trace_file), form, out)
    note(f"written: {out}")
