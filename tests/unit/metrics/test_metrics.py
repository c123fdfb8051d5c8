from collections.abc import Mapping
from typing import Any, Literal

import pytest

from rtopt.errors import UsageError
from rtopt.metrics import METRICS, cut, get, measure
from rtopt.types import (
    Clock,
    End,
    EngineInfo,
    Header,
    InFlight,
    Machine,
    Mark,
    Request,
    Sample,
    Step,
    Trace,
)

S = 10**9


def make_trace(
    source: Literal["overlay", "metrics"] = "overlay",
    dropped: Mapping[str, int] | None = None,
    reason: str = "duration",
    **parts: Any,
) -> Trace:
    """A trace over ten seconds."""
    header = Header(
        source=source,
        engine=EngineInfo(name="vllm", version="0.32.0", model="m"),
        machine=Machine(cpu="test", num_cpus=2),
        clock=Clock(mono_ns=0, unix_ns=10**18),
        start_ns=0,
        knobs={"max_num_active_seqs": 4},
    )
    clock = Clock(mono_ns=10 * S, unix_ns=10**18 + 10 * S)
    end = End(end_ns=10 * S, clock=clock, dropped=dropped or {}, reason=reason)
    return Trace(header=header, end=end, **parts)


def a_step(t_s: float, **fields: object) -> Step:
    return Step(t_ns=int(t_s * S), **fields)  # type: ignore[arg-type] # any field of a Step


def a_request(t_s: float, e2e_ms: float = 100.0, finish: str = "stop") -> Request:
    return Request(
        id=str(t_s),
        arrival_ns=0,
        finished_ns=int(t_s * S),
        prompt_tokens=3,
        output_tokens=5,
        e2e_ms=e2e_ms,
        finish=finish,
    )


def test_every_metric_stands_in_the_table_under_its_id() -> None:
    assert all(metric.id == name for name, metric in METRICS.items())
    assert len(METRICS) == 19


def test_an_unknown_metric_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"'itl'.*throughput.*errors"):
        get("itl")


def test_a_trace_without_data_measures_nothing() -> None:
    assert measure(make_trace()) == {}


def test_throughput_is_output_tokens_over_the_window() -> None:
    steps = tuple(a_step(t, output_tokens=8, prefill_tokens=2) for t in (1, 2, 3, 4, 5))
    measured = measure(make_trace(steps=steps))
    assert measured["throughput"] == pytest.approx(4.0)
    assert measured["prompt_throughput"] == pytest.approx(1.0)


def test_a_step_that_did_not_say_its_tokens_leaves_no_throughput() -> None:
    steps = (a_step(1, output_tokens=8), a_step(2))
    assert "throughput" not in measure(make_trace(steps=steps))


@pytest.mark.parametrize("kind", ["step", "lines"])
def test_lost_steps_leave_no_throughput(kind: str) -> None:
    steps = (a_step(1, output_tokens=8, itl_ms=(5.0,)),)
    measured = measure(make_trace(steps=steps, dropped={kind: 1}))
    assert "throughput" not in measured
    assert measured["itl_mean"] == 5.0


def test_a_window_that_the_size_cap_ended_has_a_throughput() -> None:
    trace = make_trace(steps=(a_step(1, output_tokens=8),), dropped={"step": 9}, reason="size")
    assert measure(trace)["throughput"] == pytest.approx(0.8)


def test_itl_weighs_every_token_the_same() -> None:
    steps = (a_step(1, itl_ms=(10.0, 10.0, 10.0)), a_step(2, itl_ms=(50.0,)))
    measured = measure(make_trace(steps=steps))
    assert measured["itl_mean"] == pytest.approx(20.0)
    assert measured["itl_p50"] == pytest.approx(10.0)
    assert measured["itl_p99"] == pytest.approx(50.0 - 0.03 * 40.0)


def test_aborted_and_failed_requests_count_in_no_rate_and_no_latency() -> None:
    requests = (
        a_request(1, 100.0),
        a_request(2, 200.0, "length"),
        a_request(3, 1.0, "abort"),
        a_request(4, 1.0, "error"),
    )
    measured = measure(make_trace(requests=requests))
    assert measured["request_rate"] == pytest.approx(0.2)
    assert measured["e2e_mean"] == pytest.approx(150.0)
    assert measured["errors"] == 1.0


def test_fullness_is_weighed_by_time_not_by_steps() -> None:
    steps = (a_step(0, running=2, waiting=4, kv_frac=0.5), a_step(8, running=12, waiting=0))
    measured = measure(make_trace(steps=steps))
    assert measured["running_mean"] == pytest.approx((8 * 2 + 2 * 12) / 10)
    assert measured["waiting_mean"] == pytest.approx(3.2)
    assert measured["kv_mean"] == pytest.approx(0.5)


def test_engines_add_up_in_counts_and_average_in_shares() -> None:
    steps = (
        a_step(1, engine=0, running=2, kv_frac=0.2),
        a_step(1, engine=1, running=3, kv_frac=0.4),
    )
    measured = measure(make_trace(steps=steps))
    assert measured["running_mean"] == pytest.approx(5.0)
    assert measured["kv_mean"] == pytest.approx(0.3)


