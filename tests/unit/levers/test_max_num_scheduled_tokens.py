"""The floor below which a token budget blocks the queue for good."""

from rtopt import Cause, Context
from rtopt.apply import load_levers

LEVER = load_levers()["max_num_scheduled_tokens"]
KNOBS: dict[str, int | bool] = {
    "max_num_scheduled_tokens": 2048,
    "max_num_batched_tokens": 2048,
    "max_num_seqs": 32,
    "max_model_len": 1024,
    "enable_chunked_prefill": True,
}


def context(*causes: Cause, **knobs: int | bool) -> Context:
    return Context(knobs={**KNOBS, **knobs}, causes=frozenset(causes), lever=LEVER.id)


def test_the_floor_has_a_token_for_every_request_that_may_run() -> None:
    assert LEVER.envelope(context()).low == 32


def test_the_floor_counts_drafts_too() -> None:
    assert LEVER.envelope(context(num_speculative_tokens=3)).low == 32 * 4


def test_without_chunked_prefill_the_longest_prompt_must_fit() -> None:
    assert LEVER.envelope(context(enable_chunked_prefill=False)).low == 1024


def test_the_aligned_block_of_a_recurrent_model_must_fit() -> None:
    assert LEVER.envelope(context(mamba_block_size=528)).low == 528


def test_it_does_not_apply_where_floor_and_ceiling_meet() -> None:
    reason = LEVER.applies(context(max_num_seqs=1024, num_speculative_tokens=1))
    assert reason is not None
    assert "floor of 2048" in reason


def test_long_prefills_ask_for_less_first() -> None:
    values = [
        change.knobs["max_num_scheduled_tokens"]
        for change in LEVER.propose(context(Cause.LONG_PREFILL))
    ]
    assert values == [1024, 512, 32]
