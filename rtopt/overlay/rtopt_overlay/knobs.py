"""The settings that can move while the engine runs, each with a floor and a ceiling.

Nothing in vLLM validates these attributes after start-up: -5 is accepted, and a token budget that
is too small blocks the queue for good. So a value is checked here before it is written.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LiveKnob:
    """Where a knob lives in the engine, and between which values it may move."""

    name: str
    attribute: str
    """Of the scheduler."""
    floor: Callable[[Any], int]
    """From the engine's VllmConfig."""
    ceiling: Callable[[Any], int]


def _token_floor(config: Any) -> int:
    """Smallest token budget that cannot block the queue.

    Every running request needs one token a step, and each speculative token one more; without
    chunked prefill a whole prompt must fit; a hybrid model schedules whole aligned blocks.
    """
    scheduler, cache = config.scheduler_config, config.cache_config
    speculative = getattr(config, "speculative_config", None)
    per_request = 1 + (getattr(speculative, "num_speculative_tokens", 0) or 0)
    floor = scheduler.max_num_seqs * per_request
    if not scheduler.enable_chunked_prefill:
        floor = max(floor, config.model_config.max_model_len)
    if getattr(cache, "mamba_block_size", None):
        floor = max(floor, cache.mamba_block_size, cache.block_size)
    return int(floor)


def _token_ceiling(config: Any) -> int:
    scheduler = config.scheduler_config
    started = getattr(scheduler, "max_num_scheduled_tokens", None)
    return int(started or scheduler.max_num_batched_tokens)


LIVE_KNOBS = (
    LiveKnob(
        name="max_num_active_seqs",
        attribute="max_num_active_reqs",
        floor=lambda _config: 1,
        ceiling=lambda config: int(config.scheduler_config.max_num_seqs),
    ),
    LiveKnob(
        name="max_num_scheduled_tokens",
        attribute="max_num_scheduled_tokens",
        floor=_token_floor,
        ceiling=_token_ceiling,
    ),
)


def present_knobs(scheduler: Any) -> tuple[LiveKnob, ...]:
    """Those that this engine version has."""
    return tuple(k for k in LIVE_KNOBS if isinstance(getattr(scheduler, k.attribute, None), int))
