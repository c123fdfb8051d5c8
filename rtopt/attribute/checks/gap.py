"""Time passes between steps although there is work.

Measured between the end of one run and the end of the next while requests were left. How many
requests ran says nothing about it: few of them may mean a slow host or few callers.
"""

import numpy as np

from rtopt.attribute.check import Check
from rtopt.attribute.window import Window
from rtopt.errors import EvidenceError
from rtopt.types import Cause, Evidence, Finding

NAMES_FROM = 0.15
"""Halving a gap of 15 % brings 7 %; less than that is within the drift of a machine (8 % over
minutes here)."""


def look(w: Window) -> Finding:
    """Share of the busy time between the model's runs.

    Raises:
        EvidenceError: Run times overlap (asynchronous scheduling) or were not recorded.
    """
    if w.trace.header.engine.config.get("async_scheduling") is True:
        raise EvidenceError(
            "asynchronous scheduling: runs overlap, so the time between them is not theirs to tell"
        )
    known_N = w.known(w.run_N, what="the model's run time was") & w.follows_work_N
    if not known_N.any():
        raise EvidenceError("no step follows directly on another one with work left")
    # Signed sum: `t_ns` is read on receipt, so a late reading adds to one step what it takes
    # from the next.
    gap_s = float((w.wall_N - w.run_N)[known_N].sum())
    share = max(gap_s, 0.0) / w.busy_s
    each_ms = gap_s / int(known_N.sum()) * 1e3
    run_ms = float(np.nanmean(w.run_N)) * 1e3
    return Finding(
        cause=Cause.HOST_GAP,
        share=share,
        evidence=(
            Evidence(
                measure="host_gap_frac",
                value=share,
                unit="frac",
                threshold=NAMES_FROM,
                supports=share >= NAMES_FROM,
                text=f"{share:.0%} of the busy time passed between the model's runs although "
                "work was left",
            ),
            Evidence(
                measure="host_gap_ms_mean",
                value=each_ms,
                unit="ms",
                threshold=NAMES_FROM * run_ms,
                supports=each_ms >= NAMES_FROM * run_ms,
                text=f"{each_ms:.3g} ms between runs of {run_ms:.3g} ms",
            ),
        ),
    )


GAP = Check(cause=Cause.HOST_GAP, names_from=NAMES_FROM, look=look)
