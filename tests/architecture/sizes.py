"""Prints the largest files and functions: python -m tests.architecture.sizes. It never fails.

A look for orientation: a file past 300 lines or a function past 40 deserves a second one. A long
table of data is not a long file.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).parents[2]
FOLDERS = ("rtopt", "levers", "tools", "tests", "benchmarks", "examples")
FILE_LINES, FUNCTION_LINES, SHOWN = 300, 40, 10


def files(folder: str) -> dict[str, int]:
    """Lines of every Python file below a folder."""
    found = sorted((ROOT / folder).rglob("*.py"))
    return {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in found
    }


def functions(name: str) -> Iterator[tuple[str, int]]:
    """Lines of every function of a file, its docstring left out."""
    for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            text = ast.get_docstring(node, clean=False) or ""
            yield (
                f"{name}:{node.lineno} {node.name}",
                node.end_lineno - node.lineno + 1 - len(text.splitlines()),
            )


def lines() -> Iterator[str]:
    """What is printed."""
    for folder in FOLDERS:
        sizes = files(folder)
        if sizes:
            mean = fmean(sizes.values())
            yield f"{folder}: {len(sizes)} files, {sum(sizes.values())} lines, {mean:.0f} a file"
    every = {name: size for folder in FOLDERS for name, size in files(folder).items()}
    long = {f: n for name in every for f, n in functions(name)}
    yield from _largest("files", every, FILE_LINES)
    yield from _largest("functions", long, FUNCTION_LINES)


def _largest(what: str, sizes: dict[str, int], limit: int) -> Iterator[str]:
    over = sum(size > limit for size in sizes.values())
    yield f"\n{over} {what} past {limit} lines; the largest:"
    for name in sorted(sizes, key=lambda name: -sizes[name])[:SHOWN]:
        yield f"  {sizes[name]:4d}  {name}"


if __name__ == "__main__":
    sys.stdout.write("\n".join(lines()) + "\n")
