"""The set of commands and flags. Extending it is a decision: settings belong into the TOML file."""

from typing import Any

import pytest

from rtopt.cli.commands import COMMANDS
from rtopt.cli.entry import load

RUN_FLAGS = {
    "--config",
    "--levers",
    "--load",
    "--max-exposed",
    "--max-minutes",
    "--objective",
    "--slo",
    "--token-file",
}
SCALING = {
    "--duration",
    "--max-output",
    "--max-prompt",
    "--scale-lengths",
    "--speed",
    "--start",
}
FLAGS: dict[str, set[str]] = {
    "profile": {
        "url",
        "--duration",
        "--events",
        "--json",
        "--load",
        "--max-mb",
        "--out",
        "-o",
        "--requests",
        "--token-file",
    },
    "predict": {"trace_file", "--allow-version", "--json", "--set"},
    "attribute": {"trace_file", "--json"},
    "apply": {"url", "--lever", "--resume", "--rollback", *RUN_FLAGS},
    "report": {"run_id"},
    "tune": {"url", "--ask", *RUN_FLAGS},
    "undo": {"run_id", "url", "--token-file"},
    "restore": {"url", "--force", "--token-file"},
    "serve": {"model", "--port"},
    "overlay-path": set(),
    "export": {"trace_file", "--format", "--out", "-o"},
    "traffic show": {"file", "--json"},
    "traffic convert": {"file", "out", "--to", *SCALING},
    "traffic run": {
        "url",
        "file",
        "--answers",
        "--clients",
        "--cv",
        "--goodput",
        "--json",
        "--on-off",
        "--output-tokens",
        "--prefix-tokens",
        "--prefixes",
        "--prompt-tokens",
        "--rate",
        "--seed",
        "--think",
        *SCALING,
    },
    "doctor": {"url", "--json", "--servers"},
}


def commands() -> dict[str, Any]:
    """Every command that does something, by all its words."""
    found: dict[str, Any] = {}
    for name in COMMANDS:
        command = load(name)
        parts = getattr(command, "commands", {})
        found |= {f"{name} {part}": one for part, one in parts.items()} or {name: command}
    return found


def test_the_commands_are_these() -> None:
    assert set(commands()) == set(FLAGS)


@pytest.mark.parametrize("name", FLAGS)
def test_the_flags_are_these(name: str) -> None:
    params = commands()[name].params
    found = {word for param in params for word in (*param.opts, *param.secondary_opts)}
    assert found == FLAGS[name]


@pytest.mark.parametrize("name", FLAGS)
def test_every_flag_has_a_line_of_help(name: str) -> None:
    assert [param.name for param in commands()[name].params if not param.help] == []
