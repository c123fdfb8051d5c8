"""A server on which every start-up hook of the overlay fails: it serves, and looks plain."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from rtopt.engines import connect
from rtopt.engines.vllm_metrics import MetricsEngine
from rtopt.engines.vllm_process import VllmProcess
from tests.engine.command import rtopt

HOOKS = ("install", "recorder_init", "log_engine_initialized", "attach_router", "init_state")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, state_home: Path) -> Iterator[VllmProcess]:
    log = tmp_path_factory.mktemp("plain") / "vllm.log"
    broken = {"RTOPT_OVERLAY_FAIL": ",".join(HOOKS)}
    with VllmProcess(flags=("--enforce-eager",), log=log, extra_env=broken) as process:
        yield process


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_that_fails_at_start_up_is_logged_once_and_the_server_serves(
    hook: str, plain: VllmProcess
) -> None:
    body = {"model": "SmolLM2-135M-Instruct", "prompt": "Hello", "max_tokens": 2}
    answer = httpx.post(f"{plain.url}/v1/completions", json=body, timeout=120)
    assert answer.status_code == 200
    assert plain.log is not None
    text = plain.log.read_text(encoding="utf-8")
    assert f"rtopt overlay: {hook} failed (InjectedError)" in text


def test_a_server_without_the_overlay_is_recorded_by_its_metrics(
    plain: VllmProcess, tmp_path: Path
) -> None:
    with closing(connect(plain.url)) as engine:
        assert isinstance(engine, MetricsEngine)
    out = tmp_path / "plain.jsonl"
    done = rtopt("profile", plain.url, "-o", str(out), "--duration", "3", "--json")
    assert done.returncode == 0, done.stderr
    header = json.loads(done.stdout)["header"]
    assert header["source"] == "metrics"
    assert header["engine"]["model"] == "SmolLM2-135M-Instruct"
    assert out.read_text().count('"kind":"sample"') >= 3 or out.read_text().count("sample") >= 3


def test_predict_and_apply_refuse_without_the_overlay_and_say_how_to_get_it(
    plain: VllmProcess, tmp_path: Path
) -> None:
    out = tmp_path / "plain.jsonl"
    rtopt("profile", plain.url, "-o", str(out), "--duration", "2")
    predicted = rtopt("predict", str(out))
    assert predicted.returncode == 6
    assert "overlay" in predicted.stderr
    assert len([x for x in predicted.stderr.splitlines() if x.startswith("rtopt: ")]) == 1
    applied = rtopt("apply", plain.url, "--lever", "max_num_active_seqs", "--rollback")
    assert applied.returncode == 5
    assert "overlay" in applied.stderr
    assert rtopt("restore", plain.url).returncode == 5
