"""The set of commands and flags. Extending it is a decision: settings belong into the TOML file."""

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
FLAGS: dict[str, set[str]] = {
    "profile": {
        "url",
        "--duration",
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
    "doctor": {"url", "--json"},
}


def test_the_commands_are_these() -> None:
    assert set(COMMANDS) == set(FLAGS)


@pytest.mark.parametrize("name", FLAGS)
def test_the_flags_are_these(name: str) -> None:
    params = load(name).params
    found = {word for param in params for word in (*param.opts, *param.secondary_opts)}
    assert found == FLAGS[name]


@pytest.mark.parametrize("name", FLAGS)
def test_every_flag_has_a_line_of_help(name: str) -> None:
    assert [param.name for param in load(name).params if not param.help] == []
