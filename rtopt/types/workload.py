"""What was asked of the engine: arrivals, lengths, and how the load reacts."""

from dataclasses import dataclass
from typing import Literal

LoadKind = Literal["open", "closed"]
"""open: arrivals do not wait for answers. closed: a fixed number of clients, each waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How requests are offered; stated by whoever runs the traffic, never inferred."""

    kind: LoadKind
    clients: int | None = None
    """Closed loop: clients that each keep one request in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request as offered."""

    arrival_ns: int
    """From the start of the workload; in a closed loop the order only."""
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    """Prompt tokens that were found in the prefix cache when it was recorded."""
    blocks: tuple[int, ...] = ()
    """Identity of each whole block of the prompt: equal ids are equal prefixes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Requests as offered over a window."""

    load: Load
    asks: tuple[Ask, ...]
    duration_ns: int
    think_ns: int = 0
    """Closed loop: median time between an answer and the same client's next request."""
    source: str = ""
    """Where it came from, for example "trace" or "azure_2023_conv"."""
    seed: int | None = None
    block_tokens: int | None = None
    """Length of the blocks in `Ask.blocks`; absent when prefixes are not known."""
    missed_frac: float | None = None
    """Share of the requests that the source did not see whole; absent when it does not tell."""
    notes: tuple[str, ...] = ()
    """What a reader or a scaling had to say: lines left out, lengths cut."""
