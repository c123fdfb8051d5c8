"""The record that ties each claim to its evidence: append-only and hash-chained."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from rtopt.errors import ProvenanceError, TraceError
from rtopt.storage import AppendLog, from_json, to_json
from rtopt.types import Entry, EntryKind, Provenance

FIRST_PREV = "0" * 64
"""What the first link points at."""


class Chain:
    """A file of links; each holds the digest of the one before it.

    It shows that a link was changed, moved or taken out. It cannot show that links are missing at
    the end; a run that was closed ends with a link of the kind "end".
    """

    def __init__(self, path: Path, *, unix_ns: Callable[[], int] = time.time_ns) -> None:
        self._log = AppendLog(path)
        self._unix_ns = unix_ns

    @property
    def path(self) -> Path:
        """The file."""
        return self._log.path

    def append(self, kind: EntryKind, title: str, noun: object) -> Entry:
        """Add a link; it is on the disk when this returns.

        Args:
            kind: What the link is in the argument.
            title: One sentence.
            noun: A noun, or a mapping of plain JSON values.

        Raises:
            ProvenanceError: The chain so far does not verify. Nothing was added.
            TraceError: The noun holds a value that has no place in JSON. Nothing was added.
        """
        links = self.verify().entries
        unsigned = Entry(
            seq=len(links),
            kind=kind,
            title=title,
            body=_body(noun),
            unix_ns=self._unix_ns(),
            prev=links[-1].digest if links else FIRST_PREV,
            digest="",
        )
        record = {**to_json(unsigned), "digest": digest_of(unsigned)}
        self._log.append(record)
        return from_json(Entry, record, where=str(self.path))

    def verify(self) -> Provenance:
        """Check every link and give them all; a file that is not there yet has none.

        Raises:
            ProvenanceError: Names the first broken link and why.
        """
        try:
            records = self._log.read()
        except TraceError as error:
            raise ProvenanceError(f"{error}. The chain is as it was found.") from error
        links: list[Entry] = []
        prev = FIRST_PREV
        for seq, record in enumerate(records):
            link = self._link(record, seq)
            why = _why_broken(link, seq, prev)
            if why is not None:
                raise ProvenanceError(
                    f"{self.path}: link {seq} ({link.title!r}): {why}. "
                    f"The {seq} links before it verify; the file is as it was found.",
                    link=seq,
                )
            links.append(link)
            prev = link.digest
        return Provenance(entries=tuple(links))

    def _link(self, record: Mapping[str, Any], seq: int) -> Entry:
        try:
            return from_json(Entry, dict(record), where=f"link {seq}")
        except TraceError as error:
            raise ProvenanceError(
                f"{self.path}: {error}. The file is as it was found.", link=seq
            ) from error


def digest_of(link: Entry) -> str:
    """SHA-256 over the canonical JSON of everything but the digest itself.

    Canonical: keys sorted, no spaces, ASCII, floats in their shortest form that reads back the
    same.
    """
    body = {key: value for key, value in to_json(link).items() if key != "digest"}
    return hashlib.sha256(_canonical(body)).hexdigest()


def fingerprint(path: Path) -> dict[str, Any]:
    """Name, size in bytes and SHA-256 of a file, for the body of a link."""
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return {"file": path.name, "bytes": len(content), "sha256": digest}


def holds(links: Provenance, noun: object) -> bool:
    """Whether a link carries exactly this noun.

    Compared as nouns: a whole float is written as an integer by some and not by others.
    """
    cls, name = type(noun), type(noun).__name__
    bodies = (link.body for link in links.entries if link.body.get("noun") == name)
    return any(from_json(cls, body.get("body"), where="link") == noun for body in bodies)


def _body(noun: object) -> dict[str, Any]:
    if isinstance(noun, Mapping):
        return json.loads(_canonical(noun))  # type: ignore[no-any-return] # a mapping stays one
    assert is_dataclass(noun)
    return {"noun": type(noun).__name__, "body": to_json(noun)}


def _canonical(body: Mapping[str, Any]) -> bytes:
    try:
        text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TraceError(f"link body: {error}, wanted plain values. Nothing was added.") from error
    return text.encode("ascii")


def _why_broken(link: Entry, seq: int, prev: str) -> str | None:
    if link.seq != seq:
        return f"it is numbered {link.seq}, a link was moved or taken out"
    if link.prev != prev:
        return f"it follows {link.prev[:12]}..., the link before it is {prev[:12]}..."
    found = digest_of(link)
    if found != link.digest:
        return f"its content gives {found[:12]}..., it claims {link.digest[:12]}..."
    return None
