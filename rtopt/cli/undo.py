"""rtopt undo."""

from typing import Annotated

import typer

from rtopt.cli.options import TokenFile
from rtopt.cli.show import say
from rtopt.session import undo


def run(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="Id or folder of a run.")],
    url: Annotated[
        str | None, typer.Argument(help="The server; by default the one of the run.")
    ] = None,
    token_file: TokenFile = None,
) -> None:
    """Take back what a run kept."""
    say(undo(run_id, url=url, token_file=token_file))
