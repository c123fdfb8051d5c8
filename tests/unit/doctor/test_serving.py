"""A server found on this machine: what it shows, what moves, and the restart that gives more."""

import pytest

from rtopt.doctor.check import Check
from rtopt.doctor.serving import local_server
from rtopt.engines.discovery import FoundServer
from tests.unit.cli.fakes import Answer, Asked, Overlay, as_json, plain_vllm, refuse, serving

REFUSAL = "this server has several data-parallel engines, which rtopt does not handle yet."


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RTOPT_TOKEN", "t0ken")


def look(url: str | None, **facts: object) -> dict[str, Check]:
    found = FoundServer(pid=7, url=url, **facts)  # type: ignore[arg-type]  # the test's own words
    return {check.name.removeprefix("server pid 7").strip(): check for check in local_server(found)}


def test_a_server_with_the_overlay_shows_steps_and_moves_its_knobs() -> None:
    with serving(Overlay(token="t0ken")) as url:
        checks = look(url, has_profiler=True)
    assert checks["sees"].is_ok
    assert checks["sees"].fix == ""
    assert checks["moves"].found == "max_num_active_seqs"
    assert "events" not in checks


def test_a_server_without_the_overlay_is_told_the_restart_that_keeps_its_plug_ins() -> None:
    with serving(plain_vllm()) as url:
        checks = look(url, plugins="mine")
    assert "VLLM_PLUGINS=mine,rtopt " in checks["sees"].fix
    assert "(the command of pid 7)" in checks["sees"].fix
    assert "without rtopt's overlay" in checks["moves"].found
    assert "--profiler-config" in checks["events"].fix


def test_several_engines_are_read_by_the_metrics_page_and_not_moved() -> None:
    def site(asked: Asked) -> Answer:
        if asked.path == "/rtopt/state":
            return refuse("unavailable", REFUSAL)
        return plain_vllm()(asked)

    with serving(site) as url:
        checks = look(url, api_servers=2)
    assert checks["sees"].found == "the metrics page"
    assert "several data-parallel engines" in checks["moves"].found
    assert checks["sees"].fix.endswith("--api-server-count 1")


def test_the_rust_front_end_is_read_and_refused_by_name() -> None:
    with serving(plain_vllm()) as url:
        checks = look(url, front_end="rust")
    assert "Rust" in checks["moves"].found
    assert not checks["moves"].is_ok


def test_an_engine_that_is_not_handled_yet_is_not_moved() -> None:
    def site(asked: Asked) -> Answer:
        if asked.path == "/v1/models":
            return as_json({"data": [{"id": "smol"}, {"id": "mine", "parent": "smol"}]})
        return overlay(asked)

    overlay = Overlay(token="t0ken")
    with serving(site) as url:
        checks = look(url)
    assert "LoRA adapters" in checks["moves"].found


def test_a_server_that_cannot_be_asked_says_why() -> None:
    assert "another user" in look(None, reason="it belongs to another user")[""].found
