"""One case and what became of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from tests.cases.comparison import TOLERANCE, differences


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an adapter made of a case."""

    expected: Mapping[str, object]
    """The part of the case's `expected` that is compared, in the product's names."""
    got: Mapping[str, object]


Adapter = Callable[[Mapping[str, object], Mapping[str, object]], Answer | str]
"""From a case's input and expected to an answer, or the reason why there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One line of the runner's output."""

    id: str
    kind: str
    status: Literal["pass", "fail", "unsupported"]
    reason: str
    expected: Mapping[str, object]
    got: Mapping[str, object]


def run(case: Mapping[str, object], adapters: Mapping[str, Adapter]) -> Outcome:
    """Ask the product and compare; a case with nothing to compare is unsupported, not a pass."""
    kind, ident = str(case["kind"]), str(case["id"])
    given, expected = case["input"], case["expected"]
    assert isinstance(given, Mapping)
    assert isinstance(expected, Mapping)
    tolerance = case.get("tolerance", TOLERANCE)
    assert isinstance(tolerance, int | float)
    adapter = adapters.get(kind)
    answer = adapter(given, expected) if adapter else "no adapter for this kind"
    if isinstance(answer, Answer) and not answer.expected:
        answer = "nothing in it is compared"
    if isinstance(answer, str):
        return Outcome(
            id=ident, kind=kind, status="unsupported", reason=answer, expected=expected, got={}
        )
    wrong = differences(answer.expected, answer.got, tolerance)
    return Outcome(
        id=ident,
        kind=kind,
        status="fail" if wrong else "pass",
        reason=f"differs: {', '.join(wrong)}" if wrong else "",
        expected=answer.expected,
        got=answer.got,
    )
