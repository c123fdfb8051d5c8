"""Running requests are thrown out and computed again."""

import numpy as np

from rtopt.attribute.check import Check
from rtopt.attribute.window import Window
from rtopt.errors import EvidenceError
from rtopt.types import Cause, Evidence, Finding

NAMES_FROM = 0.01
"""A preempting step is short, what it costs comes later: the thrown-out request is computed again
over many steps. One preempting step in a hundred, with requests of a hundred steps, is about one
recomputation per request."""


def look(w: Window) -> Finding:
    """Share of the busy time in steps that threw a request out.

    Raises:
        EvidenceError: No request finished, so nothing can be counted per request.
    """
    share = w.share(w.preempted_N > 0, w.preempted_N, what="preemptions were")
    finished = len(w.trace.requests)
    total = float(np.nansum(w.preempted_N))
    if not finished and total:
        raise EvidenceError(f"{total:.0f} preemptions, but no request finished in the window")
    per_request = total / finished if finished else 0.0
    return Finding(
        cause=Cause.PREEMPTION,
        share=share,
        evidence=(
            Evidence(
                measure="preempting_frac",
                value=share,
                unit="frac",
                threshold=NAMES_FROM,
                supports=share >= NAMES_FROM,
                text=f"steps that threw a request out took {share:.1%} of the busy time",
            ),
            Evidence(
                measure="preemptions",
                value=total,
                unit="count",
                threshold=1.0,
                supports=total >= 1,
                text=f"{total:.0f} preemptions, {per_request:.2g} per finished request",
            ),
        ),
    )


PREEMPTION = Check(cause=Cause.PREEMPTION, names_from=NAMES_FROM, look=look)
