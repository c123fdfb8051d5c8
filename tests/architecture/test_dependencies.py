"""docs/dependencies.md against pyproject.toml, and pyproject.toml against what is imported."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGE = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
COMES_WITH = {
    "fastapi": "vllm",
    "markupsafe": "jinja2",
    "prometheus_client": "prometheus-client",
    "pynvml": "nvidia-ml-py",
    "torch": "vllm",
    "transformers": "vllm",
}
"""What is imported under another name than what is installed, or comes with something that is."""


def name(requirement: str) -> str:
    """Without version and extras, in lower case."""
    return re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0].lower()


def documented(heading: str) -> list[str]:
    """First cells of the table below a heading."""
    _, _, after = PAGE.partition(f"\n## {heading}\n")
    part = after.partition("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", part, flags=re.MULTILINE)


def imported() -> Iterator[tuple[str, str]]:
    """Top-level package of each import that is neither ours nor Python's, with its file."""
    for folder in ("rtopt", "levers"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                modules = (
                    [alias.name for alias in node.names]
                    if isinstance(node, ast.Import)
                    else [node.module or ""]
                    if isinstance(node, ast.ImportFrom) and node.level == 0
                    else []
                )
                for module in modules:
                    root = module.partition(".")[0]
                    if root not in ("rtopt", "rtopt_overlay", *sys.stdlib_module_names):
                        yield root, str(path.relative_to(ROOT))


def test_every_dependency_has_its_reason_on_the_page_and_nothing_else_has() -> None:
    assert documented("Always installed") == [name(r) for r in PROJECT["dependencies"]]


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_has_its_reasons_on_the_page(extra: str) -> None:
    assert documented(f"Extra: {extra}") == [name(r) for r in EXTRAS[extra]]


def test_every_package_that_is_imported_is_named_in_pyproject() -> None:
    runtime = [r for extra in EXTRAS if extra != "dev" for r in EXTRAS[extra]]
    declared = {name(r) for r in [*PROJECT["dependencies"], *runtime]}
    unnamed = {
        f"{root} in {path}"
        for root, path in imported()
        if COMES_WITH.get(root, root) not in declared
    }
    assert unnamed == set()


def test_a_place_that_the_page_names_is_there() -> None:
    places = re.findall(r"`((?:rtopt|tests|tools|levers)/[\w/.]*)`", PAGE)
    assert places
    assert [place for place in places if not (ROOT / place).exists()] == []
