"""What one request came to, as its client saw it."""

from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Answer:
    """One request as sent, and when its answer came."""

    number: int
    """Place in the workload."""
    sent_ns: int
    """From the start of the load."""
    late_ms: float | None = None
    """Sent so long after its time; absent in a closed loop, which has no times."""
    first_ms: float | None = None
    """From sending to the first token."""
    gaps_ms: list[float] = field(default_factory=list)
    """Between the following outputs."""
    e2e_ms: float | None = None
    """From sending to the last output."""
    prompt_tokens: int | None = None
    """As the server counted them."""
    output_tokens: int | None = None
    error: str | None = None
    """Why it failed: the kind of the error, or the status, for example "http_400"."""
