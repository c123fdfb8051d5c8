"""The wheel: what is in it, and that installing it registers nothing with vLLM."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from importlib.metadata import entry_points
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "rtopt", "levers", "traces")
OVERLAY = "rtopt/overlay/rtopt_overlay-0.1.0.dist-info"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZipFile]:
    """Built from a copy, so that no build folder is left in the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in NEEDED:
        if (ROOT / name).is_dir():
            skip = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, source / name, ignore=skip)
        else:
            shutil.copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "wheel"]
    done = subprocess.run(
        [*pip, "--no-build-isolation", "--no-deps", "-w", str(folder), str(source)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with ZipFile(next(folder.glob("*.whl"))) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "rtopt/py.typed",
        "rtopt/levers/max_num_active_seqs.py",
        "rtopt/levers/max_num_scheduled_tokens.py",
        "rtopt/traces/__init__.py",
        "rtopt/traces/trace.schema.json",
        "rtopt/report/page.html.j2",
        "rtopt/report/style.css",
        "rtopt/overlay/rtopt_overlay/engine.py",
        f"{OVERLAY}/METADATA",
        f"{OVERLAY}/entry_points.txt",
    ],
)
def test_the_wheel_holds(wheel: ZipFile, name: str) -> None:
    assert name in wheel.namelist()


@pytest.mark.slow
def test_every_python_file_of_the_checkout_is_in_the_wheel(wheel: ZipFile) -> None:
    inside = set(wheel.namelist())
    wanted = {
        f"{prefix}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, prefix in (
            ("rtopt", "rtopt"),
            ("levers", "rtopt/levers"),
            ("traces", "rtopt/traces"),
        )
        for path in (ROOT / folder).rglob("*.py")
    }
    assert wanted - inside == set()


@pytest.mark.slow
def test_the_wheel_brings_nothing_but_the_folder_rtopt(wheel: ZipFile) -> None:
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert tops == {"rtopt", next(top for top in tops if top.endswith(".dist-info"))}


@pytest.mark.slow
def test_installing_the_wheel_registers_the_command_and_nothing_else(wheel: ZipFile) -> None:
    name = next(n for n in wheel.namelist() if n.count("/") == 1 and n.endswith("entry_points.txt"))
    registered = ConfigParser()
    registered.read_string(wheel.read(name).decode())
    assert {part: dict(registered[part]) for part in registered.sections()} == {
        "console_scripts": {"rtopt": "rtopt.cli:main"}
    }


@pytest.mark.slow
def test_levers_are_imported_from_the_wheel(wheel: ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    code = (
        "import rtopt, rtopt.levers, rtopt.traces; from rtopt.apply import load_levers;"
        "from rtopt.engines.launch import overlay_path; import sys;"
        "print(rtopt.__file__, rtopt.levers.__file__, overlay_path(), *load_levers(), sep='\\n')"
    )
    # -I would hide PYTHONPATH: the path is set by hand, before the checkout's own finder.
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    package, levers, overlay, *ids = done.stdout.splitlines()
    assert all(path.startswith(str(tmp_path)) for path in (package, levers, overlay))
    assert (Path(overlay) / Path(OVERLAY).name / "entry_points.txt").is_file()
    assert {"max_num_active_seqs", "max_num_scheduled_tokens"} <= set(ids)


def test_nothing_of_rtopt_is_registered_with_vllm_in_this_environment() -> None:
    ours = [
        f"{entry.group}: {entry.name} = {entry.value}"
        for group in entry_points().groups
        if group.startswith("vllm.")
        for entry in entry_points(group=group)
        if "rtopt" in f"{entry.name} {entry.value}"
    ]
    assert ours == []
