"""From a matplotlib drawing to SVG that lives inside a page: its colours are the page's own.

Colours are drawn as stand-ins and then replaced by CSS variables, so that a figure follows light
and dark mode; text stays text.
"""

import io
import re
from collections.abc import Callable
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rtopt.report.section import Picture

INK, MUTED, LINE, BASE, CANDIDATE, BAD, CARD = (f"#0{n}0{n}0{n}" for n in range(1, 8))
"""Stand-ins; `CSS` says what each becomes."""
CSS = {
    INK: "currentColor",
    MUTED: "var(--muted)",
    LINE: "var(--line)",
    BASE: "var(--base)",
    CANDIDATE: "var(--candidate)",
    BAD: "var(--bad)",
    CARD: "var(--card)",
}
WIDE = (9.6, 3.9)
HALF = (5.4, 3.5)
NARROW = (4.4, 3.5)
"""Inches at 72 dots: the width that a phone shows without shrinking the text below 10 px."""

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 11,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": LINE,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "figure.facecolor": "none",
    "legend.frameon": False,
    "legend.fontsize": 10.5,
    "axes.unicode_minus": True,
}


def picture(
    paint: Callable[[Figure], None],
    *,
    name: str,
    title: str,
    text: str,
    size: tuple[float, float] = HALF,
    narrow: tuple[float, float] | None = NARROW,
) -> Picture:
    """Paint a figure, and once more for a narrow screen.

    Args:
        paint: Draws onto an empty figure.
        name: Unique on the page; ids inside the SVG begin with it.
        title: Shown above.
        text: What it shows, in words.
        size: Inches.
        narrow: Inches on a narrow screen; None: the same picture.
    """
    small = None if narrow is None else _svg(paint, narrow, f"{name}-n")
    return Picture(title=title, text=text, svg=_svg(paint, size, name), narrow=small)


def label(axes: Axes, *, x: str = "", y: str = "") -> None:
    """Name the axes; the vertical one above it, so that nobody has to turn the head."""
    axes.set_xlabel(x)
    axes.set_title(y, loc="left", fontsize=11, color=INK)


def _svg(paint: Callable[[Figure], None], size: tuple[float, float], name: str) -> str:
    with rc_context({**STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=size, layout="constrained")
        paint(figure)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return _embed(out.getvalue(), name)


def _embed(svg: str, name: str) -> str:
    """The <svg> element alone, with ids of its own and the page's colours and font."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg)
    svg = re.sub(r'<svg [^>]*viewBox="([^"]+)"[^>]*>', r'<svg viewBox="\1">', svg, count=1)
    svg = _renumber(svg.replace("xlink:href", "href"), name)
    svg = re.sub(r"(font: [^;\"]*?px) [^;\"]+", r"\1 var(--font)", svg)
    for stand_in, css in CSS.items():
        svg = svg.replace(stand_in, css)
    return svg.replace("#000000", "currentColor")


def _renumber(svg: str, name: str) -> str:
    """Ids by order of appearance: matplotlib makes some of memory addresses, ever different."""
    numbers: dict[str, int] = {}

    def known(match: re.Match[str]) -> str:
        return f"{match[1]}{name}-{numbers.setdefault(match[2], len(numbers))}"

    return re.sub(r'(\bid="|href="#|url\(#)([\w.-]+)', known, svg)
