"""The README names only what exists."""

import re
from pathlib import Path
from typing import Any

import pytest

from rtopt import errors
from rtopt.cli.commands import COMMANDS
from rtopt.cli.entry import load

ROOT = Path(__file__).parents[2]
PRESENT = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("[!.]*/**/*.md"))]
PAGES = [*PRESENT, ROOT / "ROADMAP.md"]
"""The roadmap names commands that are still to come."""
README = PAGES[0].read_text(encoding="utf-8")


def called(page: Path) -> list[tuple[str, str]]:
    """Each command line of rtopt in a page's code, as (command, rest)."""
    text = page.read_text(encoding="utf-8")
    code = re.findall(r"```sh\n(.*?)```", text, re.DOTALL) + re.findall(r"`(rtopt [^`]*)`", text)
    return re.findall(r"(?<![=/\w-])rtopt ([a-z][a-z-]+)([^#\n)]*)", "\n".join(code))


def flags(name: str, rest: str) -> set[str]:
    """Of the command; where it has commands of its own, of the one that the line goes on with."""
    command = load(name)
    parts = getattr(command, "commands", {})
    chosen = [parts[word] for word in rest.split()[:1] if parts]
    params: list[Any] = (chosen[0] if chosen else command).params
    return {word for param in params for word in (*param.opts, *param.secondary_opts)}


@pytest.mark.parametrize("page", PRESENT, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_and_flags_that_a_page_names_exist(page: Path) -> None:
    for name, rest in called(page):
        assert name in COMMANDS, name
        ours = rest.partition(" -- ")[0]
        assert set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", ours)) <= flags(name, ours), (
            name,
            ours,
        )


def test_the_exit_codes_are_those_of_the_errors() -> None:
    codes = {int(c) for c in re.findall(r"^\| (\d+) \| ", README, flags=re.MULTILINE)}
    tree = [c for c in vars(errors).values() if isinstance(c, type)]
    ours = {c.exit_code for c in tree if issubclass(c, errors.RtoptError)}
    assert codes == {0, *ours}


def test_the_python_of_the_readme_is_python() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert blocks
    for block in blocks:
        compile(block, "README.md", "exec")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
