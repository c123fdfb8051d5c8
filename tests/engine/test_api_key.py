"""A server with an API key: reading needs a token too."""

from contextlib import closing
from pathlib import Path

import httpx
import pytest

from rtopt.engines import connect
from rtopt.engines.client import ask, open_client
from rtopt.engines.secret import find_token
from rtopt.engines.vllm_process import VllmProcess
from rtopt.errors import EngineError


def test_reads_need_the_token(guarded: VllmProcess) -> None:
    for path in ("state", "trace?seconds=1"):
        refused = httpx.get(f"{guarded.url}/rtopt/{path}")
        assert refused.status_code == 401
        assert set(refused.json()) == {"error"}, "nothing about the engine leaks"
        allowed = httpx.get(
            f"{guarded.url}/rtopt/{path}",
            headers={"x-rtopt-token": find_token(guarded.url) or ""},
            timeout=30,
        )
        assert allowed.status_code == 200


def test_a_controller_with_the_token_sees_the_knobs(guarded: VllmProcess) -> None:
    with closing(connect(guarded.url)) as engine:
        assert engine.state().knobs


def test_a_controller_without_the_token_is_told_so(guarded: VllmProcess, tmp_path: Path) -> None:
    wrong = tmp_path / "token"
    wrong.write_text("wrong")
    with pytest.raises(EngineError, match="x-rtopt-token header is missing or wrong"):
        connect(guarded.url, token_file=wrong)


def test_the_api_key_opens_the_list_of_models(
    guarded: VllmProcess, api_key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_client(guarded.url) as client:
        assert ask(client, "/v1/models").status == 401
        monkeypatch.setenv("RTOPT_API_KEY", api_key)
        assert ask(client, "/v1/models").status == 200


def test_neither_secret_is_in_the_log(guarded: VllmProcess, api_key: str) -> None:
    token = find_token(guarded.url)
    assert guarded.log is not None
    text = guarded.log.read_text(encoding="utf-8", errors="replace")
    assert token
    assert token not in text
    assert api_key not in text
