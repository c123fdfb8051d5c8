import os
from pathlib import Path

import pytest

from rtopt.errors import TraceError
from rtopt.storage import AppendLog


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    log = AppendLog(tmp_path / "j.jsonl")
    assert log.read() == ()
    assert log.torn is None


def test_records_come_back_in_order(tmp_path: Path) -> None:
    log = AppendLog(tmp_path / "j.jsonl")
    for number in range(5):
        log.append({"n": number, "text": "line\nbreak"})
    assert [record["n"] for record in AppendLog(tmp_path / "j.jsonl").read()] == [0, 1, 2, 3, 4]


def test_a_record_is_synced_before_append_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        sizes.append(os.fstat(descriptor).st_size)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    AppendLog(tmp_path / "j.jsonl").append({"a": 1})
    assert sizes[0] == len('{"a":1}\n')
    assert len(sizes) == 2, "of a new file the name is synced too"


def test_a_log_torn_at_any_byte_keeps_its_whole_lines_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    log = AppendLog(path)
    for number in range(3):
        log.append({"n": number})
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        log = AppendLog(path)
        kept = [record["n"] for record in log.read()]
        assert kept == list(range(whole[:size].count(b"\n")))
        rest = whole[:size].rpartition(b"\n")[2].decode()
        assert log.torn == (rest or None)
        log.append({"n": 9})
        assert [record["n"] for record in log.read()] == [*kept, 9]
        assert log.torn is None


def test_a_long_torn_line_is_found(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(b'{"n":0}\n{"text":"' + b"x" * 10_000)
    log = AppendLog(path)
    log.append({"n": 1})
    assert log.read() == ({"n": 0}, {"n": 1})


@pytest.mark.parametrize("line", ["oops", "[1]", ""])
def test_a_damaged_line_is_named_with_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text('{"n":0}\n' + line + '\n{"n":2}\n')
    with pytest.raises(TraceError, match=r"j\.jsonl:2: "):
        AppendLog(path).read()
