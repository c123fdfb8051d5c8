"""rtopt report."""

from typing import Annotated

import typer

from rtopt.cli.show import say
from rtopt.report import render
from rtopt.storage import find_run


def run(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="Id or folder of a run.")],
) -> None:
    """Write the HTML report of a run."""
    say(str(render(find_run(run_id).path)))
