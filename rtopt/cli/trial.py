"""What `apply` and `tune` show about a plan and a finished run."""

import typer

from rtopt.cli.show import say
from rtopt.errors import StoppedError
from rtopt.report import describe_plan, describe_run
from rtopt.session import Session
from rtopt.types import Plan


def show_plan(plan: Plan) -> None:
    """Print a plan that is not carried out."""
    say(describe_plan(plan))
    say("Nothing was changed. Add --rollback to try it behind the gate.")


def ask(plan: Plan) -> bool:
    """Print the plan and ask.

    Raises:
        StoppedError: Ctrl-C instead of an answer, or nobody is there to ask.
    """
    say(describe_plan(plan))
    try:
        return typer.confirm("Try it?", default=False)
    except typer.Abort as abort:
        raise StoppedError("the plan was not answered. Nothing of it was changed.") from abort


def finish(session: Session) -> str:
    """Write the report, and say how the run ended."""
    page = session.report()
    run = session.last_run
    return f"{describe_run(run.path) if run else ''}\nreport: {page}"
