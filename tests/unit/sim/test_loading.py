"""Importing vLLM must not leave anything behind in this process."""

import os

import pytest

from rtopt.sim.loading import borrowed_environment


def _import_that_fails() -> None:
    with borrowed_environment():
        assert os.environ["HF_HUB_OFFLINE"] == "1"
        assert os.environ["VLLM_LOGGING_LEVEL"] == "DEBUG"
        os.environ["LD_PRELOAD"] = "something"
        os.environ.pop("PATH")
        raise ImportError("no such library")


def test_the_environment_is_put_back_also_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_LOGGING_LEVEL", "DEBUG")
    before = dict(os.environ)

    with pytest.raises(ImportError, match="no such library"):
        _import_that_fails()

    assert dict(os.environ) == before
