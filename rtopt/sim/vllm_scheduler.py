"""vLLM's real Scheduler, driven from outside: no copy of its rules is kept here."""

from collections.abc import Sequence
from typing import Any

from vllm import __version__
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import get_hash_fn_by_name
from vllm.v1.core.kv_cache_utils import (
    get_request_block_hasher,
    init_none_hash,
    resolve_kv_cache_block_sizes,
)
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

from rtopt.cost import StepLoad
from rtopt.sim.batch import Batch, Output
from rtopt.sim.vllm_config import engine_config, kv_config
from rtopt.types import EngineInfo, Value

VERSION: str = __version__
_TOKEN = 7
"""What every request says, always; the scheduler only counts tokens."""


class EngineScheduler:
    """The scheduler of the recorded engine's configuration, and the requests in it."""

    def __init__(self, info: EngineInfo) -> None:
        config = engine_config(info)
        kv = kv_config(info)
        block_size, hash_block_size = resolve_kv_cache_block_sizes(kv, config)
        self.is_async = bool(info.config.get("async_scheduling"))
        self._scheduler: Any = (AsyncScheduler if self.is_async else Scheduler)(
            config,
            kv,
            StructuredOutputManager(config),
            block_size=block_size,
            hash_block_size=hash_block_size,
        )
        self._hasher: Any = None
        if config.cache_config.enable_prefix_caching:
            hash_fn = get_hash_fn_by_name(config.cache_config.prefix_caching_hash_algo)
            init_none_hash(hash_fn)
            self._hasher = get_request_block_hasher(hash_block_size, hash_fn)
        self._prompts = 0

    @property
    def running(self) -> int:
        """Requests in the batch."""
        return int(self._scheduler.get_request_counts()[0])

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return int(self._scheduler.get_request_counts()[1])

    @property
    def kv_frac(self) -> float:
        """KV blocks in use, 0..1."""
        return float(self._scheduler.get_kv_cache_usage())

    @property
    def num_free_blocks(self) -> int:
        """KV blocks that nobody holds."""
        return int(self._scheduler.kv_cache_manager.block_pool.get_num_free_blocks())

    @property
    def has_requests(self) -> bool:
        """Whether any request is unfinished."""
        return bool(self._scheduler.get_num_unfinished_requests() > 0)

    def get(self, path: Sequence[str]) -> Value:
        """Read an attribute of the scheduler."""
        holder = self._holder(path)
        value: Value = getattr(holder, path[-1])
        return value

    def set(self, path: Sequence[str], value: Value) -> None:
        """Write an attribute of the scheduler, between two steps."""
        setattr(self._holder(path), path[-1], value)

    def has(self, path: Sequence[str]) -> bool:
        """Whether this vLLM has the attribute."""
        return hasattr(self._holder(path), path[-1])

    def add(self, request_id: str, *, prompt_tokens: int, shared: int, max_tokens: int) -> None:
        """Queue a request whose first `shared` prompt tokens others have too; the rest is new."""
        self._prompts += 1
        # Block hashes are chained, so one new number makes all blocks from there on new.
        prompt = [0] * shared + [self._prompts] + [0] * (prompt_tokens - shared - 1)
        self._scheduler.add_request(
            Request(
                request_id,
                prompt,
                SamplingParams(max_tokens=max_tokens, ignore_eos=True),
                None,
                arrival_time=float(self._prompts),
                block_hasher=self._hasher,
            )
        )

    def schedule(self) -> Batch:
        """Let vLLM decide what the next step computes."""
        out = self._scheduler.schedule()
        requests = self._scheduler.requests
        prefill_requests = prefill_tokens = decode_requests = decode_tokens = 0
        samples = []
        for request_id, tokens in out.num_scheduled_tokens.items():
            request = requests[request_id]
            samples.append(not request.is_prefill_chunk)
            if request.num_computed_tokens - tokens >= request.num_prompt_tokens or (
                request.num_output_tokens > 0
            ):
                decode_requests += 1
                decode_tokens += tokens
            else:
                prefill_requests += 1
                prefill_tokens += tokens
        return Batch(
            load=StepLoad(
                prefill_requests=prefill_requests,
                prefill_tokens=prefill_tokens + decode_tokens - decode_requests,
                decode_requests=decode_requests,
            ),
            decode_tokens=decode_tokens,
            ids=tuple(out.num_scheduled_tokens),
            samples=tuple(samples),
            started=tuple(new.req_id for new in out.scheduled_new_reqs),
            preempted=len(out.preempted_req_ids or ()),
            scheduled=out,
        )

    def finish(self, batch: Batch) -> list[Output]:
        """Hand the step's tokens back to vLLM; one output per request that made a token."""
        result = ModelRunnerOutput(
            req_ids=list(batch.ids),
            req_id_to_index={request_id: i for i, request_id in enumerate(batch.ids)},
            sampled_token_ids=[[_TOKEN] if makes else [] for makes in batch.samples],
        )
        by_client = self._scheduler.update_from_output(batch.scheduled, result)
        return [
            Output(
                id=output.request_id,
                is_finished=output.finish_reason is not None,
                cached_tokens=_cached(output),
            )
            for outputs in by_client.values()
            for output in outputs.outputs
            if output.new_token_ids
        ]

    def compute_all_at_once(self) -> list[Output]:
        """One step without limits: every queued request computes its prompt and makes a token.

        It puts requests back to where they were when a recording began.
        """
        limits = (
            ("max_num_scheduled_tokens",),
            ("scheduler_config", "max_num_batched_tokens"),
            ("scheduler_config", "long_prefill_token_threshold"),
        )
        before = [self.get(path) for path in limits]
        for path, lifted in zip(limits, (2**40, 2**40, 0), strict=True):
            self.set(path, lifted)
        try:
            return self.finish(self.schedule())
        finally:
            for path, value in zip(limits, before, strict=True):
                self.set(path, value)

    def _holder(self, path: Sequence[str]) -> Any:
        holder = self._scheduler
        for name in path[:-1]:
            holder = getattr(holder, name)
        return holder


def _cached(output: Any) -> int | None:
    stats = getattr(output, "prefill_stats", None)
    return None if stats is None else int(stats.num_cached_tokens)
