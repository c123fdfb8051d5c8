"""Why it was as fast as it was: causes with their numbers, and what was ruled out."""

from collections.abc import Sequence

from rtopt.report.number import percent, quantity
from rtopt.report.run import Run
from rtopt.report.section import Section, Table
from rtopt.report.story.words import sentence
from rtopt.types import Attribution, Evidence, Finding

TITLE = "Why it was not faster"


def diagnosis_section(run: Run) -> Section:
    """The diagnosis of each round, the first one before any change."""
    rounds = sorted(run.attributions.items())
    if not rounds:
        lead = ("This run holds no diagnosis.",)
        return Section(id="why", kicker="Claim", title=TITLE, lead=lead)
    first = _diagnosis(rounds[0][1])
    parts = tuple(
        Section(
            id=f"why-{n}",
            title=f"Round {n}",
            lead=found.lead,
            points=found.points,
            tables=found.tables,
        )
        for n, found in ((n, _diagnosis(attribution)) for n, attribution in rounds[1:])
    )
    return Section(
        id="why",
        kicker="Claim",
        title=TITLE,
        lead=first.lead,
        points=first.points,
        tables=first.tables,
        parts=parts,
    )


def cause_sentence(finding: Finding) -> str:
    """One cause with its share and its first number."""
    text = f"{finding.cause.label} ({percent(finding.share)})"
    first = next((e.text for e in finding.evidence if e.supports), "")
    return sentence(f"{text}: {first}" if first else text)


def _diagnosis(attribution: Attribution) -> Section:
    lead = []
    if attribution.abstained is not None:
        lead.append(f"No cause is named: {attribution.abstained}.")
    elif attribution.findings:
        lead.append(cause_sentence(attribution.findings[0]))
    lead += [f"Also: {cause_sentence(finding)}" for finding in attribution.findings[1:]]
    if attribution.unexplained_frac is not None:
        share = percent(attribution.unexplained_frac)
        lead.append(f"Requests waited with no limit reached for {share} of the busy time.")
    tables = []
    if attribution.findings:
        tables.append(_evidence(attribution.findings))
    if attribution.considered or attribution.absent:
        tables.append(_ruled_out(attribution))
    return Section(
        id="why",
        title="",
        lead=tuple(lead),
        tables=tuple(tables),
    )


def _evidence(findings: Sequence[Finding]) -> Table:
    rows = [
        (
            sentence(finding.cause.label).rstrip("."),
            "for" if e.supports else "against",
            sentence(e.text or e.measure),
            _threshold(e),
        )
        for finding in findings
        for e in finding.evidence
    ]
    return Table(
        head=("Cause", "", "Number", "Threshold"),
        rows=tuple(rows),
        caption="The numbers behind each named cause.",
        is_prose=True,
    )


def _ruled_out(attribution: Attribution) -> Table:
    rows = [
        (
            sentence(finding.cause.label).rstrip("."),
            percent(finding.share),
            sentence(_against(finding)),
        )
        for finding in attribution.considered
    ]
    rows += [
        (sentence(cause.label).rstrip("."), "not known", sentence(f"not checked: {why}"))
        for cause, why in attribution.absent.items()
    ]
    return Table(
        head=("Cause", "Share", "Why it is not named"),
        rows=tuple(rows),
        caption="Causes that were ruled out, or could not be checked.",
        is_prose=True,
    )


def _against(finding: Finding) -> str:
    """The number that speaks against a cause; where none does, the first."""
    against = [e.text for e in finding.evidence if not e.supports and e.text]
    return against[0] if against else finding.evidence[0].text if finding.evidence else ""


def _threshold(evidence: Evidence) -> str:
    if evidence.threshold is None:
        return "\u2013"
    return quantity(evidence.threshold, evidence.unit)
