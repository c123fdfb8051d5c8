"""What the overlay answers, as nouns and as errors."""

from collections.abc import Mapping
from typing import Any

from rtopt.errors import (
    EngineError,
    HeldError,
    KnobError,
    RtoptError,
    TraceError,
    UnavailableError,
    UsageError,
)
from rtopt.storage import from_json
from rtopt.types import EngineInfo

ERRORS: Mapping[str, type[RtoptError]] = {
    "knob": KnobError,
    "usage": UsageError,
    "token": EngineError,
    "read_only": EngineError,
    "held": HeldError,
    "unavailable": UnavailableError,
    "engine": EngineError,
}
"""The overlay's error code to ours; an unknown one is an EngineError."""

MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError, TraceError)
"""What reading an answer of another form can raise."""


def info_of(raw: Mapping[str, Any]) -> EngineInfo:
    """What the overlay's state says about the engine."""
    told = {
        "name": "vllm",
        "version": raw["version"],
        "model": raw["model"],
        "config": raw["config"],
        "kv": raw["kv"],
        "model_config": raw["model_config"],
        "num_engines": raw["config"].get("data_parallel_size") or 1,
        "num_api_servers": raw["num_api_servers"],
    }
    return from_json(EngineInfo, told, where="/rtopt/state")


def malformed(where: str, error: Exception) -> EngineError:
    """An answer of another form, with what was wrong about it."""
    told = f"{type(error).__name__} {error}" if isinstance(error, KeyError) else str(error)
    return EngineError(f"{where}: not as rtopt's overlay answers ({told})")
