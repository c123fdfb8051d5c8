"""What a run leaves behind: every noun as a file, and its link in the provenance chain."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rtopt.apply import Journal
from rtopt.report import Chain, fingerprint
from rtopt.storage import RunDir, save, to_json, write_trace
from rtopt.types import (
    Attribution,
    Choice,
    Deviation,
    EntryKind,
    Plan,
    Prediction,
    Trace,
    Trial,
)


class Ledger:
    """Writes one run. Round N holds the N-th turn of the loop."""

    def __init__(self, run: RunDir) -> None:
        self.run = run
        self._chain = Chain(run.path / "provenance.jsonl")
        self.journal = Journal(run.path / "journal.jsonl")
        self.trials: list[Trial] = []

    def open(self, title: str, settings: dict[str, Any]) -> None:
        """First link: what was asked for."""
        self._chain.append("run", title, settings)

    def baseline(self, trace: Trace) -> None:
        """The recording before anything was changed."""
        self._trace("baseline", trace, "recorded before any change")

    def after(self, trace: Trace) -> None:
        """The recording after the last trial."""
        self._trace(f"after-{len(self.trials)}", trace, "recorded after the change was kept")

    def thought(
        self,
        prediction: Prediction,
        deviation: Deviation,
        attribution: Attribution,
        choice: Choice,
    ) -> None:
        """What the stages concluded in this round, before anything was touched."""
        round_ = len(self.trials) + 1
        self._noun("prediction", round_, "evidence", "predicted for present knobs", prediction)
        self._noun("deviation", round_, "evidence", "measured against predicted", deviation)
        self._noun("attribution", round_, "claim", "why it is as fast as it is", attribution)
        self._noun("choice", round_, "claim", choice.reason, choice)

    def planned(self, plan: Plan) -> None:
        """What is about to be tried, fixed before the first block."""
        self._chain.append("intervention", f"trial planned: {plan.change.reason}", to_json(plan))

    def tried(self, trial: Trial) -> None:
        """How the trial ended."""
        self.trials.append(trial)
        self._noun("trial", len(self.trials), "delta", trial.verdict.reason, trial)

    def close(self, reason: str) -> None:
        """Last link; a reason may be an error's, and those name addresses and folders."""
        self._chain.append("end", _public(reason), {"trials": len(self.trials)})

    def _trace(self, name: str, trace: Trace, title: str) -> None:
        path = self.run.path / f"{name}.jsonl.gz"
        write_trace(trace, path)
        body = {**fingerprint(path), "header": to_json(trace.header), "end": to_json(trace.end)}
        self._chain.append("evidence", title, body)

    def overlay_cost(self, cost: Mapping[str, float]) -> None:
        """Nanoseconds that recording has taken in the engine so far, and over how many steps."""
        self._chain.append("evidence", "what the overlay cost", {"overlay_cost": dict(cost)})

    def _noun(self, name: str, round_: int, kind: EntryKind, title: str, noun: object) -> None:
        save(noun, self.run.path / f"{name}-{round_}.json")
        self._chain.append(kind, title, noun)

    @property
    def exposed(self) -> int:
        """Requests that a change on trial has served in this run."""
        return sum(t.verdict.exposed_requests for t in self.trials)

    @property
    def kept(self) -> Sequence[Trial]:
        """Trials that were kept."""
        return [t for t in self.trials if t.verdict.keep]


_ADDRESS = re.compile(r"\b[a-z]+://[^\s,;()'\"]*[^\s,;:.()'\"]")
_FOLDER = re.compile(r"(?<![^\s('\"=])~?\.{0,2}(?:/[^\s/:,;()'\"]+)*/(?=[^\s/])")


def _public(text: str) -> str:
    """The text without addresses of servers, and with the last part of each path only.

    >>> _public("http://host:8000/metrics: answered 404; see '/home/me/a.jsonl' (1.5 s/step)")
    "the server: answered 404; see 'a.jsonl' (1.5 s/step)"
    """
    return _FOLDER.sub("", _ADDRESS.sub("the server", text))
