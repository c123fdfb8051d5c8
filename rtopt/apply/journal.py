"""What was done to an engine, on the disk before it is done: the record that survives a kill -9."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from rtopt.apply.story import tell
from rtopt.errors import TraceError
from rtopt.storage import AppendLog, from_json, to_json
from rtopt.types import Block, Change, Plan, Trial, Verdict

Act = Literal["plan", "intent", "set", "block", "verdict", "settle", "undone", "error"]
"""intent comes before the engine is asked for anything; set, settle and undone confirm it."""
_BODY: Final[dict[str, dict[str, type]]] = {
    "plan": {"plan": dict, "undo": dict, "boot": str},
    "intent": {"to": str, "knobs": dict},
    "set": {"arm": str, "knobs": dict},
    "block": {"block": dict},
    "verdict": {"verdict": dict, "e_values": list},
    "settle": {"keep": bool, "knobs": dict},
    "undone": {"keep": bool, "knobs": dict},
    "error": {"text": str},
}
"""Fields of each act beside act, trial and unix_ns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A change that was kept and not taken back since."""

    trial: str
    change: Change
    undo: Change


class Journal:
    """The acts of one run, oldest first; each is on the disk before the call returns."""

    def __init__(self, path: Path, *, unix_ns: Callable[[], int] = time.time_ns) -> None:
        self._log = AppendLog(path)
        self._unix_ns = unix_ns

    @property
    def path(self) -> Path:
        """The file."""
        return self._log.path

    def append(self, act: Act, trial: str, **body: Any) -> None:
        """Write one act."""
        self._log.append({"act": act, "trial": trial, "unix_ns": self._unix_ns(), **body})

    def acts(self) -> tuple[dict[str, Any], ...]:
        """Every act; a torn last line was never confirmed and is left out.

        Raises:
            TraceError: A line in between is damaged, or no act of a trial.
        """
        acts = self._log.read()
        for number, act in enumerate(acts, start=1):
            self._check(act, f"{self.path}:{number}")
        return acts

    def _check(self, act: dict[str, Any], where: str) -> None:
        kind = act.get("act")
        fields = _BODY.get(kind) if isinstance(kind, str) else None
        if fields is None:
            raise TraceError(f"{where}: found act {kind!r}, wanted one of {', '.join(_BODY)}")
        for name, type_ in {"trial": str, "unix_ns": int, **fields}.items():
            if not isinstance(act.get(name), type_):
                raise TraceError(f"{where}: {kind} has no proper {name!r}; the file is damaged")
        if kind == "plan":
            from_json(Plan, act["plan"], where=where)
            from_json(Change, act["undo"], where=where)
        elif kind == "verdict":
            from_json(Verdict, act["verdict"], where=where)

    def next_trial(self, lever: str) -> str:
        """A trial id that this journal does not have yet."""
        planned = sum(act["act"] == "plan" for act in self.acts())
        return f"{lever}-{planned + 1}"

    def story(self) -> str:
        """What happened, and which state the engine should be in: one paragraph for a person."""
        acts = self.acts()
        return tell(acts, is_torn=self._log.torn is not None)

    def trials(self) -> tuple[Trial, ...]:
        """Every trial that came to a verdict."""
        by_trial: dict[str, list[dict[str, Any]]] = {}
        for act in self.acts():
            by_trial.setdefault(act["trial"], []).append(act)
        found = (self._trial(name, acts) for name, acts in by_trial.items())
        return tuple(trial for trial in found if trial is not None)

    def kept(self) -> tuple[Kept, ...]:
        """Changes that were committed and not taken back, oldest first; undo them last first."""
        kept: dict[str, Kept] = {}
        plans = {act["trial"]: act for act in self.acts() if act["act"] == "plan"}
        for act in self.acts():
            name = act["trial"]
            if act["act"] == "settle" and act["keep"]:
                where = f"{self.path}: plan of {name}"
                if name not in plans:
                    raise TraceError(f"{where}: missing, so its values are not known")
                kept[name] = Kept(
                    trial=name,
                    change=from_json(Plan, plans[name]["plan"], where=where).change,
                    undo=from_json(Change, plans[name]["undo"], where=where),
                )
            elif act["act"] == "undone":
                kept.pop(name, None)
        return tuple(kept.values())

    def _trial(self, name: str, acts: list[dict[str, Any]]) -> Trial | None:
        where = f"{self.path}: {name}"
        plan = next((act for act in acts if act["act"] == "plan"), None)
        verdict = next((act for act in acts if act["act"] == "verdict"), None)
        if plan is None or verdict is None:
            return None
        blocks = [act["block"] for act in acts if act["act"] == "block"]
        return Trial(
            id=name,
            plan=from_json(Plan, plan["plan"], where=where),
            undo=from_json(Change, plan["undo"], where=where),
            blocks=tuple(from_json(Block, block, where=where) for block in blocks),
            verdict=from_json(Verdict, verdict["verdict"], where=where),
            e_values=tuple(verdict["e_values"]),
            started_unix_ns=plan["unix_ns"],
            ended_unix_ns=next(
                (act["unix_ns"] for act in acts if act["act"] == "settle"), verdict["unix_ns"]
            ),
        )


def planned(plan: Plan, undo: Change, boot: str) -> dict[str, Any]:
    """Body of the act that opens a trial: enough to undo it without the process that began it."""
    return {"plan": to_json(plan), "undo": to_json(undo), "boot": boot}
