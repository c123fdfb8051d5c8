"""What happens when the other side goes away, or the user presses Ctrl-C, half way."""

import gzip
import re
import signal
import socket
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from rtopt.storage import read_trace
from tests.unit.cli.conftest import CommandLine, ended
from tests.unit.cli.fakes import (
    KNOB,
    Answer,
    Asked,
    HangUpError,
    Overlay,
    plain_vllm,
    serving,
)

TOKEN = "canary-token-9f2c"
SHORT = """\
profile_s = 20
load = {kind = "closed", clients = 16}
[gate]
block_s = 10
washout_s = 2
"""


@pytest.mark.parametrize("lines", [1, 40])
def test_a_stream_that_dies_half_way_is_kept_as_far_as_it_came(
    rtopt: CommandLine, tmp_path: Path, lines: int
) -> None:
    with serving(Overlay(lines_before_death=lines)) as url:
        done = rtopt("profile", url, "-o", "t")
    assert re.search(r"the server hung up; \d+ s were recorded and kept in t", done.err)
    assert "Traceback" not in done.err
    assert done.code == 5
    assert "Ended by" in done.out
    kept = read_trace(tmp_path / "t")
    assert kept.end.reason == "disconnected"
    assert len(kept.steps) + len(kept.requests) == lines - 1


def test_a_stream_that_dies_before_its_first_line_leaves_no_file(
    rtopt: CommandLine, tmp_path: Path
) -> None:
    with serving(Overlay(lines_before_death=0)) as url:
        done = rtopt("profile", url, "-o", "t")
    assert "ended before it began" in done.err.splitlines()[-1]
    assert done.code == 5
    assert not (tmp_path / "t").exists()


def test_a_stream_in_another_form_is_an_error_of_the_engine(rtopt: CommandLine) -> None:
    overlay = Overlay()

    def garbled(asked: Asked) -> Answer:
        if asked.path == "/rtopt/trace":
            return Answer(body=iter(['{"kind": "open"}\n', "[]\n"]))
        return overlay(asked)

    with serving(garbled) as url:
        done = rtopt("profile", url)
    assert "the recording: not as rtopt's overlay answers" in done.err.splitlines()[-1]
    assert done.code == 5


def test_a_plain_server_that_goes_away_is_kept_as_far_as_it_was_read(
    rtopt: CommandLine, tmp_path: Path
) -> None:
    sound = plain_vllm()
    asked = []

    def dying(question: Asked) -> Answer:
        asked.append(question.path)
        if len(asked) > 14:
            raise HangUpError
        return sound(question)

    with serving(dying) as url:
        done = rtopt("profile", url, "-o", "t", "--duration", "30")
    assert "the server hung up" in done.err.splitlines()[-1]
    assert done.code == 5
    kept = read_trace(tmp_path / "t")
    assert kept.end.reason == "disconnected"
    assert kept.end.failed_reads["metrics"] == 3
    assert any(sample.source == "metrics" for sample in kept.samples)


def test_ctrl_c_keeps_what_was_recorded(rtopt: CommandLine, tmp_path: Path) -> None:
    with serving(plain_vllm()) as url, rtopt.start("profile", url, "-o", "t") as process:
        wait_for_line(process, "recording")
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        done = ended(process)
    assert re.search(r"interrupted; \d+ s were recorded and kept in t", done.err)
    assert "Traceback" not in done.err
    assert done.code == 130
    assert read_trace(tmp_path / "t").end.reason == "interrupted"


def test_ctrl_c_while_nothing_is_on_trial_says_so(rtopt: CommandLine) -> None:
    def slow(asked: Asked) -> Answer:
        time.sleep(2)
        raise HangUpError

    asked = []

    def first(question: Asked) -> Answer:
        asked.append(question.path)
        return slow(question)

    with serving(first) as url, rtopt.start("restore", url) as process:
        while not asked and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        done = ended(process)
    assert "interrupted; nothing was on trial" in done.line()
    assert done.code == 130


def wait_for_line(process: "subprocess.Popen[str]", text: str) -> None:
    assert process.stderr is not None
    while text not in (line := process.stderr.readline()):
        assert line, "it ended before that"


@pytest.mark.slow
@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed")
def test_a_server_that_dies_on_trial_is_named_with_what_stands_and_nothing_private_is_kept(
    rtopt: CommandLine, tmp_path: Path
) -> None:
    canaries = [TOKEN, "canary-user-3b1d", "127.0.0.1", *hosts()]
    home = tmp_path / "canary-user-3b1d"
    home.mkdir()
    (tmp_path / "run.toml").write_text(SHORT)
    overlay = Overlay(token=TOKEN)
    with serving(overlay) as url:
        overlay.dies_with = 8
        process = rtopt.start(
            *("apply", url, "--lever", KNOB, "--rollback", "--config", "run.toml"),
            RTOPT_TOKEN=TOKEN,
            HOME=str(home),
            USER="canary-user-3b1d",
        )
        done = ended(process, timeout_s=240)
    line = done.err.splitlines()[-1]
    assert "Traceback" not in done.err
    assert done.code == 5, done.err
    assert "max_num_active_seqs=4" in line
    assert TOKEN not in done.err + done.out
    (run,) = (rtopt.state / "runs").iterdir()
    assert rtopt("report", run.name).code == 0
    for file in run.iterdir():
        if file.name in ("server.json", "journal.jsonl"):
            continue  # for undo and resume: where the server is
        text = text_of(file)
        for canary in canaries:
            assert not re.search(rf"(?<![\w.]){re.escape(canary)}(?![\w.])", text), file.name
    assert TOKEN not in "".join(text_of(file) for file in run.iterdir())


def hosts() -> list[str]:
    name = socket.gethostname()
    return [name] if name not in ("", "localhost") else []


def text_of(file: Path) -> str:
    data = file.read_bytes()
    return (gzip.decompress(data) if file.suffix == ".gz" else data).decode()
