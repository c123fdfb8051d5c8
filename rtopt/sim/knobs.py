"""The settings that a simulated engine can change, and between which values."""

from collections.abc import Mapping
from dataclasses import dataclass

from rtopt.errors import KnobError
from rtopt.types import EngineInfo, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class SimKnob:
    """Where a knob lives in vLLM's scheduler."""

    name: str
    path: tuple[str, ...]
    """Attributes from the scheduler on; empty: read only when the engine starts."""


# Attributes read in vLLM 0.32, v1/core/sched/scheduler.py.
LIVE = (
    SimKnob(name="max_num_active_seqs", path=("max_num_active_reqs",)),
    SimKnob(name="max_num_scheduled_tokens", path=("max_num_scheduled_tokens",)),
    SimKnob(
        name="long_prefill_token_threshold",
        path=("scheduler_config", "long_prefill_token_threshold"),
    ),
)
START = (
    SimKnob(name="max_num_seqs", path=()),
    SimKnob(name="max_num_batched_tokens", path=()),
)
KNOBS: Mapping[str, SimKnob] = {knob.name: knob for knob in (*LIVE, *START)}


def find_knob(name: str) -> SimKnob:
    """Give the knob of this name.

    Raises:
        KnobError: It is unknown; the known ones are listed.
    """
    if name not in KNOBS:
        raise KnobError(
            f"knob {name!r} is unknown to the replay. Known: {', '.join(KNOBS)}."
            " Nothing was changed.",
            name=name,
            known=tuple(KNOBS),
        )
    return KNOBS[name]


def live_limits(info: EngineInfo, name: str) -> tuple[int, int]:
    """Floor and ceiling of a live knob, both allowed.

    A token budget below what the running requests need in one step, or below the longest prompt
    when prompts cannot be cut, would block the queue for good.
    """
    seqs, batched = int(info.config["max_num_seqs"] or 0), _batched(info)
    match name:
        case "max_num_active_seqs":
            return 1, seqs
        case "max_num_scheduled_tokens":
            chunked = bool(info.config.get("enable_chunked_prefill", True))
            floor = seqs if chunked else max(seqs, int(info.config["max_model_len"] or 0))
            return min(floor, batched), int(info.config.get("max_num_scheduled_tokens") or batched)
        case "long_prefill_token_threshold":
            return 0, batched
        case _:
            raise KnobError(
                f"knob {name!r} is only read when the engine starts. Live ones:"
                f" {', '.join(knob.name for knob in LIVE)}. Nothing was changed.",
                name=name,
            )


def check_live(info: EngineInfo, name: str, value: Value) -> int:
    """Give the value as a number when the live knob may take it.

    Raises:
        KnobError: Unknown knob, or the value lies outside floor and ceiling.
    """
    low, high = live_limits(info, find_knob(name).name)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise KnobError(
            f"{name}={value!r}: must be a whole number from {low} to {high}. Nothing was changed.",
            name=name,
            value=value,
        )
    return value


def _batched(info: EngineInfo) -> int:
    return int(info.config["max_num_batched_tokens"] or 0)
