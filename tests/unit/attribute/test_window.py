"""Where the busy time lies."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from rtopt.attribute.window import open_window
from rtopt.errors import EvidenceError
from rtopt.types import Mark, Step, Trace

Serve = Callable[..., Trace]


def _steps(trace: Trace, *steps: Step) -> Trace:
    return replace(trace, steps=steps)


def test_time_with_work_left_belongs_to_the_next_step_and_idle_time_to_none(serve: Serve) -> None:
    base = serve(duration_s=1.0)
    ms = 1_000_000
    t0 = base.start_ns
    trace = _steps(
        base,
        Step(t_ns=t0 + 100 * ms, dur_ns=40 * ms, running=1, waiting=0),
        Step(t_ns=t0 + 160 * ms, dur_ns=40 * ms, running=0, waiting=0),
        Step(t_ns=t0 + 900 * ms, dur_ns=50 * ms, running=0, waiting=0),
    )
    window = open_window(trace)
    assert list(window.wall_N) == pytest.approx([0.04, 0.06, 0.05])
    assert list(window.follows_work_N) == [False, True, False]
    assert window.idle_frac == pytest.approx(0.85)


def test_time_beside_missing_steps_is_a_hole(serve: Serve) -> None:
    base = serve(duration_s=1.0)
    s = 1_000_000_000
    trace = _steps(
        base,
        Step(t_ns=base.start_ns, index=1, dur_ns=s // 10, running=1),
        Step(t_ns=base.start_ns + s // 10, index=2, dur_ns=s // 10, running=1),
        Step(t_ns=base.start_ns + s // 2, index=7, dur_ns=s // 10, running=1),
    )
    assert open_window(trace).hole_s == pytest.approx(0.4)


def test_engines_are_laid_out_one_by_one(serve: Serve) -> None:
    one = serve(duration_s=10.0, clients=8)
    two = replace(one, steps=tuple(replace(s, engine=e) for s in one.steps for e in (0, 1)))
    assert open_window(two).busy_s == pytest.approx(2 * open_window(one).busy_s)
    assert open_window(two).idle_frac == pytest.approx(open_window(one).idle_frac)


def test_limits_follow_the_marks(serve: Serve) -> None:
    base = serve(duration_s=10.0, clients=8, slots=4)
    middle = base.start_ns + 5 * 10**9
    mark = Mark(t_ns=middle, what="set", by="rtopt", knobs={"max_num_active_seqs": 8})
    window = open_window(replace(base, marks=(mark,)))
    assert set(window.slots_N[window.t_N <= 5]) == {4.0}
    assert set(window.slots_N[window.t_N > 5.1]) == {8.0}


def test_a_share_needs_its_inputs(serve: Serve) -> None:
    base = serve(duration_s=10.0, clients=8)
    cut = len(base.steps) // 2
    blind = (*(replace(s, waiting=None) for s in base.steps[:cut]), *base.steps[cut:])
    window = open_window(replace(base, steps=blind))
    with pytest.raises(EvidenceError, match="waiting requests were recorded for"):
        window.mean(window.waiting_N, what="waiting requests were")


@pytest.mark.parametrize("still", ["the window", "the steps"])
def test_what_took_no_time_is_no_evidence(serve: Serve, still: str) -> None:
    base = serve(duration_s=5.0, clients=8)
    if still == "the window":
        trace = replace(base, end=replace(base.end, end_ns=base.start_ns))
    else:
        trace = _steps(base, *(replace(s, t_ns=base.start_ns, dur_ns=0) for s in base.steps))
    with pytest.raises(EvidenceError, match="took no time"):
        open_window(trace)
