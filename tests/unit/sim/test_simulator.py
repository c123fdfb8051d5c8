"""The simulated engine against answers that are known without it."""

from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtopt.cost import StepTime
from rtopt.errors import EvidenceError, KnobError, UnavailableError, UsageError
from rtopt.metrics import measure
from rtopt.sim import Simulator
from rtopt.types import Ask, EngineInfo, InFlight, Load, Trace, Workload

CONSTANT = StepTime(base_ms=50, decode_ms=0, prefill_token_ms=0)
REAL = StepTime(base_ms=41, decode_ms=1.5, prefill_token_ms=0.3, prefill_request_ms=3)


def closed(clients: int, *, prompt: int = 64, output: int = 64, think_ms: float = 0) -> Workload:
    asks = tuple(
        Ask(arrival_ns=i, prompt_tokens=prompt, output_tokens=output) for i in range(clients)
    )
    return Workload(
        load=Load(kind="closed", clients=clients),
        asks=asks,
        duration_ns=10**10,
        think_ns=round(think_ms * 1e6),
    )


def opened(*asks: Ask, duration_s: float = 1e5) -> Workload:
    return Workload(load=Load(kind="open"), asks=asks, duration_ns=round(duration_s * 1e9))


def settled(simulator: Simulator, workload: Workload, duration_s: float) -> Trace:
    simulator.run(workload, 10)
    return simulator.advance(duration_s)


def test_a_closed_loop_with_constant_steps_makes_one_token_per_client_and_step(
    info: EngineInfo,
) -> None:
    trace = settled(Simulator(info, {}, CONSTANT), closed(16), 20)

    metrics = measure(trace)
    assert metrics["throughput"] == pytest.approx(16 / 0.050)
    assert metrics["itl_mean"] == pytest.approx(50)
    assert metrics["e2e_mean"] == pytest.approx(64 * 50)


def test_the_cap_on_active_sequences_bounds_the_batch_and_the_rest_waits(info: EngineInfo) -> None:
    simulator = Simulator(info, {"max_num_active_seqs": 4}, CONSTANT)
    settled(simulator, closed(16), 20)
    trace = simulator.advance(64)

    metrics = measure(trace)
    assert metrics["throughput"] == pytest.approx(4 / 0.050)
    # Little's law: 16 clients, each always in the engine.
    assert metrics["e2e_mean"] == pytest.approx(16 * 64 / 80 * 1e3)
    assert max(step.running or 0 for step in trace.steps) == 4


def test_a_knob_moves_while_requests_run(info: EngineInfo) -> None:
    simulator = Simulator(info, {"max_num_active_seqs": 4}, CONSTANT)
    before = settled(simulator, closed(16), 10)

    simulator.set_knob("max_num_active_seqs", 16)
    simulator.advance(1)
    after = simulator.advance(10)

    assert measure(after)["throughput"] / measure(before)["throughput"] == pytest.approx(4)
    assert after.header.knobs["max_num_active_seqs"] == 16


def test_think_time_leaves_slots_empty(info: EngineInfo) -> None:
    trace = settled(Simulator(info, {}, CONSTANT), closed(8, output=10, think_ms=500), 50)

    # An arrival within a step waits for its end: 10 steps of work, 10 of thinking.
    assert measure(trace)["throughput"] == pytest.approx(8 * 10 / (20 * 0.050), rel=0.05)


def test_prompts_are_cut_by_the_token_budget_and_decoding_goes_on(info: EngineInfo) -> None:
    simulator = Simulator(info, {"max_num_scheduled_tokens": 64}, CONSTANT)
    trace = simulator.run(opened(Ask(arrival_ns=0, prompt_tokens=640, output_tokens=5)), 5)

    tokens = [step.prefill_tokens for step in trace.steps if step.prefill_tokens]
    assert tokens == [64] * 10
    assert [request.output_tokens for request in trace.requests] == [5]
    assert trace.requests[0].prefill_ms == pytest.approx(500)


def test_open_arrivals_keep_their_times(info: EngineInfo) -> None:
    asks = [Ask(arrival_ns=i * 10**9, prompt_tokens=10, output_tokens=2) for i in range(3)]
    trace = Simulator(info, {}, CONSTANT).run(opened(*asks), 5)

    assert [request.arrival_ns for request in trace.requests] == [0, 10**9, 2 * 10**9]
    assert [request.e2e_ms for request in trace.requests] == pytest.approx([100] * 3)
    assert [step.ttft_ms for step in trace.steps if step.ttft_ms] == [(50.0,)] * 3


def test_fresh_prompts_share_nothing_and_cached_tokens_are_found(info: EngineInfo) -> None:
    fresh = Simulator(info, {}, CONSTANT).run(closed(2, prompt=512, output=4), 10)
    ask = Ask(arrival_ns=0, prompt_tokens=512, output_tokens=4, cached_tokens=384)
    shared = Simulator(info, {}, CONSTANT).run(
        opened(*(replace(ask, arrival_ns=i * 10**9) for i in range(4))), 10
    )

    assert {request.cached_tokens for request in fresh.requests} == {0}
    assert [request.cached_tokens for request in shared.requests] == [0, 384, 384, 384]


