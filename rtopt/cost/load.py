"""What one step of the engine has to compute."""

from dataclasses import dataclass

from rtopt.types import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLoad:
    """The work in one step."""

    prefill_requests: int
    """Requests that have made no token yet."""
    prefill_tokens: int
    """Their tokens in this step, plus the tokens that a preempted request computes again."""
    decode_requests: int
    """Requests that already made tokens."""
    context_tokens: int | None = None
    """Tokens that the decoding requests attend to; absent where nobody recorded them."""


def load_of(step: Step) -> StepLoad | None:
    """The work of a recorded step, or None when the recording does not say."""
    if step.prefill_requests is None or step.prefill_tokens is None or step.decode_requests is None:
        return None
    again = (step.decode_tokens or step.decode_requests) - step.decode_requests
    return StepLoad(
        prefill_requests=step.prefill_requests,
        prefill_tokens=step.prefill_tokens + max(0, again),
        decode_requests=step.decode_requests,
    )
