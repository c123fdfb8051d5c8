"""Where the time of the steps went, as a table for a person."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

from rtopt.profile.ops.account import Account, check_matched

Row = tuple[str, str, str, str]
"""What, time per step in ms, share of the step, ops per step."""


def describe(accounts: Sequence[Account]) -> tuple[Row, ...]:
    """Classes of ops with most time first, then the host's gap, the whole step, and the layers.

    Raises:
        EvidenceError: There are no ops, or too much of their time is not matched.
    """
    unmatched_frac = check_matched(accounts)
    times: defaultdict[str, int] = defaultdict(int)
    counts: defaultdict[str, int] = defaultdict(int)
    for placed in (op for account in accounts for op in account.ops):
        name = placed.op_class.value if placed.op_class else "unknown op"
        times[name] += placed.op.dur_ns
        counts[name] += 1
    steps = len(accounts)
    step_ns = sum(a.step.window.dur_ns for a in accounts)
    rows = [
        _row(name, ns / steps, ns / step_ns, f"{counts[name] / steps:.0f}")
        for name, ns in sorted(times.items(), key=lambda item: -item[1])
    ]
    gap_ns = sum(a.gap_ns for a in accounts)
    rows.append(_row("host gap (Python, dispatch)", gap_ns / steps, gap_ns / step_ns, ""))
    rows.append(_row("step", step_ns / steps, 1.0, ""))
    unmatched_ns = sum(a.unmatched_ns for a in accounts)
    rows.append(
        ("of the ops, unmatched", f"{unmatched_ns / steps / 1e6:.3f}", f"{unmatched_frac:.1%}", "")
    )
    layers = [a.period.layers for a in accounts if a.period]
    rows.append(("layers found", "", "", f"{fmean(layers):g}" if layers else "none"))
    return tuple(rows)


def _row(name: str, ns: float, frac: float, count: str) -> Row:
    return name, f"{ns / 1e6:.3f}", f"{frac:.1%}", count
