import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtopt.profile.events.folder import folder_of, profiler_dir

CONFIG = json.dumps({"profiler": "torch", "torch_profiler_dir": "/traces"})


@pytest.mark.parametrize(
    "words",
    [
        ["vllm", "serve", "m", "--profiler-config", CONFIG],
        ["vllm", "serve", "m", f"--profiler-config={CONFIG}", "--port", "1"],
        ["vllm", "serve", "m", "--profiler-config.torch_profiler_dir", "/traces"],
        ["vllm", "serve", "m", "--profiler-config.torch_profiler_dir=/traces"],
    ],
)
def test_each_form_of_the_flag_names_the_folder(words: list[str]) -> None:
    assert profiler_dir(words) == Path("/traces")


@pytest.mark.parametrize(
    "words",
    [
        ["vllm", "serve", "m"],
        ["vllm", "--profiler-config"],
        ["vllm", "--profiler-config", "{"],
        ["vllm", "--profiler-config", "[]"],
        ["vllm", "--profiler-config", '{"torch_profiler_dir": 3}'],
        ["vllm", "--profiler-config", '{"torch_profiler_dir": "s3://bucket"}'],
        ["vllm", "--profiler-config", '{"torch_profiler_dir": "relative"}'],
    ],
)
def test_what_names_no_folder_of_this_machine_gives_none(words: list[str]) -> None:
    assert profiler_dir(words) is None


@given(st.lists(st.one_of(st.text(), st.sampled_from(["--profiler-config", CONFIG]))))
def test_any_command_line_gives_an_absolute_folder_or_none(words: list[str]) -> None:
    found = profiler_dir(words)
    assert found is None or found.is_absolute()


def test_the_folder_is_that_of_the_process_that_listens() -> None:
    listen = (
        "import socket, sys; s = socket.create_server(('127.0.0.1', 0));"
        "print(s.getsockname()[1], flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", listen, "--profiler-config", CONFIG],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        port = int(child.stdout.readline())
        try:
            assert folder_of(f"http://127.0.0.1:{port}") == Path("/traces")
            with socket.create_server(("127.0.0.1", 0)) as other:
                assert folder_of(f"http://127.0.0.1:{other.getsockname()[1]}") is None
            assert folder_of(f"http://elsewhere:{port}") is None
        finally:
            child.communicate()
