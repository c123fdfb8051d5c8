"""What earlier trials of this run say about a cause: the only evidence that came from acting."""

from collections.abc import Mapping, Sequence

from rtopt.types import Cause, Evidence, Trial

LIFTED_BY: Mapping[Cause, tuple[str, ...]] = {
    Cause.SLOTS_FULL: ("max_num_active_seqs", "max_num_seqs"),
    Cause.TOKEN_BUDGET_FULL: ("max_num_scheduled_tokens", "max_num_batched_tokens"),
    Cause.LONG_PREFILL: ("max_num_scheduled_tokens", "long_prefill_token_threshold"),
}
"""Knobs that move the condition of a cause directly."""


def trial_evidence(cause: Cause, trials: Sequence[Trial]) -> tuple[Evidence, ...]:
    """Measured effect of each trial that moved a knob of this cause."""
    knobs = LIFTED_BY.get(cause, ())
    return tuple(
        Evidence(
            measure=f"trial_{trial.id}_effect_frac",
            value=trial.verdict.effect.value,
            unit="frac",
            supports=trial.verdict.keep,
            text=f"trial {trial.id} set {_values(trial)}: {trial.plan.objective} "
            f"{trial.verdict.effect.value:+.1%}, decision {trial.verdict.decision}",
        )
        for trial in trials
        if trial.verdict.effect is not None and any(k in trial.plan.change.knobs for k in knobs)
    )


def _values(trial: Trial) -> str:
    return ", ".join(f"{k} to {v}" for k, v in trial.plan.change.knobs.items())
