"""The runner of cases tells right from wrong and from unknown."""

from collections.abc import Mapping

import pytest

from tests.cases.case import Answer, run
from tests.cases.comparison import is_same


def blocks(given: Mapping[str, object], expected: Mapping[str, object]) -> Answer:
    return Answer(expected=expected, got={"num_gpu_blocks": given["blocks"]})


def case(**expected: object) -> dict[str, object]:
    return {"id": "A", "kind": "blocks", "input": {"blocks": 1000}, "expected": expected}


def test_the_right_answer_passes() -> None:
    assert run(case(num_gpu_blocks=1004), {"blocks": blocks}).status == "pass"


def test_a_wrong_expectation_fails_and_is_named() -> None:
    outcome = run(case(num_gpu_blocks=1010), {"blocks": blocks})
    assert (outcome.status, outcome.reason) == ("fail", "differs: num_gpu_blocks")


def test_an_absent_answer_is_not_a_null() -> None:
    assert run(case(starts=None), {"blocks": blocks}).status == "fail"


def test_a_kind_without_an_adapter_is_unsupported() -> None:
    assert run(case(num_gpu_blocks=1000), {}).status == "unsupported"


def test_a_case_with_nothing_to_compare_is_no_pass() -> None:
    assert run(case(), {"blocks": blocks}).status == "unsupported"


@pytest.mark.parametrize(
    ("expected", "got"),
    [(0, 0.001), (1, True), (None, 0), ([1.0, None], [1.0]), ("a", ["a"]), (1.0, float("nan"))],
)
def test_things_that_differ_are_not_the_same(expected: object, got: object) -> None:
    assert not is_same(expected, got)


def test_lists_compare_element_by_element() -> None:
    assert is_same([1000.0, None, True], (1001.0, None, True))
