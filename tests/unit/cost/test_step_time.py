"""The line of a step's time, and the work it is applied to."""

import pytest

from rtopt.cost import StepLoad, StepTime, load_of
from rtopt.storage import from_json, to_json
from rtopt.types import Step

LINE = StepTime(base_ms=40, decode_ms=1.5, prefill_token_ms=0.25, prefill_request_ms=4)


def test_each_kind_of_work_adds_its_share() -> None:
    load = StepLoad(prefill_requests=2, prefill_tokens=100, decode_requests=10)

    assert LINE.mean_ms(load) == pytest.approx(40 + 15 + 25 + 8)


def test_tokens_of_a_preempted_request_count_as_prompt_tokens_again() -> None:
    step = Step(
        t_ns=0, prefill_requests=1, prefill_tokens=10, decode_requests=3, decode_tokens=3 + 70
    )

    assert load_of(step) == StepLoad(prefill_requests=1, prefill_tokens=80, decode_requests=3)


def test_a_step_that_does_not_say_its_work_has_no_load() -> None:
    assert load_of(Step(t_ns=0, running=3)) is None


def test_intervals_span_the_draws() -> None:
    draws = tuple((40.0 + i, 1.0, 0.1, 2.0) for i in range(101))
    line = StepTime(base_ms=90, decode_ms=1, prefill_token_ms=0.1, draws=draws)

    intervals = line.intervals(0.9)

    assert intervals is not None
    assert (intervals[0].low, intervals[0].high) == (45.0, 135.0)
    assert LINE.intervals(0.9) is None


def test_a_step_time_survives_a_file() -> None:
    assert from_json(StepTime, to_json(LINE), where="here") == LINE
