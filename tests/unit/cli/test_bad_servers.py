"""Servers that are not what was hoped for: one line, the right exit code, nothing changed."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.unit.cli.conftest import CommandLine, ended
from tests.unit.cli.fakes import (
    Answer,
    Asked,
    Overlay,
    as_json,
    everywhere,
    in_turn,
    nobody,
    plain_vllm,
    serving,
    silence,
)

COMMANDS: dict[str, tuple[str, ...]] = {
    "profile": ("--duration", "1"),
    "apply": ("--lever", "max_num_active_seqs", "--rollback"),
    "tune": (),
    "restore": (),
}
HTML = Answer(body="<html><body>Welcome</body></html>", headers={"content-type": "text/html"})
TOKEN = "canary-token-9f2c"


@contextmanager
def plain_port_by_https() -> Iterator[str]:
    with serving(plain_vllm()) as url:
        yield url.replace("http:", "https:")


def api_without_metrics(asked: Asked) -> Answer:
    """An OpenAI-compatible server of somebody else."""
    if asked.path == "/v1/models":
        return as_json({"data": [{"id": "other"}]})
    return as_json({"detail": "Not Found"}, 404)


Place = Callable[[], AbstractContextManager[str]]
CASES: dict[str, tuple[Place, int, str]] = {
    "a web site": (lambda: serving(everywhere(HTML)), 5, "not a Prometheus page"),
    "another API": (lambda: serving(api_without_metrics), 5, "answered 404, wanted vLLM's metrics"),
    "a 500": (lambda: serving(everywhere(Answer(status=500))), 5, "answered 500, wanted 200"),
    "nobody": (nobody, 5, "nobody listens there"),
    "https on a plain port": (plain_port_by_https, 5, "plain http://"),
    "another JSON-RPC": (
        lambda: serving(everywhere(as_json({"result": {}}))),
        5,
        "not a Prometheus page",
    ),
    "two plain servers in turn": (
        lambda: serving(in_turn(plain_vllm(start_s=1.79e9), plain_vllm(start_s=1.78e9))),
        5,
        "load balancer in front of several servers",
    ),
    "two overlays in turn": (
        lambda: serving(in_turn(Overlay(boot="a"), Overlay(boot="b"))),
        5,
        "load balancer in front of several servers",
    ),
    "an overlay and a plain server in turn": (
        lambda: serving(in_turn(Overlay(), plain_vllm())),
        5,
        "answered 404, not as rtopt's overlay does",
    ),
    "another wire": (lambda: serving(Overlay(wire=99)), 3, "wire 99, this rtopt 1"),
    "reads behind a token": (
        lambda: serving(Overlay(token=TOKEN, guards_reads=True)),
        5,
        "this side has no token",
    ),
    "an overlay of another form": (
        lambda: serving(everywhere(as_json({"result": {"wire": 1, "knobs": "none"}}))),
        5,
        "not as rtopt's overlay answers",
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", CASES)
def test_what_is_no_good_server_gives_one_line_and_its_exit_code(
    rtopt: CommandLine, case: str, command: str
) -> None:
    place, code, text = CASES[case]
    with place() as url:
        done = rtopt(command, url, *COMMANDS[command])
    assert text in done.line()
    assert done.code == code
    assert done.out == ""
    assert not rtopt.state.exists(), "no run is left behind where there is nothing to run on"
    assert not (rtopt.folder / "trace.jsonl.gz").exists()


@pytest.mark.parametrize("case", CASES)
def test_doctor_says_what_is_wrong_with_a_server(rtopt: CommandLine, case: str) -> None:
    place, _, text = CASES[case]
    with place() as url:
        done = rtopt("doctor", url, "--json")
    assert done.code == 1
    assert done.err == ""
    assert text in done.out


@pytest.mark.parametrize("command", [*COMMANDS, "doctor"])
@pytest.mark.parametrize(
    "url",
    ["localhost:8000", "8000", "", "ftp://host:1", "http://", "http://a:port", "http://[::1"],
)
def test_what_is_no_address_is_a_usage_error(rtopt: CommandLine, command: str, url: str) -> None:
    done = rtopt(command, url, *COMMANDS.get(command, ()))
    assert "wanted http://HOST:PORT" in done.line()
    assert done.code == 2


def test_a_redirect_is_named_and_not_followed(rtopt: CommandLine) -> None:
    asked: list[str] = []

    def elsewhere(question: Asked) -> Answer:
        asked.append(question.path)
        return plain_vllm()(question)

    with serving(elsewhere) as target:
        moved = Answer(status=307, headers={"location": f"{target}/metrics"})
        with serving(everywhere(moved)) as url:
            done = rtopt("profile", url, RTOPT_TOKEN=TOKEN)
    assert f"a redirect to {target}/metrics" in done.line()
    assert done.code == 5
    assert asked == []


def test_escapes_and_line_breaks_of_a_server_do_not_reach_the_terminal(rtopt: CommandLine) -> None:
    location = "http://a/\x1b[2J\x9b31m"
    moved = Answer(status=302, headers={"location": location})
    with serving(everywhere(moved)) as url:
        done = rtopt("profile", url)
    assert "\x1b" not in done.line()
    assert "\x9b" not in done.err


@pytest.mark.slow
def test_a_host_that_never_answers_is_given_up_in_time(rtopt: CommandLine) -> None:
    with silence() as url:
        began_s = time.monotonic()
        started = [rtopt.start(name, url, *words) for name, words in COMMANDS.items()]
        for process in started:
            done = ended(process)
            assert "no answer in time" in done.line()
            assert done.code == 5
    assert time.monotonic() - began_s < 40, "10 s for the answer, and the start of four processes"


def test_a_plain_server_can_be_profiled(rtopt: CommandLine) -> None:
    with serving(plain_vllm()) as url:
        done = rtopt("profile", url, "--duration", "0.1")
    assert done.code == 0, done.err
    assert "Recorded through" in done.out
    assert (rtopt.folder / "trace.jsonl.gz").is_file()


@pytest.mark.parametrize("command", ["apply", "tune", "restore"])
def test_a_plain_server_cannot_be_changed_and_the_way_out_is_named(
    rtopt: CommandLine, command: str
) -> None:
    with serving(plain_vllm()) as url:
        done = rtopt(command, url, *COMMANDS[command])
    assert "rtopt serve" in done.line()
    assert done.code == 5


def test_without_consent_a_plain_server_has_no_plan_either(rtopt: CommandLine) -> None:
    with serving(plain_vllm()) as url:
        done = rtopt("apply", url, "--lever", "max_num_active_seqs")
    assert "rtopt serve" in done.line()
    assert done.code == 5


def test_a_server_without_a_token_is_read_only(rtopt: CommandLine) -> None:
    with serving(Overlay(token=None)) as url:
        assert rtopt("profile", url, "--duration", "1").code == 0
        for command in ("apply", "tune", "restore"):
            done = rtopt(command, url, *COMMANDS[command], RTOPT_TOKEN=TOKEN)
            assert "no token is configured on the server" in done.line()
            assert done.code == 5


@pytest.mark.parametrize(
    ("env", "text"),
    [({}, "this side has no token"), ({"RTOPT_TOKEN": "wrong-5e1d"}, "is not its")],
)
@pytest.mark.parametrize("command", ["apply", "tune", "restore"])
def test_a_token_that_is_missing_or_wrong_is_found_out_before_anything_is_recorded(
    rtopt: CommandLine, command: str, env: dict[str, str], text: str
) -> None:
    overlay = Overlay(token=TOKEN)
    with serving(overlay) as url:
        done = rtopt(command, url, *COMMANDS[command], **env)
    assert text in done.line()
    assert done.code == 5
    assert "wrong-5e1d" not in done.err
    assert "GET /rtopt/trace" not in overlay.asked
    assert overlay.value == overlay.start


@pytest.mark.parametrize(
    ("content", "text"),
    [(b"", "empty"), (b"a\nb", "printable ASCII"), (b"\xff\xfe", "not text"), (None, "No such")],
)
def test_a_bad_token_file_is_a_usage_error_that_does_not_quote_it(
    rtopt: CommandLine, tmp_path: Path, content: bytes | None, text: str
) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    overlay = Overlay(token=TOKEN)
    with serving(overlay) as url:
        done = rtopt("restore", url, "--token-file", "token")
    assert text in done.line()
    assert done.code == 2
    assert not any(line.startswith("POST") for line in overlay.asked)


@pytest.mark.parametrize("command", ["apply", "tune", "restore"])
def test_an_engine_that_somebody_holds_is_left_alone(rtopt: CommandLine, command: str) -> None:
    overlay = Overlay(token=TOKEN, value=9, held_by="somebody")
    with serving(overlay) as url:
        done = rtopt(command, url, *COMMANDS[command], RTOPT_TOKEN=TOKEN)
    assert "held by somebody" in done.line()
    assert done.code == 8
    assert overlay.value == 9


def test_restore_with_force_takes_it_from_whoever_holds_it(rtopt: CommandLine) -> None:
    overlay = Overlay(token=TOKEN, value=9, snapshot=6, held_by="somebody")
    with serving(overlay) as url:
        done = rtopt("restore", url, "--force", RTOPT_TOKEN=TOKEN)
    assert done.code == 0, done.err
    assert re.search("start-up values.*max_num_active_seqs=4", done.out)
    assert overlay.value == overlay.snapshot == 4


def test_a_password_in_the_address_is_in_no_message_and_no_file(rtopt: CommandLine) -> None:
    with serving(Overlay(wire=2)) as url, nobody() as closed:
        for place in (url, closed, "http://host:port"):
            secret = place.replace("//", "//me:hunter2@")
            done = rtopt("profile", secret)
            assert done.code in (2, 3, 5)
            assert "hunter2" not in done.line()
