"""Prompts as lists of random token ids, the same for the same seed.

Fresh ids keep the prefix cache from making one arm of a comparison faster than the other; blocks
with equal ids become equal tokens, so that a workload's reuse of prefixes is kept.
"""

import random

from rtopt.types import Ask

_LOWEST = 100
"""Ids below this are special in most vocabularies."""


class Prompts:
    """Token ids for the asks of one workload."""

    def __init__(self, *, seed: int, vocabulary: int, block_tokens: int | None = None) -> None:
        self._seed = seed
        self._block_tokens = block_tokens or 0
        self._words = [str(number) for number in range(_LOWEST, vocabulary)]

    def text(self, number: int, ask: Ask) -> str:
        """The prompt of ask `number` as a JSON list of `ask.prompt_tokens` token ids."""
        words: list[str] = []
        for block in ask.blocks:
            words += self._draw(f"{self._seed}-block-{block}", self._block_tokens)
        del words[ask.prompt_tokens :]
        words += self._draw(f"{self._seed}-{number}", ask.prompt_tokens - len(words))
        return f"[{','.join(words)}]"

    def _draw(self, seed: str, tokens: int) -> list[str]:
        return random.Random(seed).choices(self._words, k=tokens) if tokens > 0 else []
