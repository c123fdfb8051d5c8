"""How many requests may run at once.

More of them read each weight for more tokens, until KV memory is full or the latency target is
missed. Lowering it throws nobody out: requests that run finish, and fewer are admitted.
"""

from rtopt import Cause, Change, Context, Envelope, Lever


def applies(ctx: Context) -> str | None:
    """Say why the lever can't be used here, or None when it can."""
    if "max_num_active_seqs" not in ctx.knobs:
        return "the engine does not report max_num_active_seqs (vLLM before 0.31)"
    if "max_num_seqs" not in ctx.knobs:
        return "the engine does not report max_num_seqs, the ceiling of this knob"
    if int(ctx.knobs["max_num_seqs"]) < 2:
        return "the engine was started with max_num_seqs=1, so there is nothing to choose"
    return None


def envelope(ctx: Context) -> Envelope:
    """Floor and ceiling of the values that can't stop or kill the engine."""
    return Envelope(low=1, high=int(ctx.knobs["max_num_seqs"]))


def propose(ctx: Context) -> list[Change]:
    """Offer steps up to the start-up limit and two down; down first where compute is the limit."""
    now = int(ctx.knobs["max_num_active_seqs"])
    limits = envelope(ctx)
    low, high = int(limits.low), int(limits.high)
    up = [now * 2, now * 4, high]
    down = [now // 2, now // 4]
    ladder = down + up if Cause.COMPUTE in ctx.causes else up + down
    steps = dict.fromkeys(n for n in ladder if low <= n <= high and n != now)
    return [ctx.change(max_num_active_seqs=n, reason=f"from {now} to {n}") for n in steps]


LEVER = Lever(
    id="max_num_active_seqs",
    title="Requests running at once",
    knobs=("max_num_active_seqs",),
    scope="live",
    targets=(Cause.SLOTS_FULL, Cause.QUEUE_GROWING),
    never_for=(Cause.KV_CAPACITY, Cause.PREEMPTION),
    risks=("latency", "memory"),
    source="vLLM 0.32, SchedulerConfig.max_num_active_seqs (vllm/config/scheduler.py)",
    flag="--max-num-active-seqs",
    applies=applies,
    envelope=envelope,
    propose=propose,
)
