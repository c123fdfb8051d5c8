"""Every room says what it is, and is empty of what belongs elsewhere."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(
    path.parent
    for folder in ("rtopt", "levers", "traces")
    for path in (ROOT / folder).rglob("__init__.py")
)
FILES = sorted(path for f in ("rtopt", "levers", "traces") for path in (ROOT / f).rglob("*.py"))


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_package_says_what_it_is(folder: Path) -> None:
    source = (folder / "__init__.py").read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(source))


def test_every_folder_with_python_files_is_a_package() -> None:
    assert {path.parent for path in FILES} == set(PACKAGES)


def test_no_import_stands_inside_a_function_but_in_the_two_tables() -> None:
    allowed = {ROOT / "rtopt" / room / "__init__.py" for room in ("engines", "backends")}
    late = [
        f"{path.relative_to(ROOT)}:{inner.lineno}"
        for path in FILES
        if path not in allowed
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    ]
    assert late == []
