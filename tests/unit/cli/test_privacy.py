"""No secret, host or user name in what `profile` writes or any command says."""

import gzip
from pathlib import Path

import pytest

from tests.unit.cli.conftest import CommandLine
from tests.unit.cli.fakes import Overlay, Site, plain_vllm, serving

TOKEN = "canary-token-9f2c"
USER = "canary-user-3b1d"


@pytest.mark.parametrize("site", [Overlay(token=TOKEN, guards_reads=True), plain_vllm()])
def test_a_recording_names_neither_token_nor_host_nor_user(
    rtopt: CommandLine, tmp_path: Path, site: Site
) -> None:
    home = tmp_path / USER
    home.mkdir()
    (home / "token").write_text(TOKEN)
    with serving(site) as url:
        done = rtopt(
            *("profile", url, "--duration", "0.2", "-o", str(home / "t.jsonl.gz")),
            *("--token-file", str(home / "token")),
            HOME=str(home),
            USER=USER,
            LOGNAME=USER,
        )
    assert done.code == 0, done.err
    text = gzip.decompress((home / "t.jsonl.gz").read_bytes()).decode()
    for canary in (TOKEN, USER, "127.0.0.1", url.rpartition(":")[2] + '"'):
        assert canary not in text
    assert TOKEN not in done.out + done.err


@pytest.mark.parametrize("command", ["profile", "restore"])
def test_a_token_that_is_not_taken_is_not_quoted(rtopt: CommandLine, command: str) -> None:
    with serving(Overlay(token="another", guards_reads=True)) as url:
        done = rtopt(command, url, RTOPT_TOKEN=TOKEN)
    assert "is not its" in done.line()
    assert done.code == 5
    assert TOKEN not in done.err
