"""rtopt tune."""

from typing import Annotated

import typer

from rtopt.cli.options import (
    Config,
    Levers,
    LoadText,
    MaxExposed,
    MaxMinutes,
    Objective,
    SloTexts,
    TokenFile,
    Url,
    config_of,
)
from rtopt.cli.show import progress, say
from rtopt.cli.trial import ask, finish
from rtopt.loop import yes
from rtopt.session import attach


def run(
    url: Url,
    objective: Objective = None,
    slo: SloTexts = None,
    load: LoadText = None,
    max_minutes: MaxMinutes = None,
    max_exposed: MaxExposed = None,
    asks: Annotated[bool, typer.Option("--ask", help="Confirm before each change.")] = False,
    levers: Levers = None,
    config: Config = None,
    token_file: TokenFile = None,
) -> None:
    """Run the whole loop within a budget.

    Profile, predict, attribute, apply, report, again and again. Every change is behind the gate:
    kept when proven better, restored otherwise.
    """
    settings = config_of(
        config,
        objective=objective,
        slos=slo,
        load=load,
        max_minutes=max_minutes,
        max_exposed=max_exposed,
    )
    with (
        progress() as said,
        attach(
            url, config=settings, token_file=token_file, levers=levers, progress=said
        ) as session,
    ):
        session.tune(confirm=ask if asks else yes)
        say(finish(session))
