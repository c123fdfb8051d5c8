"""vLLM's configuration objects for a recorded engine, without its weights, tokenizer or device.

`create_engine_config()` resolves a configuration for the platform it runs on. The recorded engine
may have run on another one, so what it resolved to is set back, field by field, from the trace.
"""

import copy
import functools
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from vllm.engine.arg_utils import EngineArgs
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    KVCacheConfig,
    KVCacheGroupSpec,
    SlidingWindowSpec,
)

from rtopt.errors import EvidenceError, UnavailableError
from rtopt.sim.loading import borrowed_environment
from rtopt.types import EngineInfo

_NEEDED = ("max_num_seqs", "max_num_batched_tokens", "max_model_len", "enable_prefix_caching")
_NUMBERS = ("max_num_seqs", "max_num_batched_tokens", "max_model_len")
_OPTIONAL = ("max_num_active_seqs", "max_num_scheduled_tokens", "long_prefill_token_threshold")
_SHAPE = ("layers", "num_kv_heads", "head_size")
_LARGEST = 1 << 24
"""More blocks, tokens or requests than any engine has, and few enough to be held in memory."""
_SCHEDULER = (
    "max_num_seqs",
    "max_num_active_seqs",
    "max_num_batched_tokens",
    "max_num_scheduled_tokens",
    "long_prefill_token_threshold",
    "long_prefill_token_threshold_adaptive",
    "enable_chunked_prefill",
    "policy",
    "async_scheduling",
    "scheduler_reserve_full_isl",
    "watermark",
)
_POLICIES = ("fcfs", "priority")
# MLA blocks are managed like full attention's (vLLM 0.32, single_type_kv_cache_manager.py); only
# their bytes differ, and bytes do not matter here.
_FULL = ("FullAttentionSpec", "MLAAttentionSpec")
_SLIDING = "SlidingWindowSpec"


def engine_config(info: EngineInfo) -> Any:
    """A VllmConfig with the recorded effective settings; a fresh copy each time.

    Raises:
        EvidenceError: The recording lacks settings that the scheduler needs.
        UnavailableError: The engine has something that the replay does not model.
    """
    _check(info)
    base = _resolved(json.dumps(dict(info.model_config), sort_keys=True))
    config = copy.copy(base)
    config.scheduler_config = scheduler = copy.copy(base.scheduler_config)
    config.cache_config = cache = copy.copy(base.cache_config)
    config.model_config = copy.copy(base.model_config)
    for name in _SCHEDULER:
        if name in info.config and hasattr(scheduler, name):
            setattr(scheduler, name, info.config[name])
    cache.enable_prefix_caching = bool(info.config["enable_prefix_caching"])
    cache.num_gpu_blocks = int(info.kv["num_blocks"])
    cache.block_size = min(int(group["block_size"]) for group in info.kv["groups"])
    config.model_config.max_model_len = info.config["max_model_len"]
    return config


def kv_config(info: EngineInfo) -> Any:
    """The KV cache as the recorded engine built it, without memory behind it."""
    groups = [
        KVCacheGroupSpec([f"{n}.{i}" for i in range(int(group.get("layers", 1)))], _spec(group))
        for n, group in enumerate(info.kv["groups"])
    ]
    return KVCacheConfig(
        num_blocks=int(info.kv["num_blocks"]), kv_cache_tensors=[], kv_cache_groups=groups
    )


def _check(info: EngineInfo) -> None:
    missing = [name for name in _NEEDED if info.config.get(name) is None]
    missing += [f"kv.{name}" for name in ("num_blocks", "groups") if not info.kv.get(name)]
    if not info.model_config:
        missing.append("model_config")
    if missing:
        raise EvidenceError(
            f"the trace's header does not say {', '.join(missing)}: the engine's scheduler cannot"
            " be set up like the recorded one. Record again with the overlay of this rtopt.",
            missing=tuple(missing),
        )
    _check_numbers(info)
    unmodelled = {
        "several engines (data parallel)": info.num_engines > 1,
        "pipeline parallelism": int(info.config.get("pipeline_parallel_size") or 1) > 1,
        "an unknown scheduling policy": info.config.get("policy", "fcfs") not in _POLICIES,
        "speculative decoding": info.config.get("speculative_method") is not None,
    }
    if found := [name for name, is_there in unmodelled.items() if is_there]:
        raise UnavailableError(
            f"the recorded engine uses {' and '.join(found)}, which the replay does not model."
            " Nothing was predicted.",
            found=tuple(found),
        )


def _check_numbers(info: EngineInfo) -> None:
    """Refuse numbers that no engine has: vLLM would fail on them, or fill the memory."""
    groups = info.kv["groups"]
    if not isinstance(groups, list | tuple) or not all(isinstance(g, Mapping) for g in groups):
        raise EvidenceError("the trace's header has no list of KV cache groups: it is damaged")
    told: dict[str, Any] = {name: info.config.get(name) for name in (*_NUMBERS, *_OPTIONAL)}
    told |= {"kv.num_blocks": info.kv["num_blocks"]}
    for number, group in enumerate(groups):
        needed = ("block_size", *(("sliding_window",) if group.get("kind") == _SLIDING else ()))
        told |= {f"kv.groups.{number}.{name}": group.get(name, 0) for name in needed}
        told |= {f"kv.groups.{number}.{name}": group.get(name) for name in _SHAPE}
    for name, value in told.items():
        if value is None:
            continue
        lowest = 0 if name in _OPTIONAL else 1
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if not is_number or not lowest <= int(value) <= _LARGEST:
            raise EvidenceError(
                f"the trace's header says {name}={str(value)[:40]}, wanted a whole number from"
                f" {lowest} to {_LARGEST}: it is damaged. Nothing was predicted."
            )


@functools.lru_cache(maxsize=4)
def _resolved(model_config: str) -> Any:
    """What vLLM makes of the model's config.json on this platform.

    Quantization is left out: it is checked against this machine's device, and the scheduler does
    not look at it.
    """
    model: dict[str, Any] = json.loads(model_config)
    model.pop("quantization_config", None)
    with tempfile.TemporaryDirectory(prefix="rtopt-model-") as folder, borrowed_environment():
        Path(folder, "config.json").write_text(json.dumps(model))
        try:
            return EngineArgs(model=folder, skip_tokenizer_init=True).create_engine_config()
        except Exception as error:  # transformers raises classes of its own
            kind = ", ".join(model.get("architectures") or ["unknown"])
            raise UnavailableError(
                f"the installed vLLM cannot configure the recorded model ({kind}): {error}."
                " Nothing was predicted.",
            ) from error


def _spec(group: Mapping[str, Any]) -> Any:
    kind = group.get("kind")
    if kind not in (*_FULL, _SLIDING):
        raise UnavailableError(
            f"KV cache group of kind {kind!r} is not modelled by the replay. Known:"
            f" {', '.join((*_FULL, _SLIDING))}. Nothing was predicted.",
            kind=kind,
        )
    shape: dict[str, Any] = {
        "block_size": int(group["block_size"]),
        "num_kv_heads": int(group.get("num_kv_heads") or 1),
        "head_size": int(group.get("head_size") or 1),
        # Only its size is looked at, and only for memory that a replay does not have.
        "dtype": torch.bfloat16,
    }
    if kind == _SLIDING:
        return SlidingWindowSpec(**shape, sliding_window=int(group["sliding_window"]))
    return FullAttentionSpec(**shape)
