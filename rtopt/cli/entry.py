"""Finds the command's file, runs it, and turns an error into one line and an exit code."""

import signal
import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from rtopt.cli.commands import COMMANDS
from rtopt.cli.show import fail
from rtopt.errors import RtoptError, StoppedError, UsageError
from rtopt.version import VERSION


class LazyGroup(TyperGroup):
    """Knows the commands' names and help without loading their files."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - Typer's signature
        """Names, the five verbs first."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - Typer's signature
        """A stand-in with the command's help, enough for the overview."""
        if cmd_name not in COMMANDS:
            return None
        return TyperCommand(name=cmd_name, help=COMMANDS[cmd_name])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The real command, from its file.

        Raises:
            UsageError: There is no such command.
        """
        if args and args[0] not in COMMANDS:
            raise UsageError(f"{args[0]}: no such command; known: {', '.join(COMMANDS)}")
        name, command, rest = super().resolve_command(ctx, args)
        return name, load(str(name)) if command is not None else command, rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command; Typer itself would end without a word at Ctrl-C.

        Raises:
            StoppedError: Interrupted while nothing was on trial.
        """
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise StoppedError("interrupted; nothing was on trial") from interrupt


def load(name: str) -> Any:
    """Load the file of one command; a command with commands of its own has them in `GROUP`."""
    module = import_module(f"rtopt.cli.{name.replace('-', '_')}")
    if (group := getattr(module, "GROUP", None)) is not None:
        return typer.main.get_command(group)
    app = typer.Typer(add_completion=False)
    app.command(name=name, help=module.run.__doc__, **getattr(module, "SETTINGS", {}))(module.run)
    return typer.main.get_command(app)


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    help="Makes a running vLLM faster, and proves it: profile, predict, attribute, apply, report.",
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"rtopt {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=_version, is_eager=True
    ),
) -> None:
    """Options before the command."""


def main() -> None:
    """Run the command line. SIGTERM ends a command as Ctrl-C does: it puts back and cleans up."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        app(prog_name="rtopt")
    except RtoptError as error:
        fail(str(error))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        fail("interrupted; nothing was on trial")
        sys.exit(StoppedError.exit_code)
