"""`rtopt traffic` as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.traffic.conftest import Served

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:17:0{n}.5,{100 * (n + 1)},4\n" for n in range(6)
)


def traffic(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rtopt", "traffic", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_file_is_offered_scaled_and_what_was_cut_is_said(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "azure.csv"
    file.write_text(AZURE)
    done = traffic("run", served.url, str(file), "--speed", "20", "--max-prompt", "300", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["finished"] == 6
    assert sorted(len(body["prompt"]) for body in served.asked) == [100, 200, 300, 300, 300, 300]
    assert "3 of 6 prompts were cut to 300 tokens" in done.stderr


def test_requests_longer_than_the_model_takes_are_refused_before_any_is_sent(
    served: Served, tmp_path: Path
) -> None:
    served.max_model_len = 450
    file = tmp_path / "azure.csv"
    file.write_text(AZURE)
    done = traffic("run", served.url, str(file))
    assert done.returncode == 2
    assert "2 of 6 requests need more than the 450 tokens" in done.stderr
    assert served.asked == []


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "found none"),
        (("--rate", "1", "--clients", "1"), "found rate and clients"),
        (("--rate", "1", "--think", "1"), "--think goes with clients, not with rate"),
        (("--rate", "1", "--goodput", "tpot=3ms"), "--goodput tpot: unknown metric"),
    ],
)
def test_a_load_that_is_not_one_is_refused(
    served: Served, words: tuple[str, ...], named: str
) -> None:
    done = traffic("run", served.url, *words)
    assert done.returncode == 2
    assert named in done.stderr
    assert served.asked == []
