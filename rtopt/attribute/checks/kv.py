"""KV blocks are the limit."""

import numpy as np

from rtopt.attribute.check import BINDS_FROM, Check
from rtopt.attribute.window import Mask, Window
from rtopt.types import Cause, Evidence, Finding

FULL_FRAC = 0.95
"""vLLM keeps a watermark of free blocks and admits a prompt only when it fits whole, so requests
wait before the last block is gone."""


def kv_full(w: Window) -> Mask:
    """Mark the steps with nearly all blocks in use and somebody waiting or thrown out."""
    return (w.preempted_N > 0) | ((w.kv_N >= FULL_FRAC) & (w.waiting_N > 0))


def look(w: Window) -> Finding:
    """Share of the busy time in which KV memory held somebody back."""
    what = "KV use, preemptions and waiting requests were"
    share = w.share(kv_full(w), w.kv_N, w.preempted_N, w.waiting_N, what=what)
    mean = w.mean(w.kv_N, what="KV use was")
    most = float(np.nanmax(w.kv_N))
    return Finding(
        cause=Cause.KV_CAPACITY,
        share=share,
        evidence=(
            Evidence(
                measure="kv_full_frac",
                value=share,
                unit="frac",
                threshold=BINDS_FROM,
                supports=share >= BINDS_FROM,
                text=f"KV memory was {FULL_FRAC:.0%} full with requests waiting, or threw "
                f"requests out, for {share:.0%} of the busy time",
            ),
            Evidence(
                measure="kv_max",
                value=most,
                unit="frac",
                threshold=FULL_FRAC,
                supports=most >= FULL_FRAC,
                text=f"at most {most:.0%} of the KV blocks were in use",
            ),
            Evidence(
                measure="kv_mean",
                value=mean,
                unit="frac",
                threshold=FULL_FRAC,
                supports=mean >= FULL_FRAC,
                text=f"{mean:.0%} of the KV blocks were in use on average",
            ),
        ),
    )


KV = Check(cause=Cause.KV_CAPACITY, names_from=BINDS_FROM, look=look)
