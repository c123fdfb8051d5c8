"""A closed loop: a fixed number of clients, each with one request in flight, and fresh prompts."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from rtopt.types import Ask


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoop:
    """What to offer."""

    url: str
    model: str
    clients: int
    prompt_tokens: tuple[int, int] = (24, 40)
    """Shortest and longest prompt."""
    output_tokens: tuple[int, int] = (8, 16)
    ramp_s: float = 0.0
    """Clients join over so long, the first ones slowly, so that a trace sees small batches too."""
    seed: int = 0
    vocabulary: int = 40_000
    """Token ids are drawn below this."""
    duration_s: float = 3600.0
    """It ends by itself after so long, whatever happens to whoever started it."""
    think_s: float = 0.0
    """Mean of the exponential pause between an answer and the same client's next request."""
    prefixes: int = 0
    """So many different beginnings of prompts, one of them drawn for each request; 0: none."""
    prefix_tokens: int = 0
    """Length of each beginning; the prompt's own tokens come after it."""
    stream: bool = False
    """Take every output as it is made, for TTFT and ITL; the server spends more on it."""
    salt: str | None = None
    """Keeps this run out of the prefix cache of every other."""
    limits_ms: dict[str, float] = field(default_factory=dict)
    """What a good answer keeps: ttft, itl, e2e."""
    answers: str | None = None
    """File for one line a request."""


def asks_of(load: ClosedLoop, rng: random.Random) -> Iterator[Ask]:
    """Asks of one client, without end."""
    while True:
        own = rng.randint(*load.prompt_tokens)
        output = rng.randint(*load.output_tokens)
        blocks: tuple[int, ...] = (rng.randrange(load.prefixes),) if load.prefixes else ()
        yield Ask(
            arrival_ns=0,
            prompt_tokens=own + (load.prefix_tokens if blocks else 0),
            output_tokens=output,
            blocks=blocks,
        )
