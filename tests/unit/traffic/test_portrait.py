"""The portrait of a workload, on cases solved by hand."""

import pytest

from rtopt.traffic import describe
from rtopt.types import Ask, Load, Workload

S = 10**9


def test_even_arrivals_have_no_variation_and_rates_are_per_second() -> None:
    asks = tuple(
        Ask(arrival_ns=n * S // 2, prompt_tokens=n + 1, output_tokens=2) for n in range(20)
    )
    found = describe(Workload(load=Load(kind="open"), asks=asks, duration_ns=10 * S))
    assert (found.requests, found.rate_per_s, found.peak_per_s) == (20, 2.0, 2)
    assert found.gap_cv == 0
    assert found.dispersion == 0
    assert found.prompt_tokens == {"mean": 10.5, "p50": 10, "p95": 19, "p99": 20, "max": 20}
    assert found.reused_frac is None, "unknown, not none"


def test_only_blocks_after_the_same_blocks_are_reused() -> None:
    def ask(*blocks: int) -> Ask:
        return Ask(arrival_ns=0, prompt_tokens=40, output_tokens=1, blocks=blocks)

    asks = (ask(1, 2, 3), ask(1, 2, 4), ask(9, 2, 3))
    found = describe(Workload(load=Load(kind="open"), asks=asks, duration_ns=S, block_tokens=10))
    # Two blocks of the second ask; in the third block 2 follows another one.
    assert found.reused_frac == pytest.approx(20 / 120)


def test_a_closed_loop_has_no_burstiness_of_its_own() -> None:
    asks = tuple(Ask(arrival_ns=n, prompt_tokens=1, output_tokens=1) for n in range(9))
    found = describe(Workload(load=Load(kind="closed", clients=2), asks=asks, duration_ns=S))
    assert (found.gap_cv, found.dispersion) == (None, None)
