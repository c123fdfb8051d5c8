"""A workload fitted to a smaller model loses what is said, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtopt.errors import EvidenceError, UsageError
from rtopt.traffic import Fit, describe, fit
from rtopt.types import Ask, Load, Workload

S = 10**9


def workload(*asks: Ask, block_tokens: int | None = None) -> Workload:
    return Workload(
        load=Load(kind="open"), asks=asks, duration_ns=10 * S, block_tokens=block_tokens
    )


def ask(at_s: float, prompt: int = 100, output: int = 10, *blocks: int) -> Ask:
    return Ask(arrival_ns=int(at_s * S), prompt_tokens=prompt, output_tokens=output, blocks=blocks)


def test_a_window_starts_at_zero_and_has_the_windows_rate() -> None:
    found = fit(workload(ask(1), ask(3), ask(4), ask(8)), Fit(start_s=2, duration_s=4, speed=2))
    assert [a.arrival_ns / S for a in found.asks] == [0.5, 1.0]
    assert found.duration_ns == 2 * S


def test_lengths_are_cut_after_scaling_and_the_cut_ones_are_counted() -> None:
    found = fit(
        workload(ask(0, 1000, 100), ask(1, 400, 4)),
        Fit(scale_lengths=0.5, max_prompt=300, max_output=20),
    )
    assert [(a.prompt_tokens, a.output_tokens) for a in found.asks] == [(300, 20), (200, 2)]
    assert found.notes == (
        "1 of 2 prompts were cut to 300 tokens",
        "1 of 2 outputs were cut to 20 tokens",
    )


def test_scaling_keeps_the_shared_share_of_the_prompts() -> None:
    before = workload(ask(0, 2100, 1, 1, 2, 3, 4), ask(1, 2100, 1, 1, 2, 3, 9), block_tokens=512)
    after = fit(before, Fit(scale_lengths=0.125))
    assert after.block_tokens == 64
    assert [a.blocks for a in after.asks] == [a.blocks for a in before.asks]
    assert describe(after).reused_frac == pytest.approx(describe(before).reused_frac, rel=0.01)


def test_an_empty_window_is_no_workload() -> None:
    with pytest.raises(EvidenceError, match="no request from 5 to 10 s"):
        fit(workload(ask(1)), Fit(start_s=5))


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (Fit(speed=0), "--speed"),
        (Fit(scale_lengths=float("nan")), "--scale-lengths"),
        (Fit(start_s=-1), "--start"),
        (Fit(duration_s=0), "--duration"),
        (Fit(max_prompt=0), "--max-prompt"),
        (Fit(max_output=0), "--max-output"),
    ],
)
def test_numbers_out_of_range_are_refused_by_name(wrong: Fit, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        fit(workload(ask(1)), wrong)


@given(
    st.floats(1e-3, 1e3),
    st.floats(0.01, 100),
    st.none() | st.integers(1, 5000),
    st.lists(st.tuples(st.floats(0, 9), st.integers(1, 5000), st.integers(1, 99)), min_size=1),
)
def test_every_fitted_ask_can_be_offered(
    scale: float, speed: float, longest: int | None, rows: list[tuple[float, int, int]]
) -> None:
    asks = [ask(at, p, o, *range(p // 16)) for at, p, o in sorted(rows)]
    found = fit(
        workload(*asks, block_tokens=16),
        Fit(scale_lengths=scale, speed=speed, max_prompt=longest),
    )
    assert len(found.asks) == len(asks)
    assert found.block_tokens is not None
    for made in found.asks:
        assert 1 <= made.prompt_tokens <= (longest or made.prompt_tokens)
        assert made.output_tokens >= 1
        assert len(made.blocks) * found.block_tokens <= made.prompt_tokens
