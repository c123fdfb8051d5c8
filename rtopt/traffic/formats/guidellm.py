"""GuideLLM's benchmark report as JSON: every request with its start and the server's counts."""

import json
from pathlib import Path
from typing import Any, Final

from rtopt.errors import TraceError
from rtopt.traffic.formats.number import seconds_to_ns
from rtopt.traffic.formats.rows import Rows
from rtopt.types import Workload

NAME: Final = "guidellm"


def recognises(head: str) -> bool:
    """Whether it begins as one object with their list of benchmarks."""
    return head.lstrip().startswith("{") and '"benchmarks"' in head


# in:   {"benchmarks": [{"requests": {"incomplete": [...], "errored": [...], "successful": [
#        {"request_start_time": 1730000000.1, "prompt_tokens": 256, "output_tokens": 128, ...}]}}]}
def read(text: str, path: Path) -> Workload:
    """The successful requests of all benchmarks in the file, one after another.

    Raises:
        TraceError: No JSON, or none of theirs.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path}: not whole JSON, so nothing of it is readable") from error
    found = data.get("benchmarks") if isinstance(data, dict) else None
    if not isinstance(found, list):
        raise TraceError(f"{path}: no list of benchmarks, wanted a report of GuideLLM")
    rows = Rows(path)
    for number, benchmark in enumerate(found):
        _read_one(rows, f"benchmark {number}", benchmark)
    if len(found) > 1:
        rows.notes.append(f"all {len(found)} benchmarks of the file, one after another")
    return rows.workload(NAME)


def _read_one(rows: Rows, where: str, benchmark: Any) -> None:
    requests = benchmark.get("requests") if isinstance(benchmark, dict) else None
    if not isinstance(requests, dict):
        rows.damage(where, "no requests (written without them?)")
        return
    rows.unseen += sum(_length(requests.get(kind)) for kind in ("incomplete", "errored"))
    successful = requests.get("successful")
    for number, request in enumerate(successful if isinstance(successful, list) else ()):
        if not isinstance(request, dict):
            rows.damage(f"{where}, request {number}", "no object")
            continue
        start = request.get("request_start_time", request.get("start_time"))
        rows.add(
            f"{where}, request {number}",
            seconds_to_ns(start),
            request.get("prompt_tokens"),
            request.get("output_tokens"),
        )


def _length(part: Any) -> int:
    return len(part) if isinstance(part, list) else 0
