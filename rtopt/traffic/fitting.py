"""Fits a recorded workload to a smaller model and a shorter time; what is cut is counted."""

import math
from dataclasses import dataclass, replace

from rtopt.errors import EvidenceError, UsageError
from rtopt.types import Ask, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What to change, in this order: the window, the speed, the lengths, the limits."""

    start_s: float = 0.0
    """Leave out what came before, in the recording's own time."""
    duration_s: float | None = None
    """Keep so long, in the recording's own time."""
    speed: float = 1.0
    """Replay so many times as fast."""
    scale_lengths: float = 1.0
    """Multiply prompts and outputs."""
    max_prompt: int | None = None
    """Cut longer prompts at their end, so that shared beginnings stay."""
    max_output: int | None = None


def fit(workload: Workload, how: Fit) -> Workload:
    """The workload as it can be offered, with notes on what was cut.

    Raises:
        UsageError: A number out of its range.
        EvidenceError: No request is in the window.
    """
    _check(how)
    start, end = _window_ns(workload, how)
    kept = [ask for ask in workload.asks if start <= ask.arrival_ns < end]
    if not kept:
        raise EvidenceError(
            f"no request from {start / 1e9:g} to {end / 1e9:g} s; the workload has"
            f" {len(workload.asks)} in {workload.duration_ns / 1e9:g} s"
        )
    size = workload.block_tokens
    if size is not None:
        size = max(1, math.floor(size * how.scale_lengths))
    asks = [_scaled(ask, start, size, how) for ask in kept]
    cut_prompts = sum(_is_above(a.prompt_tokens, how.max_prompt) for a in asks)
    cut_outputs = sum(_is_above(a.output_tokens, how.max_output) for a in asks)
    notes = list(workload.notes)
    for number, what, limit in (
        (cut_prompts, "prompts", how.max_prompt),
        (cut_outputs, "outputs", how.max_output),
    ):
        if number:
            notes.append(f"{number} of {len(asks)} {what} were cut to {limit} tokens")
    return replace(
        workload,
        asks=tuple(_cut(ask, size, how) for ask in asks),
        duration_ns=max(1, round((end - start) / how.speed)),
        think_ns=round(workload.think_ns / how.speed),
        block_tokens=size,
        notes=tuple(notes),
    )


def _window_ns(workload: Workload, how: Fit) -> tuple[int, int]:
    whole = max(workload.duration_ns, workload.asks[-1].arrival_ns + 1 if workload.asks else 1)
    start = round(how.start_s * 1e9)
    if how.duration_s is None:
        return start, whole
    return start, min(whole, start + round(how.duration_s * 1e9))


def _scaled(ask: Ask, start_ns: int, size: int | None, how: Fit) -> Ask:
    prompt = max(1, round(ask.prompt_tokens * how.scale_lengths))
    return replace(
        ask,
        arrival_ns=round((ask.arrival_ns - start_ns) / how.speed),
        prompt_tokens=prompt,
        output_tokens=max(1, round(ask.output_tokens * how.scale_lengths)),
        cached_tokens=min(prompt, round(ask.cached_tokens * how.scale_lengths)),
        blocks=ask.blocks[: prompt // size] if size else ask.blocks,
    )


def _cut(ask: Ask, size: int | None, how: Fit) -> Ask:
    prompt = min(ask.prompt_tokens, how.max_prompt or ask.prompt_tokens)
    return replace(
        ask,
        prompt_tokens=prompt,
        output_tokens=min(ask.output_tokens, how.max_output or ask.output_tokens),
        cached_tokens=min(ask.cached_tokens, prompt),
        blocks=ask.blocks[: prompt // size] if size else ask.blocks,
    )


def _is_above(tokens: int, limit: int | None) -> bool:
    return limit is not None and tokens > limit


def _check(how: Fit) -> None:
    for name, value in (("speed", how.speed), ("scale-lengths", how.scale_lengths)):
        if not 0 < value < math.inf:
            raise UsageError(f"--{name} {value:g}: must be above 0")
    if not 0 <= how.start_s < math.inf:
        raise UsageError(f"--start {how.start_s:g}: must be at least 0")
    if how.duration_s is not None and not 0 < how.duration_s < math.inf:
        raise UsageError(f"--duration {how.duration_s:g}: must be above 0")
    for name, limit in (("max-prompt", how.max_prompt), ("max-output", how.max_output)):
        if limit is not None and limit < 1:
            raise UsageError(f"--{name} {limit}: must be at least 1")
