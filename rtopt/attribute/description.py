"""An attribution in at most ten lines of plain text."""

from collections.abc import Iterable

from rtopt.types import Attribution, Evidence, Finding

MAX_LINES = 10
SHOWN = 2
"""Causes with their numbers; further ones get one line together."""


def describe(attribution: Attribution) -> str:
    """Say which cause is named, with its numbers, what was ruled out, and what is not known."""
    lines: list[str] = []
    if attribution.abstained is not None:
        lines.append(f"No cause is named: {attribution.abstained}.")
    for finding in attribution.findings[:SHOWN]:
        lines += _finding(finding)
    rest = attribution.findings[SHOWN:]
    if rest:
        lines.append(f"Also: {_shares(rest)}.")
    if attribution.considered:
        lines.append(f"Checked and not named: {_shares(attribution.considered)}.")
    if attribution.absent:
        absent = "; ".join(f"{c.label} ({why})" for c, why in attribution.absent.items())
        lines.append(f"Could not be checked: {absent}.")
    if attribution.unexplained_frac is not None:
        lines.append(
            f"Requests waited with no limit reached for {attribution.unexplained_frac:.0%} of the "
            "busy time."
        )
    assert len(lines) <= MAX_LINES
    return "\n".join(lines)


def _finding(finding: Finding) -> list[str]:
    title = finding.cause.label
    lines = [f"{title[0].upper()}{title[1:]}: {finding.share:.0%}."]
    for word, supports in (("for", True), ("against", False)):
        texts = _texts(e for e in finding.evidence if e.supports is supports)
        if texts:
            lines.append(f"  {word}: {texts}.")
    return lines


def _texts(evidence: Iterable[Evidence]) -> str:
    return "; ".join(e.text for e in evidence)


def _shares(findings: Iterable[Finding]) -> str:
    return ", ".join(f"{f.cause.label} {f.share:.0%}" for f in findings)
