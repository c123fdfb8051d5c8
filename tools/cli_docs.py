"""Writes docs/cli.md from what `--help` of every command says. Run: make generated."""

import sys
from pathlib import Path
from typing import Any

from rtopt.cli.commands import COMMANDS
from rtopt.cli.entry import load

FILE = Path(__file__).parents[1] / "docs" / "cli.md"

HEAD = """\
# Commands

Generated from `rtopt COMMAND --help` by `make generated`; a test compares the two. Results go to
standard output, everything else to standard error; exit codes stand in the
[README](../README.md#exit-codes).

| command | what it does |
|---|---|
"""


def page() -> str:
    """The whole file."""
    overview = [f"| [`{name}`](#rtopt-{name}) | {line} |\n" for name, line in COMMANDS.items()]
    return HEAD + "".join(overview) + "".join(section(name) for name in COMMANDS)


def section(name: str) -> str:
    """One command: usage, help, and a row for each argument and option."""
    command = load(name)
    if commands := getattr(command, "commands", {}):
        parts = "".join(_section(f"{name} {part}", one) for part, one in commands.items())
        return f"\n## rtopt {name}\n\n{command.help.strip()}\n{parts}"
    return _section(name, command)


def _section(name: str, command: Any) -> str:
    usage = " ".join([f"rtopt {name}", *(_in_usage(p) for p in command.params), _rest(command)])
    rows = "".join(f"| {_names(p)} | {_text(p)} |\n" for p in command.params)
    table = f"\n| | |\n|---|---|\n{rows}" if rows else ""
    level = "##" if " " not in name else "###"
    return f"\n{level} rtopt {name}\n\n```\n{usage.strip()}\n```\n\n{command.help.strip()}\n{table}"


def _rest(command: Any) -> str:
    return "-- [VLLM FLAGS]" if command.context_settings.get("allow_extra_args") else ""


def _in_usage(param: Any) -> str:
    shown = _argument(param) if param.param_type_name == "argument" else _option(param)
    shown += "..." if param.multiple else ""
    return shown if param.required else f"[{shown}]"


def _argument(param: Any) -> str:
    return str(param.metavar or param.name).upper()


def _option(param: Any) -> str:
    longest = max(param.opts, key=len)
    return longest if param.is_flag else f"{longest} VALUE"


def _names(param: Any) -> str:
    if param.param_type_name == "argument":
        return f"`{_argument(param)}`"
    return ", ".join(f"`{name}`" for name in [*param.opts, *param.secondary_opts])


def _text(param: Any) -> str:
    text = str(param.help or "").replace("|", "\\|")
    if param.default in (None, False, ()) or param.required:
        return text
    return f"{text} Default: `{param.default}`."


def main() -> None:
    """Write the file."""
    FILE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"written: {FILE.relative_to(Path.cwd())}\n")


if __name__ == "__main__":
    main()
