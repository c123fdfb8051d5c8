"""The period finder on sequences whose layers are known."""

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rtopt.profile.ops import find_period
from rtopt.profile.ops.alignment import align

LAYER = ("norm", "qkv", "rope", "write", "attend", "out", "norm", "up", "act", "down")
BEFORE = ("embed", "positions", "mask")
AFTER = ("norm", "logits", "argmax")


def test_a_model_of_thirty_equal_layers_has_thirty() -> None:
    period = find_period([*BEFORE, *LAYER * 30, *AFTER])
    assert period is not None
    assert (period.length, period.unit, period.layers) == (10, 10, 30)
    assert (period.begin, period.end) == (len(BEFORE), len(BEFORE) + 300)
    # The final norm looks like a 31st layer's first op.
    assert period.longest_run == 301


def test_a_hybrid_model_repeats_at_a_multiple_of_its_layer() -> None:
    mamba = ("norm", "in", "conv", "scan", "gate", "out", "norm", "up", "act", "down")
    period = find_period([*BEFORE, *(LAYER * 5 + mamba) * 4, *AFTER])
    assert period is not None
    assert (period.length, period.unit, period.layers) == (60, 10, 24)


def test_a_hybrid_model_with_layers_of_two_lengths_has_one_period_per_group() -> None:
    moe = (*LAYER[:7], "route", "sort", "experts", "experts", "combine")
    period = find_period([*BEFORE, *(LAYER + moe) * 8, *AFTER])
    assert period is not None
    assert period.length == len(LAYER) + len(moe)
    assert len(period.spans) == 8


def test_one_more_op_in_one_layer_does_not_lose_the_layers_after_it() -> None:
    sequence = [*BEFORE, *LAYER * 9, *LAYER[:4], "resize", *LAYER[4:], *LAYER * 20, *AFTER]
    period = find_period(sequence)
    assert period is not None
    assert period.layers == 30
    placed = {i for span in period.spans for i, _ in span.places}
    assert sequence.index("resize") not in placed
    assert len(placed) == 300


def test_a_sequence_without_repetition_has_no_period() -> None:
    assert find_period(range(200)) is None
    assert find_period([]) is None
    assert find_period(["once"]) is None


def test_noise_has_no_period() -> None:
    draw = random.Random(5)
    assert find_period([draw.randrange(30) for _ in range(400)]) is None


@given(
    length=st.integers(3, 24),
    layers=st.integers(4, 40),
    before=st.integers(0, 30),
    after=st.integers(0, 15),
)
def test_the_layers_are_found_whatever_stands_around_them(
    length: int, layers: int, before: int, after: int
) -> None:
    layer = [f"op{i}" for i in range(length)]
    prefix = [f"before{i}" for i in range(before)]
    suffix = [f"after{i}" for i in range(after)]
    period = find_period([*prefix, *layer * layers, *suffix])
    if before + after > length * (layers - 2):
        return  # more stands around the layers than in them: it may abstain
    assert period is not None
    assert (period.length, period.layers, period.begin) == (length, layers, before)


@given(
    length=st.integers(8, 24),
    layers=st.integers(6, 24),
    edit=st.sampled_from(["change", "insert", "delete"]),
    place=st.floats(0, 1),
)
def test_one_odd_op_costs_no_layer(length: int, layers: int, edit: str, place: float) -> None:
    sequence = ["embed", *[f"op{i}" for i in range(length)] * layers, "logits"]
    at = 1 + int(place * (length * layers - 1))
    sequence[at : at + (edit != "insert")] = [] if edit == "delete" else ["odd"]
    period = find_period(sequence)
    assert period is not None
    assert (period.length, period.layers) == (length, layers)
    placed = sum(len(span.places) for span in period.spans)
    assert placed >= length * layers - 3, "the odd op, and at most two beside it"


@given(st.lists(st.sampled_from("abcd"), max_size=40))
def test_every_period_lies_inside_the_sequence_in_order(sequence: list[str]) -> None:
    period = find_period(sequence)
    if period is None:
        return
    at = 0
    for span in period.spans:
        assert at <= span.begin < span.end <= len(sequence)
        assert all(span.begin <= i < span.end for i, _ in span.places)
        at = span.end


@given(st.lists(st.sampled_from("abc"), max_size=25), st.lists(st.sampled_from("abc"), max_size=25))
def test_an_alignment_is_monotone_and_pairs_equals(found: list[str], known: list[str]) -> None:
    pairs = align(found, known)
    assert all(found[i] == known[j] for i, j in pairs)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))
    assert len(pairs) == _longest(found, known)


def _longest(found: list[str], known: list[str]) -> int:
    """The same length by the textbook."""
    row = [0] * (len(known) + 1)
    for one in found:
        above, row = row, [0]
        for j, other in enumerate(known):
            row.append(above[j] + 1 if one == other else max(above[j + 1], row[-1]))
    return row[-1]
