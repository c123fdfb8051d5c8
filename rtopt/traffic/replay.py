"""A workload file offered as it says: on schedule in an open loop, by clients in a closed one."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What to offer."""

    url: str
    model: str
    file: str = ""
    """A workload file."""
    seed: int = 0
    vocabulary: int = 40_000
    """Token ids are drawn below this."""
    salt: str | None = None
    """Keeps this run out of the prefix cache of every other."""
    limits_ms: dict[str, float] = field(default_factory=dict)
    """What a good answer keeps: ttft, itl, e2e."""
    answers: str | None = None
    """File for one line a request."""
