"""A step's token budget is used up while requests wait."""

import numpy as np

from rtopt.attribute.check import BINDS_FROM, Check
from rtopt.attribute.window import Mask, Window
from rtopt.types import Cause, Evidence, Finding

FULL_FRAC = 0.98
"""The scheduler cannot always use the last tokens (blocks and encoder inputs are indivisible)."""


def budget_full(w: Window) -> Mask:
    """Mark the steps that use up their budget while somebody waits."""
    tokens_N = w.prefill_tokens_N + w.decode_tokens_N
    return (tokens_N >= FULL_FRAC * w.budget_N) & (w.waiting_N > 0)


def look(w: Window) -> Finding:
    """Share of the busy time with the budget used up and somebody waiting."""
    tokens_N = w.prefill_tokens_N + w.decode_tokens_N
    what = "scheduled tokens, waiting requests and the token budget were"
    share = w.share(budget_full(w), tokens_N, w.budget_N, w.waiting_N, what=what)
    budget = w.mean(w.budget_N, what="the token budget was")
    tokens = w.mean(tokens_N, what="scheduled tokens were")
    most = float(np.nanmax(tokens_N))
    return Finding(
        cause=Cause.TOKEN_BUDGET_FULL,
        share=share,
        evidence=(
            Evidence(
                measure="budget_full_frac",
                value=share,
                unit="frac",
                threshold=BINDS_FROM,
                supports=share >= BINDS_FROM,
                text=f"steps used {FULL_FRAC:.0%} or more of their {budget:.5g} tokens while "
                f"requests waited for {share:.0%} of the busy time",
            ),
            Evidence(
                measure="step_tokens_mean",
                value=tokens,
                unit="tokens",
                threshold=budget,
                supports=tokens >= BINDS_FROM * budget,
                text=f"a step held {tokens:.4g} tokens on average",
            ),
            Evidence(
                measure="step_tokens_max",
                value=most,
                unit="tokens",
                threshold=FULL_FRAC * budget,
                supports=most >= FULL_FRAC * budget,
                text=f"the fullest step held {most:.5g} tokens",
            ),
        ),
    )


BUDGET = Check(cause=Cause.TOKEN_BUDGET_FULL, names_from=BINDS_FROM, look=look)