def test_too_few_blocks_preempt_and_everything_still_finishes(info: EngineInfo) -> None:
    small = replace(info, kv={**info.kv, "num_blocks": 20})
    asks = [Ask(arrival_ns=i, prompt_tokens=100, output_tokens=600) for i in range(8)]
    trace = Simulator(small, {}, CONSTANT).run(opened(*asks), 200)

    assert measure(trace)["preemptions"] > 0
    assert [request.output_tokens for request in trace.requests] == [600] * 8
    assert max(step.kv_frac or 0 for step in trace.steps) > 0.9
    # What a preempted request computes again is in its step's work.
    assert any((s.decode_tokens or 0) > (s.decode_requests or 0) for s in trace.steps)


@given(
    lengths=st.lists(
        st.tuples(st.integers(1, 900), st.integers(1, 60), st.integers(0, 2000)),
        min_size=1,
        max_size=25,
    ),
    blocks=st.integers(10, 60),
)
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_blocks_and_tokens_are_conserved(
    info: EngineInfo, lengths: list[tuple[int, int, int]], blocks: int
) -> None:
    asks = [
        Ask(arrival_ns=ms * 10**6, prompt_tokens=prompt, output_tokens=output)
        for prompt, output, ms in lengths
    ]
    small = replace(info, kv={**info.kv, "num_blocks": blocks})
    simulator = Simulator(small, {"max_num_active_seqs": 6}, CONSTANT)
    trace = simulator.run(opened(*asks), 1000)

    assert sum(step.output_tokens or 0 for step in trace.steps) == sum(o for _, o, _ in lengths)
    assert len(trace.requests) == len(asks)
    # One block of the pool is vLLM's null block.
    assert simulator.num_free_blocks == blocks - 1
    assert all(0 <= (step.kv_frac or 0) <= 1 for step in trace.steps)


def test_the_same_seed_gives_the_same_trace(info: EngineInfo) -> None:
    noisy = replace(REAL, residuals=(0.9, 1.0, 1.05, 1.3, 0.75))

    def steps(seed: int) -> tuple[int, ...]:
        trace = Simulator(info, {}, noisy, seed=seed).run(closed(8), 5)
        return tuple(step.t_ns for step in trace.steps)

    assert steps(1) == steps(1)
    assert steps(1) != steps(2)


def test_recording_in_pieces_changes_nothing(info: EngineInfo) -> None:
    whole = Simulator(info, {}, REAL).run(closed(8), 10)
    simulator = Simulator(info, {}, REAL)
    pieces = [simulator.run(closed(8), 0.33), *(simulator.advance(0.967) for _ in range(10))]

    steps = [step for piece in pieces for step in piece.steps]
    assert steps == list(whole.steps)[: len(steps)]


def test_requests_in_flight_are_put_back_where_they_were(info: EngineInfo) -> None:
    resume = [
        InFlight(
            edge="start",
            id=f"r{i}",
            prompt_tokens=1000,
            computed_tokens=1020,
            output_tokens=21,
            max_tokens=21 + i,
            arrival_ns=-(10**9),
        )
        for i in (1, 2, 3)
    ]
    queued = replace(resume[0], id="q", output_tokens=0, computed_tokens=0, is_waiting=True)
    simulator = Simulator(info, {"max_num_active_seqs": 3}, CONSTANT)
    simulator.offer(closed(4, output=100), resume=[*resume, replace(queued, max_tokens=7)])
    trace = simulator.advance(5)

    assert [step.prefill_tokens for step in trace.steps][:2] == [0, 1000]
    assert [(r.output_tokens, r.e2e_ms) for r in trace.requests] == [
        (22, 1050.0),
        (23, 1100.0),
        (24, 1150.0),
        (7, 1000 + 50 + 7 * 50.0),
    ]


def test_effects_scale_the_step_time_by_the_knobs(info: EngineInfo) -> None:
    simulator = Simulator(
        info, {}, CONSTANT, effect=lambda knobs: 2 if knobs["max_num_active_seqs"] == 8 else 1
    )
    one = settled(simulator, closed(8), 10)
    simulator.set_knob("max_num_active_seqs", 8)
    simulator.advance(1)
    two = simulator.advance(10)

    assert measure(two)["itl_mean"] == pytest.approx(2 * measure(one)["itl_mean"])


def test_residuals_are_drawn_in_runs_with_their_mean(info: EngineInfo) -> None:
    residuals = tuple(0.8 + 0.4 * i / 99 for i in range(100))
    trace = settled(Simulator(info, {}, replace(CONSTANT, residuals=residuals)), closed(4), 200)

    durations = [(step.dur_ns or 0) / 50e6 for step in trace.steps]
    assert fmean(durations) == pytest.approx(1, abs=0.03)
    assert min(durations) < 0.85 < 1.15 < max(durations)


