"""The ladder of requests running at once."""

from rtopt import Cause, Context
from rtopt.apply import load_levers

LEVER = load_levers()["max_num_active_seqs"]


def values(now: int, *causes: Cause) -> list[object]:
    context = Context(
        knobs={"max_num_active_seqs": now, "max_num_seqs": 32},
        causes=frozenset(causes),
        lever=LEVER.id,
    )
    return [change.knobs["max_num_active_seqs"] for change in LEVER.propose(context)]


def test_full_slots_ask_for_more_first() -> None:
    assert values(4, Cause.SLOTS_FULL) == [8, 16, 32, 2, 1]


def test_where_compute_is_the_limit_it_asks_for_less_first() -> None:
    assert values(16, Cause.COMPUTE) == [8, 4, 32]


def test_at_the_ceiling_only_less_is_left() -> None:
    assert values(32, Cause.SLOTS_FULL) == [16, 8]
