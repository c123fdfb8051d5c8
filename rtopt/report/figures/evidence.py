"""How the evidence grew from pair to pair, against the lines at which the gate decides."""

import math

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from rtopt.metrics import get
from rtopt.report.figures.canvas import BAD, BASE, CANDIDATE, CARD, MUTED, label, picture
from rtopt.report.section import Picture
from rtopt.stats import HARM_E, Rule
from rtopt.types import Trial

LARGEST = 1e9
"""Beyond this the height of the line says nothing more."""


def evidence_picture(trial: Trial, round_: int) -> Picture | None:
    """E-value after each pair on a log scale; None before the first one."""
    if not trial.e_values:
        return None
    plan = trial.plan
    keep_e = Rule(
        alpha=plan.alpha, prior=plan.prior, min_pairs=plan.min_pairs, max_pairs=plan.max_pairs
    ).keep_e
    # Evidence begins with the first pair; a later one may lack it only when it lacks data.
    x = list(range(1, len(trial.e_values) + 1))
    y = [min(e, LARGEST) for e in trial.e_values]
    is_gain = _gains(trial)

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot(x, y, color=MUTED, linewidth=1.4)
        for pair, e in zip(x, y, strict=True):
            fill, edge = (CANDIDATE, CANDIDATE) if is_gain.get(pair, True) else (CARD, BAD)
            axes.plot([pair], [e], "s", color=fill, markeredgecolor=edge, markersize=7)
        axes.plot([], [], "s", color=CANDIDATE, label="mean so far better")
        if not all(is_gain.get(pair, True) for pair in x):
            axes.plot([], [], "s", color=CARD, markeredgecolor=BAD, label="mean so far worse")
        for height, color, text in (
            (keep_e, BASE, f"better: keep from {keep_e:.3g}"),
            (HARM_E, BAD, f"worse: stop from {HARM_E:.3g}"),
        ):
            axes.axhline(height, color=color, linewidth=1.3, linestyle="--")
            axes.annotate(
                text,
                (0.5, height),
                xytext=(4, 3),
                textcoords="offset points",
                ha="left",
                color=color,
                fontsize=10,
            )
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_ylim(min(0.1, *y) / 1.5, max(keep_e * 4, *y) * 2)
        axes.set_xlim(0.5, max(x[-1], plan.min_pairs) + 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
        axes.legend(loc="lower right")
        label(axes, x="pairs seen", y="evidence (e-value, log scale)")

    return picture(
        paint,
        name=f"evidence{round_}",
        title="Evidence after each pair",
        text=f"The e-value reached {trial.e_values[-1]:.3g} after {len(x)} pairs; a keep needs "
        f"{keep_e:.3g}, a stop for harm {HARM_E:.3g}.",
    )


def _gains(trial: Trial) -> dict[int, bool]:
    """Pairs seen to whether the mean log ratio so far speaks for the candidate."""
    objective = trial.plan.objective
    sign = 1.0 if get(objective).better == "higher" else -1.0
    values: dict[int, dict[str, float]] = {}
    for block in trial.blocks:
        value = block.metrics.get(objective)
        if value is not None and value > 0:
            values.setdefault(block.pair, {})[block.arm] = value
    found, total = {}, 0.0
    whole = (v for _, v in sorted(values.items()) if len(v) == 2)
    for seen, arms in enumerate(whole, start=1):
        total += sign * math.log(arms["candidate"] / arms["base"])
        found[seen] = total > 0
    return found