def test_zero_preemptions_are_a_measurement_and_unknown_ones_are_not() -> None:
    assert measure(make_trace(steps=(a_step(1, preempted=0),)))["preemptions"] == 0.0
    assert "preemptions" not in measure(make_trace(steps=(a_step(1),)))


def test_counters_of_a_metrics_page_give_rates_between_the_samples() -> None:
    first = {
        "vllm:generation_tokens_total": 100.0,
        "vllm:num_requests_running": 2.0,
        "vllm:time_to_first_token_seconds_sum": 1.0,
        "vllm:time_to_first_token_seconds_count": 10.0,
        'vllm:time_to_first_token_seconds_bucket{le="0.1"}': 8.0,
        'vllm:time_to_first_token_seconds_bucket{le="0.2"}': 10.0,
        'vllm:time_to_first_token_seconds_bucket{le="+Inf"}': 10.0,
    }
    last = {
        "vllm:generation_tokens_total": 180.0,
        "vllm:num_requests_running": 4.0,
        "vllm:time_to_first_token_seconds_sum": 2.5,
        "vllm:time_to_first_token_seconds_count": 20.0,
        'vllm:time_to_first_token_seconds_bucket{le="0.1"}': 13.0,
        'vllm:time_to_first_token_seconds_bucket{le="0.2"}': 19.0,
        'vllm:time_to_first_token_seconds_bucket{le="+Inf"}': 20.0,
    }
    samples = (
        Sample(t_ns=1 * S, source="metrics", values=first),
        Sample(t_ns=2 * S, source="cpu", values={"util_frac": 0.5}),
        Sample(t_ns=5 * S, source="metrics", values=last),
    )
    measured = measure(make_trace("metrics", samples=samples))
    assert measured["throughput"] == pytest.approx(20.0)
    assert measured["running_mean"] == pytest.approx(3.0)
    assert measured["ttft_mean"] == pytest.approx(150.0)
    # Buckets grew by 5, 4 and 1: the median is the 5th of 10, the end of the first bucket.
    assert measured["ttft_p50"] == pytest.approx(100.0)
    assert "ttft_p99" not in measured, "it lies in the unbounded bucket"


@pytest.mark.parametrize(("has_cached", "expected"), [(True, 15.0), (False, None)])
def test_cached_prompt_tokens_were_not_computed(has_cached: bool, expected: float | None) -> None:
    samples = tuple(
        Sample(
            t_ns=t * S,
            source="metrics",
            values={"vllm:prompt_tokens_total": 20.0 * t}
            | ({"vllm:prompt_tokens_cached_total": 5.0 * t} if has_cached else {}),
        )
        for t in (1, 5)
    )
    assert measure(make_trace("metrics", samples=samples)).get("prompt_throughput") == expected


def test_a_counter_that_fell_gives_nothing() -> None:
    samples = tuple(
        Sample(t_ns=t * S, source="metrics", values={"vllm:generation_tokens_total": float(v)})
        for t, v in ((1, 100), (2, 5), (3, 300))
    )
    assert "throughput" not in measure(make_trace("metrics", samples=samples))


def test_a_cut_keeps_what_lies_after_its_start_and_up_to_its_end() -> None:
    trace = make_trace(
        steps=tuple(a_step(t, output_tokens=1) for t in range(1, 10)),
        requests=(a_request(2), a_request(4), a_request(6)),
        samples=(Sample(t_ns=5 * S, source="cpu", values={}),),
    )
    part = cut(trace, 2 * S, 4 * S)
    assert [step.t_ns // S for step in part.steps] == [3, 4]
    assert [request.finished_ns // S for request in part.requests] == [4]
    assert part.samples == ()
    assert measure(part)["throughput"] == pytest.approx(1.0)


def test_a_cut_starts_with_the_knobs_that_stood_there() -> None:
    marks = (
        Mark(t_ns=3 * S, what="set", by="a", knobs={"max_num_active_seqs": 8}),
        Mark(t_ns=6 * S, what="restore", by="a", knobs={"max_num_active_seqs": 4}),
    )
    part = cut(make_trace(marks=marks), 5 * S, 10 * S)
    assert part.header.knobs == {"max_num_active_seqs": 8}
    assert part.marks == marks[1:]


def test_a_cut_keeps_requests_in_flight_only_at_edges_that_it_shares() -> None:
    items = tuple(
        InFlight(edge=edge, id="a", prompt_tokens=1, computed_tokens=1, output_tokens=0)
        for edge in ("start", "end")
    )
    trace = make_trace(in_flight=items)
    assert cut(trace, -5, 10 * S).in_flight == items
    assert cut(trace, 1, 10 * S).in_flight == items[1:]


def test_a_cut_beside_the_trace_is_an_error() -> None:
    with pytest.raises(UsageError, match="nothing lies between"):
        cut(make_trace(), 11 * S, 12 * S)
