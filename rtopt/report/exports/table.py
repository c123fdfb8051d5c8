"""The table of export formats."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from rtopt.errors import UsageError
from rtopt.report.exports.csv_files import write_csv
from rtopt.report.exports.perfetto import write_perfetto
from rtopt.types import Trace

Export = Callable[[Trace, Path], None]

EXPORTS: Final[dict[str, Export]] = {"perfetto": write_perfetto, "csv": write_csv}
"""perfetto: one file for ui.perfetto.dev and chrome://tracing. csv: a folder, one file per kind."""


def export(trace: Trace, form: str, out: Path) -> None:
    """Write the trace in another program's format.

    Raises:
        UsageError: The format is unknown, or nothing can be written there.
    """
    if form not in EXPORTS:
        raise UsageError(
            f"--format {form}: unknown; known: {', '.join(EXPORTS)}. Nothing was written."
        )
    EXPORTS[form](trace, out)
