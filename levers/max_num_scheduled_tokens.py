"""How many tokens one step may compute.

A large budget finishes long prompts in few steps; a small one keeps each step short, so requests
that decode beside a long prompt wait less between tokens, at the price of throughput.
"""

from rtopt import Cause, Change, Context, Envelope, Lever


def applies(ctx: Context) -> str | None:
    """Say why the lever can't be used here, or None when it can."""
    needed = ("max_num_scheduled_tokens", "max_num_batched_tokens", "max_num_seqs")
    absent = [name for name in needed if name not in ctx.knobs]
    if absent:
        return f"the engine does not report {', '.join(absent)}"
    if "enable_chunked_prefill" not in ctx.knobs and "max_model_len" not in ctx.knobs:
        return "the engine reports neither enable_chunked_prefill nor max_model_len, so no floor"
    limits = envelope(ctx)
    if limits.low >= limits.high:
        return (
            f"the floor of {limits.low:.0f} tokens that can't block the queue"
            f" reaches the ceiling of {limits.high:.0f}"
        )
    return None


def envelope(ctx: Context) -> Envelope:
    """Floor and ceiling of the values that can't stop or kill the engine.

    The floor holds one token, and its drafts, for every request that may run; the longest prompt
    where prompts can't be split; and the aligned block of a model with recurrent state.
    """
    knobs = ctx.knobs
    # Absent means off: the engine reports these only with a draft model or recurrent layers.
    drafts = int(knobs.get("num_speculative_tokens", 0))
    floors = [int(knobs["max_num_seqs"]) * (1 + drafts), int(knobs.get("mamba_block_size", 0))]
    if not knobs.get("enable_chunked_prefill", False):
        floors.append(int(knobs["max_model_len"]))
    return Envelope(low=max(floors), high=int(knobs["max_num_batched_tokens"]))


def propose(ctx: Context) -> list[Change]:
    """Offer steps down to the floor and up to the start-up limit, likeliest first."""
    now = int(ctx.knobs["max_num_scheduled_tokens"])
    limits = envelope(ctx)
    low, high = int(limits.low), int(limits.high)
    up = [now * 2, now * 4, high]
    down = [now // 2, now // 4, low]
    ladder = up + down if Cause.TOKEN_BUDGET_FULL in ctx.causes else down + up
    steps = dict.fromkeys(n for n in ladder if low <= n <= high and n != now)
    return [ctx.change(max_num_scheduled_tokens=n, reason=f"from {now} to {n}") for n in steps]


LEVER = Lever(
    id="max_num_scheduled_tokens",
    title="Tokens computed per step",
    knobs=("max_num_scheduled_tokens",),
    scope="live",
    targets=(Cause.TOKEN_BUDGET_FULL, Cause.LONG_PREFILL),
    never_for=(Cause.KV_CAPACITY, Cause.PREEMPTION),
    risks=("latency",),
    source="vLLM 0.32, SchedulerConfig.max_num_scheduled_tokens (vllm/config/scheduler.py)",
    flag="--max-num-scheduled-tokens",
    applies=applies,
    envelope=envelope,
    propose=propose,
)
