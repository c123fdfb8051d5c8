"""Every slot is taken while requests wait."""

from rtopt.attribute.check import BINDS_FROM, Check
from rtopt.attribute.window import Mask, Window
from rtopt.types import Cause, Evidence, Finding


def slots_full(w: Window) -> Mask:
    """Mark the steps in which the batch is at the cap and somebody waits."""
    return (w.batch_N >= w.slots_N) & (w.waiting_N > 0)


def look(w: Window) -> Finding:
    """Share of the busy time with the cap reached and somebody waiting."""
    what = "running and waiting requests and the cap on running ones were"
    share = w.share(slots_full(w), w.batch_N, w.waiting_N, w.slots_N, what=what)
    slots = w.mean(w.slots_N, what="the cap on running requests was")
    batch = w.mean(w.batch_N, what="running requests were")
    waiting = w.mean(w.waiting_N, what="waiting requests were")
    return Finding(
        cause=Cause.SLOTS_FULL,
        share=share,
        evidence=(
            Evidence(
                measure="slots_full_frac",
                value=share,
                unit="frac",
                threshold=BINDS_FROM,
                supports=share >= BINDS_FROM,
                text=f"every one of the {slots:.4g} slots was taken while requests waited "
                f"for {share:.0%} of the busy time",
            ),
            Evidence(
                measure="running_mean",
                value=batch,
                unit="requests",
                threshold=slots,
                supports=batch >= 0.9 * slots,
                text=f"{batch:.3g} requests ran at once on average, {slots:.4g} may",
            ),
            Evidence(
                measure="waiting_mean",
                value=waiting,
                unit="requests",
                supports=waiting >= 1,
                text=f"{waiting:.3g} requests waited on average",
            ),
        ),
    )


SLOTS = Check(cause=Cause.SLOTS_FULL, names_from=BINDS_FROM, look=look)
