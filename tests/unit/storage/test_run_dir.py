import getpass
import socket
from pathlib import Path

import pytest

from rtopt.errors import UsageError
from rtopt.storage import find_run, list_runs, new_run, runs_root, state_root


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def test_runs_live_where_the_state_of_programs_lives(state_home: Path) -> None:
    assert runs_root() == state_home / "rtopt" / "runs"


def test_without_the_variable_it_is_the_home_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_root() == tmp_path / ".local" / "state" / "rtopt"


def test_a_relative_state_home_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "here")
    with pytest.raises(UsageError, match="XDG_STATE_HOME=here: must be an absolute path"):
        runs_root()


def test_a_new_run_says_what_it_is_and_nothing_about_the_host(state_home: Path) -> None:
    run = new_run("tune", {"max_minutes": 5})
    about = run.about()
    assert about["kind"] == "tune"
    assert about["settings"] == {"max_minutes": 5}
    assert about["created_unix_ns"] > 10**18
    assert run.path == state_home / "rtopt" / "runs" / run.id
    assert run.path.stat().st_mode & 0o077 == 0
    for private in (getpass.getuser(), socket.gethostname()):
        assert private not in run.id


def test_ids_sort_by_time_and_never_meet() -> None:
    ids = [new_run("apply").id for _ in range(20)]
    assert len(set(ids)) == 20
    assert [run.id[:19] for run in list_runs()] == sorted((i[:19] for i in ids), reverse=True)


def test_a_run_is_found_by_its_id_and_by_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    run = new_run("tune")
    assert find_run(run.id) == run
    assert find_run(run.path) == run
    monkeypatch.chdir(run.path.parent)
    assert find_run(run.id) == run


def test_a_missing_run_is_an_error_that_lists_the_latest() -> None:
    with pytest.raises(UsageError, match="There are none"):
        find_run("x")
    run = new_run("tune")
    with pytest.raises(UsageError, match=f"'x': not found in .*Latest: {run.id}"):
        find_run("x")


def test_a_folder_without_its_run_file_is_no_run() -> None:
    run = new_run("tune")
    (run.path / "run.json").unlink()
    assert list_runs() == ()
    with pytest.raises(UsageError, match="not found"):
        find_run(run.path)
