"""The stat logger plug-in: one line per engine step and per finished request, while asked to.

The numbers of a step come from the engine (its iteration details, switched on for the time of a
recording); this class runs in the front end and is handed them by vLLM.
"""

import logging
import time
from collections import deque
from typing import Any

from vllm.v1.metrics.loggers import StatLoggerBase

from .border import guarded

CAPACITY = 100_000
"""Lines kept for a slow reader; what falls out is counted."""


class Hub:
    """Lines of this process, for every recording that is open."""

    def __init__(self) -> None:
        self.listeners = 0
        self.lines: deque[tuple[int, dict[str, Any]]] = deque(maxlen=CAPACITY)
        self.seq = 0
        self.cost_ns = 0
        self.steps = 0

    def put(self, line: dict[str, Any]) -> None:
        """Add one line."""
        self.seq += 1
        self.lines.append((self.seq, line))

    def since(self, seq: int) -> tuple[list[dict[str, Any]], int, int]:
        """Lines after `seq`, the new position, and how many were lost in between."""
        fresh: list[dict[str, Any]] = []
        first = self.seq + 1
        for number, line in reversed(self.lines):
            if number <= seq:
                break
            fresh.append(line)
            first = number
        fresh.reverse()
        lost = first - seq - 1
        return fresh, self.seq, lost


HUB = Hub()


class _NoStepLines(logging.Filter):
    """Drops the log line that vLLM writes for each step while step details are on."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith("%sIteration(")


class StepRecorder(StatLoggerBase):
    """Turns what vLLM hands to a stat logger into trace lines."""

    def __init__(
        self,
        vllm_config: Any,  # noqa: ARG002 - vLLM's signature
        engine_index: int = 0,
    ) -> None:
        self._start(engine_index)

    @guarded("recorder_init")
    def _start(self, engine_index: int) -> None:
        self._engine = engine_index
        logger = logging.getLogger("vllm.v1.metrics.loggers")
        if not any(isinstance(f, _NoStepLines) for f in logger.filters):
            logger.addFilter(_NoStepLines())

    @guarded("log_engine_initialized")
    def log_engine_initialized(self) -> None:
        """Nothing to say: rtopt does not log in the engine."""

    @guarded("record")
    def record(
        self,
        scheduler_stats: Any,
        iteration_stats: Any,
        mm_cache_stats: Any = None,  # noqa: ARG002 - vLLM's signature
        engine_idx: int = 0,
    ) -> None:
        """Keep one step, and each request that it finished."""
        if not HUB.listeners:
            return
        began = time.perf_counter_ns()
        now_ns = time.monotonic_ns()
        details = getattr(scheduler_stats, "iteration_details", None)
        if details is not None or iteration_stats is not None:
            HUB.put(_step(now_ns, engine_idx, scheduler_stats, iteration_stats, details))
        if iteration_stats is not None:
            # vLLM stamps the step in wall time; requests are placed on the monotonic clock by it.
            stamp_ns = now_ns - int((time.time() - iteration_stats.iteration_timestamp) * 1e9)
            for done in iteration_stats.finished_requests:
                HUB.put(_request(stamp_ns, done))
        HUB.steps += 1
        HUB.cost_ns += time.perf_counter_ns() - began


def _step(now_ns: int, engine: int, stats: Any, iteration: Any, details: Any) -> dict[str, Any]:
    line: dict[str, Any] = {"kind": "step", "t_ns": now_ns, "engine": engine}
    if details is not None:
        line["index"] = details.iteration_index
        line["dur_ns"] = int(details.elapsed_ms * 1e6)
        line["prefill_requests"] = details.num_ctx_requests
        line["prefill_tokens"] = details.num_ctx_tokens
        line["decode_requests"] = details.num_generation_requests
        line["decode_tokens"] = details.num_generation_tokens
    if stats is not None:
        line["running"] = stats.num_running_reqs
        line["waiting"] = stats.num_waiting_reqs + stats.num_skipped_waiting_reqs
        line["kv_frac"] = round(stats.kv_cache_usage, 5)
    if iteration is not None:
        line["preempted"] = iteration.num_preempted_reqs
        line["output_tokens"] = iteration.num_generation_tokens
        line["ttft_ms"] = [round(s * 1e3, 3) for s in iteration.time_to_first_tokens_iter]
        line["itl_ms"] = [round(s * 1e3, 3) for s in iteration.inter_token_latencies_iter]
    return line


def _request(stamp_ns: int, done: Any) -> dict[str, Any]:
    return {
        "kind": "request",
        "id": done.request_id or "",
        "arrival_ns": stamp_ns - int(done.e2e_latency * 1e9),
        "finished_ns": stamp_ns,
        "prompt_tokens": done.num_prompt_tokens,
        "output_tokens": done.num_generation_tokens,
        "e2e_ms": round(done.e2e_latency * 1e3, 3),
        "queued_ms": round(done.queued_time * 1e3, 3),
        "prefill_ms": round(done.prefill_time * 1e3, 3),
        "decode_ms": round(done.decode_time * 1e3, 3),
        "cached_tokens": done.num_cached_tokens,
        "max_tokens": done.max_tokens_param,
        "preemptions": done.num_preemptions,
        "finish": str(done.finish_reason),
    }
