"""rtopt restore."""

from typing import Annotated

import typer

from rtopt.cli.options import TokenFile, Url
from rtopt.cli.show import say
from rtopt.session import restore


def run(
    url: Url,
    force: Annotated[
        bool, typer.Option("--force", help="Also when somebody else holds the engine.")
    ] = False,
    token_file: TokenFile = None,
) -> None:
    """Return a server to its start-up values.

    Needs nothing but the server: no run, no journal.
    """
    say(restore(url, force=force, token_file=token_file))
