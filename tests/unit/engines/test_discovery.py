"""Servers are told apart from what merely speaks of them, and no argument is kept."""

import shlex
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtopt.engines.discovery import address_of, find_servers, is_server, option

SECRET = "canary-key-77"


@pytest.mark.parametrize(
    "line",
    [
        "/usr/bin/python3 /usr/local/bin/vllm serve meta/model --port 9",
        "python3.12 -m vllm.entrypoints.cli.main serve model",
        "python -u -m vllm.entrypoints.openai.api_server --model m",
        "/opt/bin/vllm serve m",
        "/opt/bin/vllm-rs serve m",
    ],
)
def test_a_server_is_found_by_its_command(line: str) -> None:
    assert is_server(shlex.split(line))


@pytest.mark.parametrize(
    "line",
    [
        "",
        "bash -c 'vllm serve m'",
        "timeout 60 vllm serve m",
        "vim vllm serve",
        "python -m vllm.entrypoints.cli.main bench serve",
        "python tools/serve.py serve",
        "vllm chat",
        "grep vllm serve",
    ],
)
def test_what_is_around_or_beside_a_server_is_none(line: str) -> None:
    assert not is_server(shlex.split(line))


@given(st.lists(st.text()))
def test_no_command_line_is_too_odd(words: list[str]) -> None:
    assert is_server(words) in (True, False)
    assert option(words, "--port") is None or any(w.startswith("--port") for w in words)
    assert address_of(words, []) is None


@pytest.mark.parametrize(
    ("flags", "listening", "url"),
    [
        ("", [("127.0.0.1", 8000)], "http://127.0.0.1:8000"),
        ("--port 9", [("127.0.0.1", 55), ("0.0.0.0", 9)], "http://127.0.0.1:9"),
        ("--port=9", [("::", 9)], "http://[::1]:9"),
        ("--port 9 --ssl-certfile c", [("10.0.0.5", 9)], "https://10.0.0.5:9"),
        ("--port 9", [("127.0.0.1", 8000)], None),
    ],
)
def test_the_address_is_the_one_it_listens_on(
    flags: str, listening: list[tuple[str, int]], url: str | None
) -> None:
    assert address_of(["vllm", "serve", *flags.split()], listening) == url


def test_a_running_server_is_found_and_its_secrets_are_not_kept(tmp_path: Path) -> None:
    script = tmp_path / "vllm"
    script.write_text(
        "import socket, sys, time\n"
        "taken = socket.create_server(('127.0.0.1', 0))\n"
        "print(taken.getsockname()[1], flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, str(script), "serve", "m", "--api-key", SECRET]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            (found,) = [s for s in find_servers() if s.pid == child.pid]
        finally:
            child.kill()
    assert found.url is None, "it listens on another port than its command says"
    assert found.reason == "it does not listen yet on its port"
    assert SECRET not in repr(asdict(found))
    until = time.monotonic() + 5
    while any(s.pid == child.pid for s in find_servers()):
        assert time.monotonic() < until
