"""The engine could do more; nobody asks."""

from rtopt.attribute.check import Check
from rtopt.attribute.window import Window
from rtopt.types import Cause, Evidence, Finding

NAMES_FROM = 0.5
"""Most of the time."""


def look(w: Window) -> Finding:
    """Share of the window (idle time included) in which nobody waited and slots were free.

    The only share that is of the whole window: idle time is what it is about.
    """
    free_N = (w.waiting_N == 0) & (w.batch_N < w.slots_N)
    what = "running and waiting requests and the cap on running ones were"
    free = w.share(free_N, w.batch_N, w.waiting_N, w.slots_N, what=what)
    share = w.idle_frac + (1 - w.idle_frac) * free
    batch = w.mean(w.batch_N, what="running requests were")
    slots = w.mean(w.slots_N, what="the cap on running requests was")
    evidence = [
        Evidence(
            measure="unasked_frac",
            value=share,
            unit="frac",
            threshold=NAMES_FROM,
            supports=share >= NAMES_FROM,
            text=f"nobody waited and slots were free for {share:.0%} of the window "
            f"({batch:.3g} of {slots:.4g} taken on average while busy)",
        ),
        Evidence(
            measure="idle_frac",
            value=w.idle_frac,
            unit="frac",
            supports=w.idle_frac >= NAMES_FROM,
            text=f"the engine was idle for {w.idle_frac:.0%} of the window",
        ),
    ]
    load = w.trace.header.load
    if load is not None and load.clients is not None:
        evidence.append(
            Evidence(
                measure="clients",
                value=float(load.clients),
                unit="clients",
                threshold=slots,
                supports=load.clients < slots,
                text=f"{load.clients} clients offer the load, {slots:.4g} slots serve it",
            )
        )
    return Finding(cause=Cause.LOAD_TOO_LOW, share=share, evidence=tuple(evidence))


LOAD = Check(cause=Cause.LOAD_TOO_LOW, names_from=NAMES_FROM, look=look)
