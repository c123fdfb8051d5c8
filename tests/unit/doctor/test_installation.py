"""Every known trap is recognised where it is set, comes with its fix, and is silent elsewhere."""

from pathlib import Path

import pytest

from rtopt.doctor.installation import autogroup_trap, numpy_trap, plugins_trap

NUMBA = ["numpy>=1.22", "numpy<2.4,>=1.22"]


def test_a_numpy_that_numba_refuses_is_named_with_one_command() -> None:
    (check,) = numpy_trap("2.4.1", NUMBA)
    assert check.is_missing
    assert check.fix == "pip install 'numpy<2.4'"


@pytest.mark.parametrize("numpy", ["2.3.5", "1.26.4", None])
def test_a_numpy_that_fits_or_is_not_there_is_no_trap(numpy: str | None) -> None:
    assert list(numpy_trap(numpy, NUMBA)) == []


def test_an_allow_list_without_rtopt_keeps_what_is_on_it() -> None:
    (check,) = plugins_trap({"VLLM_PLUGINS": "mine"})
    assert check.fix == "export VLLM_PLUGINS=mine,rtopt"


@pytest.mark.parametrize("environment", [{}, {"VLLM_PLUGINS": "mine,rtopt"}])
def test_no_allow_list_or_one_with_rtopt_is_no_trap(environment: dict[str, str]) -> None:
    assert list(plugins_trap(environment)) == []


@pytest.mark.parametrize(("text", "traps"), [("1\n", 1), ("0\n", 0), (None, 0)])
def test_autogroup_is_a_trap_where_it_is_on(tmp_path: Path, text: str | None, traps: int) -> None:
    switch = tmp_path / "sched_autogroup_enabled"
    if text is not None:
        switch.write_text(text)
    assert len(list(autogroup_trap(switch))) == traps
