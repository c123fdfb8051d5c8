"""rtopt apply."""

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
    config_of,
)
from rtopt.cli.show import progress, say
from rtopt.cli.trial import finish, show_plan
from rtopt.errors import UsageError
from rtopt.session import attach, resume


def run(
    url: Annotated[str | None, typer.Argument(help="The server.")] = None,
    lever: Annotated[str | None, typer.Option(help="Id of the lever to try.")] = None,
    rollback: Annotated[
        bool,
        typer.Option(
            "--rollback", help="Consent to a change behind the gate; without it: the plan only."
        ),
    ] = False,
    resume_run: Annotated[
        str | None, typer.Option("--resume", help="Say what became of a run that was cut off.")
    ] = None,
    objective: Objective = None,
    slo: SloTexts = None,
    load: LoadText = None,
    max_minutes: MaxMinutes = None,
    max_exposed: MaxExposed = None,
    levers: Levers = None,
    config: Config = None,
    token_file: TokenFile = None,
) -> None:
    """Try one lever behind the gate; keep it or restore.

    A paired randomised switchback decides; the default is to restore. Without --rollback nothing
    is changed, and the plan is printed.
    """
    if resume_run is not None:
        say(resume(resume_run, url=url, token_file=token_file))
        return
    if url is None or lever is None:
        raise UsageError("apply: wanted a URL and --lever, or --resume RUN. Nothing was changed.")
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
        if rollback:
            session.apply(lever)
        else:
            session.plan(lever, show=show_plan)
        say(finish(session))
