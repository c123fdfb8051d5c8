"""Lines of timestamp, input_length, output_length, hash_ids: Mooncake's traces, vLLM's timed_trace.

The lines do not say their unit of time nor the length of a block; both are worked out and noted.
"""

import json
from math import ceil
from pathlib import Path
from typing import Any, Final

from rtopt.traffic.formats.number import seconds_to_ns
from rtopt.traffic.formats.own import write_lines
from rtopt.traffic.formats.rows import Rows
from rtopt.types import Workload

NAME: Final = "timed_trace"
_KEYS: Final = ("timestamp", "input_length", "output_length")
_COMMON: Final = (512, 16)
"""Block lengths of Mooncake's traces, and of Bailian's that vLLM's defaults fit."""


def recognises(head: str) -> bool:
    """Whether the first line has their keys."""
    return head.lstrip().startswith("{") and all(f'"{key}"' in head for key in _KEYS)


# in:   {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 2353]}
def read(text: str, path: Path) -> Workload:
    """The requests, with those blocks that a prompt fills whole."""
    rows = Rows(path)
    found: list[tuple[str, dict[str, Any]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            rows.damage(f"line {number}", "no whole JSON")
            continue
        if isinstance(data, dict):
            found.append((f"line {number}", data))
        else:
            rows.damage(f"line {number}", "no object")
    block_tokens = _block_tokens([data for _, data in found])
    is_seconds = block_tokens == 16 or any(type(d.get("timestamp")) is float for _, d in found)
    per_s = 1 if is_seconds else 1000
    unit = "seconds" if is_seconds else "milliseconds"
    rows.notes.append(
        f"timestamps taken as {unit}"
        + (f", blocks as {block_tokens} tokens each" if block_tokens else "")
    )
    for where, data in found:
        rows.add(
            where,
            seconds_to_ns(data.get("timestamp"), per_s=per_s),
            data.get("input_length"),
            data.get("output_length"),
            data.get("hash_ids", ()),
        )
    return rows.workload("timed_trace" if is_seconds else "mooncake", block_tokens=block_tokens)


def write_timed_trace(workload: Workload, path: Path) -> str:
    """Write for `vllm bench serve --dataset-name timed_trace`, and say with which options.

    vLLM makes a prompt from its blocks alone, so what is no shared block gets blocks of its own.

    Raises:
        UsageError: It cannot be written there.
    """
    size = workload.block_tokens or _COMMON[0]
    fresh = 1 + max((block for ask in workload.asks for block in ask.blocks), default=-1)
    lines = []
    for ask in workload.asks:
        own = ceil(ask.prompt_tokens / size) - len(ask.blocks)
        ids = [*ask.blocks, *range(fresh, fresh + own)]
        fresh += own
        line = {
            "timestamp": ask.arrival_ns / 1e9,
            "input_length": ask.prompt_tokens,
            "output_length": ask.output_tokens,
            "hash_ids": ids,
        }
        lines.append(json.dumps(line))
    write_lines(lines, path)
    return (
        f"{len(lines)} requests for: PYTHONHASHSEED=0 vllm bench serve --dataset-name timed_trace"
        f" --dataset-path {path.name} --timed-trace-chunk-hash-size {size}"
        " --timed-trace-sec-multiplier 1"
    )


def _block_tokens(lines: list[dict[str, Any]]) -> int | None:
    """The block length at which every prompt has as many ids as blocks; None: there are no ids."""
    pairs = [
        (data["input_length"], len(data["hash_ids"]))
        for data in lines
        if type(data.get("input_length")) is int
        and isinstance(data.get("hash_ids"), list)
        and data["hash_ids"]
    ]
    # A prompt of p tokens with n ids: n - 1 < p / size <= n.
    low = max((ceil(p / n) for p, n in pairs), default=0)
    high = min((ceil(p / (n - 1)) - 1 for p, n in pairs if n > 1), default=low)
    if low < 1:
        return None
    return next((size for size in _COMMON if low <= size <= max(low, high)), low)
