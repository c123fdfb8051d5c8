"""The record that ties each claim to its evidence: append-only and hash-chained."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

EntryKind = Literal["run", "claim", "evidence", "intervention", "delta", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One link of the chain."""

    seq: int
    kind: EntryKind
    title: str
    body: Mapping[str, Any]
    unix_ns: int
    prev: str
    """Digest of the entry before it; of the first, 64 zeros."""
    digest: str
    """SHA-256 over the canonical JSON of everything above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The whole chain of one run."""

    entries: tuple[Entry, ...] = ()
