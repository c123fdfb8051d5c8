"""Each pair of blocks: its two values, connected."""

from matplotlib.figure import Figure

from rtopt.metrics import get
from rtopt.report.figures.canvas import BASE, CANDIDATE, MUTED, label, picture
from rtopt.report.section import Picture
from rtopt.types import Arm, Trial


def pair_picture(trial: Trial, round_: int) -> Picture | None:
    """Old and new value of the objective per pair; None without a complete pair."""
    objective = trial.plan.objective
    found: dict[int, dict[Arm, float]] = {}
    for block in trial.blocks:
        if objective in block.metrics:
            found.setdefault(block.pair, {})[block.arm] = block.metrics[objective]
    both = {pair + 1: (v["base"], v["candidate"]) for pair, v in found.items() if len(v) == 2}
    if not both:
        return None
    told = get(objective)
    name = f"{told.title[0].lower()}{told.title[1:]}"
    name += "" if told.unit.endswith("/s") else f", {told.unit}"

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        x = sorted(both)
        for pair in x:
            axes.plot([pair, pair], both[pair], color=MUTED, linewidth=1.4)
        base, candidate = [both[p][0] for p in x], [both[p][1] for p in x]
        axes.plot(x, base, "o", color=BASE, markersize=7, label="old value")
        axes.plot(x, candidate, "s", color=CANDIDATE, markersize=7, label="new value")
        axes.set_ylim(bottom=0, top=max(*base, *candidate) * 1.25)
        axes.set_xlim(min(x) - 0.5, max(x) + 0.5)
        axes.set_xticks(x[:: -(-len(x) // 12)])
        axes.legend(loc="upper right", ncols=2, handletextpad=0.2)
        label(axes, x="pair", y=name)

    better = sum((c > b) == (told.better == "higher") for b, c in both.values())
    return picture(
        paint,
        name=f"pairs{round_}",
        title="Every pair of blocks",
        text=f"{told.title} in {len(both)} pairs; the new value was better in {better} of them.",
    )
