"""rtopt doctor."""

from typing import Annotated

import typer

from rtopt.cli.options import AsJson
from rtopt.cli.show import as_json, say, table
from rtopt.doctor import examine, examine_servers
from rtopt.errors import UsageError


def run(
    url: Annotated[str | None, typer.Argument(help="A server to look at as well.")] = None,
    servers: Annotated[
        bool, typer.Option("--servers", help="Look for vLLM servers on this machine instead.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Say what is installed, what works here, and what would fix the rest.

    Exit code 1 when something that the loop needs is missing.
    """
    if servers and url is not None:
        raise UsageError("doctor: a URL and --servers: wanted one of them. Nothing was looked at.")
    checks = examine_servers() if servers else examine(url)
    if json:
        as_json([check.as_dict() for check in checks])
    elif servers:  # lines, because a command to copy must not be folded into a column
        say("\n".join(check.line() for check in checks))
    else:
        table(([c.mark, c.name, c.found, c.fix] for c in checks), "", "what", "found", "fix")
    if any(check.is_missing for check in checks):
        raise typer.Exit(1)
