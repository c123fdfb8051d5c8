"""What a page is made of: sections with text, figures, tables and code, in that order."""

from dataclasses import dataclass
from typing import Literal

Tone = Literal["good", "bad", "open", "plain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of text under a head; the first cell of a row names it."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    is_prose: bool = False
    """Cells hold sentences: left aligned, and wrapped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An SVG drawing with its words."""

    title: str
    text: str
    """What it shows, for those who cannot see it."""
    svg: str
    narrow: str | None = None
    """The same for a narrow screen, where the wide one would become illegible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Something to copy."""

    label: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """A short word on how it went."""

    text: str
    tone: Tone


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One of the few numbers at the top."""

    label: str
    value: str
    note: str = ""
    tone: Tone = "plain"
    is_code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One step of the argument."""

    id: str
    title: str
    kicker: str = ""
    """Its part in the argument: claim, evidence, intervention, delta."""
    badge: Badge | None = None
    lead: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    codes: tuple[Code, ...] = ()
    parts: "tuple[Section, ...]" = ()
