"""Every command has its file, its line in the overview, and no other file pretends to be one."""

from importlib import import_module
from inspect import getdoc
from pathlib import Path

import pytest

import rtopt.cli
from rtopt.cli.commands import COMMANDS

PARTS = ("__init__", "commands", "entry", "options", "show", "trial")
"""Files of rtopt/cli that are no command."""


@pytest.mark.parametrize("name", COMMANDS)
def test_the_overview_has_the_first_line_of_the_commands_help(name: str) -> None:
    run = import_module(f"rtopt.cli.{name.replace('-', '_')}").run
    assert (getdoc(run) or "").splitlines()[0] == COMMANDS[name]


def test_every_file_of_the_command_line_is_a_command_or_a_known_part() -> None:
    files = {path.stem for path in Path(str(rtopt.cli.__file__)).parent.glob("*.py")}
    assert files - set(PARTS) == {name.replace("-", "_") for name in COMMANDS}


def test_the_five_verbs_come_first_and_in_order() -> None:
    assert list(COMMANDS)[:5] == ["profile", "predict", "attribute", "apply", "report"]
