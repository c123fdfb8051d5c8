"""Everything that one run's folder holds, read once and checked against its chain."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from rtopt.errors import ProvenanceError
from rtopt.report.chain import Chain, fingerprint, holds
from rtopt.storage import AppendLog, RunDir, load, read_trace
from rtopt.types import (
    Attribution,
    Choice,
    Deviation,
    Entry,
    Prediction,
    Provenance,
    Trace,
    Trial,
)

Noun = TypeVar("Noun")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run; mappings go from round (1, 2, ...) to noun. What was not there is not here."""

    id: str
    kind: str
    created_unix_ns: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    baseline: Trace | None = None
    afters: Mapping[int, Trace] = field(default_factory=dict)
    """Recordings after the change of that round was kept."""
    predictions: Mapping[int, Prediction] = field(default_factory=dict)
    """For the knobs that stood when the round began."""
    deviations: Mapping[int, Deviation] = field(default_factory=dict)
    attributions: Mapping[int, Attribution] = field(default_factory=dict)
    choices: Mapping[int, Choice] = field(default_factory=dict)
    trials: Mapping[int, Trial] = field(default_factory=dict)
    undone: frozenset[str] = frozenset()
    """Ids of kept trials that were taken back later."""
    provenance: Provenance | None = None
    """None: it does not verify (see `broken`), or there is none."""
    broken: str | None = None
    """Why the provenance does not verify."""

    @property
    def kept(self) -> tuple[Trial, ...]:
        """Trials whose change was kept, and not taken back since."""
        return tuple(
            t for _, t in sorted(self.trials.items()) if t.verdict.keep and t.id not in self.undone
        )

    @property
    def latest(self) -> Trace | None:
        """The recording after the last kept change, when there is one."""
        return self.afters[max(self.afters)] if self.afters else None

    @property
    def ended(self) -> str | None:
        """Why the run ended; None when it was not closed."""
        last = self.provenance.entries[-1:] if self.provenance is not None else ()
        return last[0].title if last and last[0].kind == "end" else None


def open_run(path: Path) -> Run:
    """Read a run's folder. A chain that does not verify is not an error here: see `Run.broken`.

    Raises:
        TraceError: A file is damaged or of another kind.
    """
    about = RunDir(id=path.name, path=path).about()
    predictions = _rounds(path, "prediction", Prediction)
    deviations = _rounds(path, "deviation", Deviation)
    attributions = _rounds(path, "attribution", Attribution)
    choices = _rounds(path, "choice", Choice)
    trials = _rounds(path, "trial", Trial)
    nouns = (predictions, deviations, attributions, choices, trials)
    baseline = path / "baseline.jsonl.gz"
    try:
        provenance, broken = _verified(path, nouns), None
    except ProvenanceError as error:
        # The folder's own path may name a user.
        provenance, broken = None, str(error).replace(f"{path}/", "")
    return Run(
        id=path.name,
        kind=about["kind"],
        created_unix_ns=about["created_unix_ns"],
        settings=about.get("settings", {}),
        predictions=predictions,
        deviations=deviations,
        attributions=attributions,
        choices=choices,
        trials=trials,
        baseline=read_trace(baseline) if baseline.exists() else None,
        afters={n: read_trace(file) for n, file in _numbered(path, "after", ".jsonl.gz").items()},
        undone=frozenset(
            act["trial"]
            for act in AppendLog(path / "journal.jsonl").read()
            if act.get("act") == "undone" and isinstance(act.get("trial"), str)
        ),
        provenance=provenance,
        broken=broken,
    )


def _rounds(path: Path, name: str, cls: type[Noun]) -> dict[int, Noun]:
    return {n: load(cls, file) for n, file in _numbered(path, name, ".json").items()}


def _numbered(path: Path, name: str, suffix: str) -> dict[int, Path]:
    """Files name-1, name-2, ... by their number."""
    pattern = re.compile(rf"{name}-([1-9]\d*){re.escape(suffix)}")
    found = ((pattern.fullmatch(file.name), file) for file in path.iterdir())
    return dict(sorted((int(match[1]), file) for match, file in found if match is not None))


def _verified(path: Path, nouns: Iterable[Mapping[int, object]]) -> Provenance | None:
    """The chain, after checking that every file in the folder is the one it speaks of."""
    chain = Chain(path / "provenance.jsonl")
    if not chain.path.exists():
        return None
    provenance = chain.verify()
    for rounds in nouns:
        for round_, noun in rounds.items():
            if not holds(provenance, noun):
                name = f"{type(noun).__name__.lower()}-{round_}.json"
                raise ProvenanceError(f"{name}: no link of the chain holds it as it is now")
    for link in provenance.entries:
        _check_file(path, link)
    return provenance


def _check_file(path: Path, link: Entry) -> None:
    """Check that the file a link took the fingerprint of is still the same."""
    name, digest = link.body.get("file"), link.body.get("sha256")
    if not isinstance(name, str) or digest is None:
        return
    file = path / Path(name).name
    if not file.exists():
        raise ProvenanceError(f"link {link.seq} speaks of {name}, which is not in the folder")
    if fingerprint(file)["sha256"] != digest:
        raise ProvenanceError(f"{name}: changed since link {link.seq} was written")
