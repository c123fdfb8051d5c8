"""The report: one HTML file that needs neither a network nor JavaScript."""

from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rtopt.errors import ProvenanceError
from rtopt.report.figures.evidence import evidence_picture
from rtopt.report.figures.forecast import forecast_pictures
from rtopt.report.figures.latency import latencies
from rtopt.report.figures.pairs import pair_picture
from rtopt.report.figures.timeline import timeline
from rtopt.report.number import moment
from rtopt.report.run import Run, open_run
from rtopt.report.section import Badge, Fact, Picture, Section
from rtopt.report.story.appendix import appendix_sections
from rtopt.report.story.diagnosis import diagnosis_section
from rtopt.report.story.forecast import comparisons, forecast_section
from rtopt.report.story.headline import because, facts, headline, promise
from rtopt.report.story.kept import kept_section, undo_section
from rtopt.report.story.measured import measured_section
from rtopt.report.story.options import options_section
from rtopt.report.story.tried import tried_section
from rtopt.storage import write_text
from rtopt.version import VERSION

FILE = "report.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What the template fills in."""

    run: Run
    made: str
    version: str
    headline: str
    because: str
    promise: str
    facts: tuple[Fact, ...]
    seal: Badge
    first: Picture | None
    sections: tuple[Section, ...]
    appendix: tuple[Section, ...]


def render(run: Path) -> Path:
    """Write report.html into a run's folder.

    Raises:
        TraceError: A file of the run is damaged.
        UsageError: The report cannot be written there.
        ProvenanceError: The chain does not verify; the report is written and says so at its top.
    """
    found = open_run(run)
    path = run / FILE
    write_text(path, to_html(page_of(found)))
    if found.broken is not None:
        raise ProvenanceError(f"{found.broken}. {path} was written and says so at its top.")
    return path


def page_of(run: Run) -> Page:
    """Everything that the page says and shows."""
    tried = tried_section(run)
    trials = sorted(run.trials.items())
    parts = tuple(
        replace(part, pictures=_present(pair_picture(trial, n), evidence_picture(trial, n)))
        for part, (n, trial) in zip(tried.parts, trials, strict=True)
    )
    found = comparisons(run)
    sections = (
        replace(measured_section(run), pictures=latencies(run)),
        diagnosis_section(run),
        options_section(run),
        replace(tried, parts=parts),
        replace(forecast_section(run), pictures=forecast_pictures(found)),
        kept_section(run),
        undo_section(run),
    )
    return Page(
        run=run,
        made=moment(run.created_unix_ns),
        version=VERSION,
        headline=headline(run),
        because=because(run),
        promise=promise(run),
        facts=facts(run),
        seal=seal(run),
        first=timeline(run),
        sections=sections,
        appendix=appendix_sections(run),
    )


def to_html(page: Page) -> str:
    """The page as one self-contained file."""
    environment = Environment(
        loader=PackageLoader("rtopt.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["svg"] = Markup
    style = files("rtopt.report").joinpath("style.css").read_text(encoding="utf-8")
    return environment.get_template("page.html.j2").render(page=page, style=Markup(style))


def seal(run: Run) -> Badge:
    """Whether the evidence is what it was when it was recorded."""
    if run.broken is not None:
        return Badge(text=f"\u2717 Provenance does not verify: {run.broken}", tone="bad")
    if run.provenance is None:
        return Badge(text="? No provenance record: nothing here can be checked", tone="open")
    links = len(run.provenance.entries)
    return Badge(text=f"\u2713 Provenance verified: {links} links", tone="good")


def _present(*pictures: Picture | None) -> tuple[Picture, ...]:
    return tuple(picture for picture in pictures if picture is not None)
