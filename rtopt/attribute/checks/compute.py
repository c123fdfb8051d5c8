"""The model's run itself takes the time: another sequence adds about its full cost."""

import numpy as np
from numpy.typing import NDArray

from rtopt.attribute.check import Check
from rtopt.attribute.jackknife import jackknife
from rtopt.attribute.window import Window
from rtopt.errors import EvidenceError
from rtopt.types import Cause, Evidence, Finding

NAMES_FROM = 0.8
"""Above this another sequence adds at least 80 % of its share of the step, so batching more can
bring at most 25 % (1 / 0.8) however many are added."""
MAX_HALF_WIDTH = 0.15
"""An interval wider than this to either side cannot tell 0.8 from 0.5: no answer then."""


def look(w: Window) -> Finding:
    """Share of a decode step's run that grows with the batch: 1 - fixed part / whole.

    The fixed part is the intercept of run time over decoding requests. The marginal cost of one
    more sequence, divided by the average one's share of the step, is the same number. Only steps
    without prefill are used: at a cap that is always reached, prefill requests and decoders add up
    to the cap, and a fit over both cannot tell the fixed part from theirs.

    Raises:
        EvidenceError: The batch does not vary enough to part fixed from growing cost.
    """
    is_async = w.trace.header.engine.config.get("async_scheduling") is True
    run_N = w.wall_N if is_async else w.run_N
    needs = (run_N, w.decode_requests_N, w.prefill_tokens_N)
    known_N = w.known(*needs, what="run time and the requests of a step were")
    plain_N = known_N & (w.prefill_tokens_N == 0) & (w.decode_requests_N > 0)
    x_N, y_N = w.decode_requests_N[plain_N], run_N[plain_N]

    def growing_frac(rows: NDArray[np.intp]) -> float:
        spread_N = x_N[rows] - x_N[rows].mean()
        if not spread_N.any():
            raise EvidenceError(
                f"{x_N[rows][0]:.0f} requests decoded in every comparable step, so fixed and "
                "growing cost cannot be told apart"
            )
        slope = float(spread_N @ y_N[rows] / (spread_N @ spread_N))
        return slope * float(x_N[rows].mean()) / float(y_N[rows].mean())

    growing = jackknife(growing_frac, len(y_N))
    half = (growing.high - growing.low) / 2
    if half > MAX_HALF_WIDTH:
        raise EvidenceError(
            f"the batch varied too little: {growing.value:.0%} of the run grows with it, "
            f"give or take {half:.0%}, at most {MAX_HALF_WIDTH:.0%} wanted",
            half_width=half,
        )
    share = min(max(growing.value, 0.0), 1.0)
    run_ms = float(y_N.mean()) * 1e3
    return Finding(
        cause=Cause.COMPUTE,
        share=share,
        evidence=(
            Evidence(
                measure="growing_frac",
                value=growing.value,
                unit="frac",
                threshold=NAMES_FROM,
                supports=share >= NAMES_FROM,
                text=f"another sequence adds {share:.0%} of its share of a decode step (95 % "
                f"interval {growing.low:.0%} to {growing.high:.0%}); {1 - share:.0%} of the run "
                "is paid once however many run",
            ),
            Evidence(
                measure="run_ms_mean",
                value=run_ms,
                unit="ms",
                supports=share >= NAMES_FROM,
                text=f"a decode step ran for {run_ms:.3g} ms with {x_N.mean():.3g} requests on "
                "average",
            ),
        ),
    )


COMPUTE = Check(cause=Cause.COMPUTE, names_from=NAMES_FROM, look=look)
