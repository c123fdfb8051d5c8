"""The engine's configuration as it took effect, without paths or names of this machine."""

import os
import platform
from pathlib import Path, PurePath
from typing import Any

from vllm.platforms import current_platform

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
_CACHE = (
    "block_size",
    "cache_dtype",
    "enable_prefix_caching",
    "gpu_memory_utilization",
    "num_gpu_blocks",
    "prefix_caching_hash_algo",
)
_PARALLEL = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
_MODEL = ("max_model_len", "dtype", "quantization", "runner_type", "enforce_eager", "seed")


def _plain(value: Any) -> bool | int | float | str | None:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(getattr(value, "value", value)).removeprefix("torch.")


def public_name(model: str) -> str:
    """Of a folder the last part; of a hub name the whole."""
    is_path = model.startswith(("/", ".", "~")) or model.count("/") > 1
    return PurePath(model).name if is_path else model


def effective_config(config: Any) -> dict[str, Any]:
    """Flat settings by vLLM's own field names; a setting this version lacks is absent."""
    out: dict[str, Any] = {}
    for part, names in (
        (config.scheduler_config, _SCHEDULER),
        (config.cache_config, _CACHE),
        (config.parallel_config, _PARALLEL),
        (config.model_config, _MODEL),
    ):
        out.update({n: _plain(getattr(part, n)) for n in names if hasattr(part, n)})
    speculative = getattr(config, "speculative_config", None)
    if speculative is not None:
        out["speculative_method"] = _plain(getattr(speculative, "method", None))
        out["num_speculative_tokens"] = _plain(getattr(speculative, "num_speculative_tokens", None))
    return out


def kv_config(scheduler: Any) -> dict[str, Any]:
    """The KV cache as built: blocks, block size in tokens, and one entry per group of layers."""
    kv = scheduler.kv_cache_config
    groups = []
    for group in kv.kv_cache_groups:
        spec = group.kv_cache_spec
        entry: dict[str, Any] = {"kind": type(spec).__name__, "layers": len(group.layer_names)}
        for name in ("block_size", "num_kv_heads", "head_size", "dtype", "sliding_window"):
            value = getattr(spec, name, None)
            if value is not None:
                entry[name] = _plain(value)
        groups.append(entry)
    return {
        "num_blocks": kv.num_blocks,
        "block_size": scheduler.block_size,
        "groups": groups,
    }


def model_card(config: Any) -> dict[str, Any]:
    """The model's config.json, without the path it was loaded from."""
    card: dict[str, Any] = config.model_config.hf_config.to_dict()
    return {k: v for k, v in card.items() if not k.startswith("_") and _is_json(v)}


def machine() -> dict[str, Any]:
    """The engine's machine: processor, memory and devices; no host or user name."""
    found: dict[str, Any] = {
        "cpu": _cpu_model() or platform.machine(),
        "num_cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "accelerators": [],
    }
    if not current_platform.is_cpu():
        found["accelerators"] = [
            {
                "name": current_platform.get_device_name(),
                "memory_bytes": current_platform.get_device_total_memory(),
            }
        ]
    return found


def _cpu_model() -> str | None:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return None


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(k, str) and _is_json(v) for k, v in value.items())
    if isinstance(value, list | tuple):
        return all(_is_json(v) for v in value)
    return value is None or isinstance(value, bool | int | float | str)
