"""Prompts have the asked length, are fresh, and share what their blocks say."""

import json

from rtopt.traffic.prompts import Prompts
from rtopt.types import Ask


def ask(tokens: int, *blocks: int) -> Ask:
    return Ask(arrival_ns=0, prompt_tokens=tokens, output_tokens=1, blocks=blocks)


def made(number: int, asked: Ask, *, seed: int = 1) -> list[int]:
    prompts = Prompts(seed=seed, vocabulary=40_000, block_tokens=16)
    found: list[int] = json.loads(prompts.text(number, asked))
    return found


def test_equal_blocks_become_equal_tokens_and_the_rest_is_fresh() -> None:
    one, two = made(0, ask(50, 7, 8)), made(1, ask(60, 7, 9))
    assert (len(one), len(two)) == (50, 60)
    assert one[:16] == two[:16]
    assert one[16:32] != two[16:32]


def test_a_seed_gives_the_same_prompt_and_another_seed_another() -> None:
    assert made(3, ask(30, 1)) == made(3, ask(30, 1))
    assert made(3, ask(30, 1))[:16] != made(3, ask(30, 1), seed=2)[:16]
    assert made(3, ask(30)) != made(4, ask(30))


def test_blocks_longer_than_the_prompt_are_cut_to_it() -> None:
    assert made(0, ask(20, 7, 8)) == made(0, ask(32, 7, 8))[:20]


def test_tokens_are_within_the_vocabulary_and_not_among_the_special_ones() -> None:
    assert all(100 <= token < 40_000 for token in made(0, ask(5000)))
