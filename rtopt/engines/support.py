"""What the loop cannot handle yet, found in what an engine says about itself.

Only the effective configuration and the list of models decide; a setting that an engine does not
tell is not guessed.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rtopt.types import EngineInfo

_DISAGGREGATED: Final = ("kv_producer", "kv_consumer")
_OFFLOAD: Final = ("OffloadingConnector", "SimpleCPUOffloadConnector", "LMCacheConnectorV1")
"""Connectors that move KV blocks to slower memory of the same engine, and to no other engine."""

Cards = Sequence[Mapping[str, Any]]
"""The entries of /v1/models; empty when the server does not show them."""


def unsupported(info: EngineInfo, cards: Cards = ()) -> str | None:
    """Why nothing may be changed on this engine, or None.

    Args:
        info: What the engine says about itself.
        cards: What /v1/models lists.
    """
    for name, find in _CASES.items():
        found = find(info, cards)
        if found is not None:
            return f"the engine serves with {name} ({found}), which rtopt does not handle yet"
    return None


def cards_of(text: str) -> Cards:
    """The entries of /v1/models; empty when the answer is something else, for example a 401."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    match answer:
        case {"data": [*cards]}:
            return tuple(card for card in cards if isinstance(card, dict))
        case _:
            return ()


def _lora(info: EngineInfo, cards: Cards) -> str | None:
    if info.config.get("enable_lora"):
        return "enable_lora"
    adapters = sum(1 for card in cards if card.get("parent"))
    return f"/v1/models lists {adapters} with a parent" if adapters else None


def _multimodal(info: EngineInfo, _cards: Cards) -> str | None:
    told = info.config.get("is_multimodal_model")
    if told is not None:
        return "is_multimodal_model" if told else None
    parts = [part for part in ("vision_config", "audio_config") if info.model_config.get(part)]
    return f"the model has a {parts[0]}" if parts else None


def _pooling(info: EngineInfo, _cards: Cards) -> str | None:
    return "runner_type=pooling" if info.config.get("runner_type") == "pooling" else None


def _structured(info: EngineInfo, _cards: Cards) -> str | None:
    backend = info.config.get("structured_output_backend")
    return f"{backend} has compiled a grammar" if backend else None


def _disaggregated(info: EngineInfo, _cards: Cards) -> str | None:
    role, connector = info.config.get("kv_role"), info.config.get("kv_connector")
    if role in _DISAGGREGATED:
        return f"kv_role={role}"
    if connector is not None and connector not in _OFFLOAD:
        return f"kv_connector={connector}"
    return f"ec_role={ec}" if (ec := info.config.get("ec_role")) else None


_CASES: Final[Mapping[str, Callable[[EngineInfo, Cards], str | None]]] = {
    "LoRA adapters": _lora,
    "a multimodal model": _multimodal,
    "a pooling model": _pooling,
    "structured output": _structured,
    "disaggregated prefill": _disaggregated,
}
"""What it is called, and where it shows."""