def test_the_asynchronous_scheduler_keeps_two_steps_in_flight(info: EngineInfo) -> None:
    config = {**info.config, "async_scheduling": True}
    trace = settled(Simulator(replace(info, config=config), {}, CONSTANT), closed(16), 20)

    assert measure(trace)["itl_mean"] == pytest.approx(50)
    assert {request.output_tokens for request in trace.requests} == {64}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_num_active_seqs", 0),
        ("max_num_active_seqs", 65),
        ("max_num_active_seqs", True),
        ("max_num_scheduled_tokens", 63),
        ("max_num_scheduled_tokens", 4096),
        ("max_num_seqs", 8),
        ("max_nun_seqs", 8),
    ],
)
def test_a_knob_outside_its_limits_is_refused_and_nothing_changes(
    info: EngineInfo, name: str, value: int
) -> None:
    simulator = Simulator(info, {}, CONSTANT)
    before = simulator.knobs()

    with pytest.raises(KnobError, match="Nothing was changed"):
        simulator.set_knob(name, value)

    assert simulator.knobs() == before


def test_an_unknown_knob_lists_the_known_ones(info: EngineInfo) -> None:
    with pytest.raises(KnobError, match=r"max_num_active_seqs.*max_num_batched_tokens"):
        Simulator(info, {"max_nun_seqs": 3}, CONSTANT)


def test_a_knob_of_the_start_takes_effect_at_the_start(info: EngineInfo) -> None:
    simulator = Simulator(info, {"max_num_seqs": 4}, CONSTANT)

    assert simulator.knobs()["max_num_active_seqs"] == 4
    assert measure(settled(simulator, closed(16), 10))["throughput"] == pytest.approx(80)


def test_a_header_without_the_kv_cache_is_named(info: EngineInfo) -> None:
    with pytest.raises(EvidenceError, match=r"max_num_seqs, kv\.num_blocks, kv\.groups"):
        Simulator(replace(info, kv={}, config={**info.config, "max_num_seqs": None}), {}, REAL)


@pytest.mark.parametrize(
    ("config", "kv", "named"),
    [
        ({"max_num_seqs": -1}, {}, "max_num_seqs=-1, wanted a whole number from 1"),
        ({"max_model_len": "long"}, {}, "max_model_len=long"),
        ({"max_num_scheduled_tokens": 0.5}, {}, r"max_num_scheduled_tokens=0\.5"),
        ({}, {"num_blocks": 2**62}, r"kv\.num_blocks=4611686018427387904"),
        ({}, {"groups": "none"}, "no list of KV cache groups"),
        ({}, {"groups": [{"kind": "FullAttentionSpec"}]}, r"kv\.groups\.0\.block_size=0"),
    ],
)
def test_a_header_with_numbers_that_no_engine_has_is_refused_before_it_fills_the_memory(
    info: EngineInfo, config: dict[str, Any], kv: dict[str, Any], named: str
) -> None:
    damaged = replace(info, config={**info.config, **config}, kv={**info.kv, **kv})
    with pytest.raises(EvidenceError, match=named):
        Simulator(damaged, {}, REAL)


def test_a_closed_loop_of_more_clients_than_memory_holds_is_refused(info: EngineInfo) -> None:
    crowd = replace(closed(4), load=Load(kind="closed", clients=2**40))
    with pytest.raises(UsageError, match="1 to 100000 clients"):
        Simulator(info, {}, REAL).run(crowd, 1)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"num_engines": 2}, "data parallel"),
        ({"config": {"speculative_method": "ngram"}}, "speculative"),
        ({"config": {"pipeline_parallel_size": 2}}, "pipeline"),
        ({"config": {"policy": "lottery"}}, "unknown scheduling policy"),
        ({"kv": {"num_blocks": 9, "groups": [{"kind": "MambaSpec", "block_size": 16}]}}, "Mamba"),
    ],
)
def test_what_the_replay_does_not_model_is_refused(
    info: EngineInfo, change: dict[str, object], named: str
) -> None:
    changed = replace(
        info,
        num_engines=2 if "num_engines" in change else 1,
        config={**info.config, **_mapping(change.get("config"))},
        kv={**info.kv, **_mapping(change.get("kv"))},
    )
    with pytest.raises(UnavailableError, match=named):
        Simulator(changed, {}, REAL)


def test_a_request_longer_than_the_model_allows_is_refused(info: EngineInfo) -> None:
    with pytest.raises(EvidenceError, match="max_model_len is 8192"):
        Simulator(info, {}, REAL).run(
            opened(Ask(arrival_ns=0, prompt_tokens=8000, output_tokens=500)), 1
        )


def _mapping(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}
