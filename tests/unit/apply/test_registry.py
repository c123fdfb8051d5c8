"""Finding levers, and saying clearly what is wrong with one."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rtopt.apply import load_levers
from rtopt.apply.registry import built_in_folder
from rtopt.errors import UsageError

LEVER = '''
"""A lever for tests."""

from rtopt import Cause, Envelope, Lever

LEVER = Lever(
    id="{id}", title="Test", knobs=("k",), scope="live", targets=(Cause.COMPUTE,), never_for=(),
    risks=(), source="test", flag="--k", applies=lambda ctx: None,
    envelope=lambda ctx: Envelope(low=0, high=1), propose=lambda ctx: [],
)
'''


def write(folder: Path, name: str, text: str = LEVER) -> Path:
    path = folder / f"{name}.py"
    path.write_text(text.replace("{id}", name))
    return path


def test_the_built_in_levers_are_those_of_the_folder() -> None:
    names = {path.stem for path in built_in_folder().glob("*.py")} - {"__init__"}
    assert set(load_levers()) == names >= {"max_num_active_seqs", "max_num_scheduled_tokens"}


def test_a_folder_of_the_users_adds_levers(tmp_path: Path) -> None:
    write(tmp_path, "mine")
    write(tmp_path, "_notes", "this is not Python")
    assert {"mine", "max_num_active_seqs"} <= set(load_levers(tmp_path))


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("mine", "def (", "SyntaxError"),
        ("mine", "import nonsense_package", "ModuleNotFoundError"),
        ("mine", "from rtopt import Nonsense", "ImportError"),
        ("mine", "1 / 0", "ZeroDivisionError"),
        ("mine", "", "no LEVER"),
        ("mine", "LEVER = 3", "found int"),
        ("mine", LEVER.replace("{id}", "yours"), "wanted 'mine'"),
        ("max_num_active_seqs", LEVER, "already taken by"),
    ],
)
def test_a_broken_file_is_one_clear_error_that_names_it(
    tmp_path: Path, name: str, text: str, why: str
) -> None:
    path = write(tmp_path, name, text)
    with pytest.raises(UsageError, match=why) as error:
        load_levers(tmp_path)
    assert str(path) in str(error.value)
    assert "Nothing was changed." in str(error.value)


def test_a_folder_that_is_missing_or_empty_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a folder"):
        load_levers(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="no lever in it"):
        load_levers(tmp_path)


def plug_in(folder: Path, text: str, target: str) -> None:
    write(folder, "test_plug_in_module", text)
    info = folder / "test_plug_in-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: test-plug-in\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[rtopt.levers]\nmine = {target}\n")


@pytest.mark.parametrize("target", ["test_plug_in_module", "test_plug_in_module:LEVER"])
def test_an_installed_plug_in_adds_its_lever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    plug_in(tmp_path, LEVER.replace("{id}", "mine"), target)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "test_plug_in_module", raising=False)
    assert "mine" in load_levers()


def test_a_broken_plug_in_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(tmp_path, "1 / 0", "test_plug_in_module")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "test_plug_in_module", raising=False)
    with pytest.raises(
        UsageError, match=r"entry point mine = .* of test-plug-in: cannot be loaded"
    ):
        load_levers()


@pytest.mark.slow
def test_a_plain_checkout_finds_the_folder_beside_the_package(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(root / "rtopt", tmp_path / "rtopt", ignore=skip)
    shutil.copytree(root / "levers", tmp_path / "levers", ignore=skip)
    code = (
        "from rtopt.apply.registry import built_in_folder, load_levers;"
        "print(built_in_folder(), *load_levers())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    folder, *names = done.stdout.split()
    assert Path(folder).name == "levers"
    assert "max_num_active_seqs" in names
