"""rtopt doctor."""

from typing import Annotated

import typer

from rtopt.cli.options import AsJson
from rtopt.cli.show import as_json, table
from rtopt.doctor import examine


def run(
    url: Annotated[str | None, typer.Argument(help="A server to look at as well.")] = None,
    json: AsJson = False,
) -> None:
    """Say what is installed, what works here, and what would fix the rest.

    Exit code 1 when something that the loop needs is missing.
    """
    checks = examine(url)
    if json:
        as_json([check.as_dict() for check in checks])
    else:
        table(([c.mark, c.name, c.found, c.fix] for c in checks), "", "what", "found", "fix")
    if any(check.is_missing for check in checks):
        raise typer.Exit(1)
