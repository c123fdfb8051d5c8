"""Ten lines for a person."""

from collections.abc import Callable

import pytest

from rtopt.attribute import describe, rank
from rtopt.types import Attribution, Deviation, Trace

Serve = Callable[..., Trace]


def test_a_named_cause_comes_first_with_its_numbers(serve: Serve) -> None:
    text = describe(rank(serve(slots=4, clients=16), Deviation()))
    first, second = text.splitlines()[:2]
    assert first == "Every slot is taken: 100%."
    assert second.startswith("  for: every one of the 4 slots was taken while requests waited")
    assert "12 requests waited on average" in second


def test_an_abstention_says_why() -> None:
    text = describe(Attribution(method="rules", abstained="12 steps in 60 s, at least 50 wanted"))
    assert text == "No cause is named: 12 steps in 60 s, at least 50 wanted."


@pytest.mark.parametrize(
    "faults",
    [
        {"rate": 1.6, "prompt": (32, 3000), "prefill_token_ms": 0.3, "slots": 4},
        {"kv_tokens": 1500.0, "rate": 12.0, "slots": 16, "gap_ms": 20.0},
        {"rate": 0.05},
    ],
)
def test_it_never_exceeds_ten_lines(serve: Serve, faults: dict[str, float]) -> None:
    assert len(describe(rank(serve(**faults), Deviation())).splitlines()) <= 10
