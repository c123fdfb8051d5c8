"""Reading a journal aloud: what happened, and which state the engine should be in now."""

from collections.abc import Mapping, Sequence
from typing import Any

_Act = Mapping[str, Any]


def tell(acts: Sequence[_Act], *, is_torn: bool) -> str:
    """One paragraph for a person, also after the controller was killed in between."""
    if not acts and not is_torn:
        return "The journal is empty: nothing was done to the engine."
    by_trial: dict[str, list[_Act]] = {}
    for act in acts:
        by_trial.setdefault(act["trial"], []).append(act)
    told = [_tell_trial(name, own) for name, own in by_trial.items()]
    if is_torn:
        told.append(
            "The last line was cut off while it was being written; the act it announces was not"
            " begun."
        )
    return " ".join(told)


def _tell_trial(name: str, acts: Sequence[_Act]) -> str:
    plan = next((act for act in acts if act["act"] == "plan"), None)
    if plan is None:
        return f"Trial {name}: its plan is not in this journal, so its values are not known."
    old, new = plan["undo"]["knobs"], plan["plan"]["change"]["knobs"]
    blocks = sum(act["act"] == "block" for act in acts)
    head = (
        f"Trial {name} ({knobs(old)} -> {knobs(new)}, objective {plan['plan']['objective']}):"
        f" {blocks} block{'' if blocks == 1 else 's'} measured."
    )
    return f"{head} {_tell_end(acts, old, new)}"


def _tell_end(acts: Sequence[_Act], old: _Act, new: _Act) -> str:
    """How it ended, from its last settling act; without one the controller died in between."""
    reasons = [act["verdict"]["reason"] for act in acts if act["act"] == "verdict"]
    why = f" ({reasons[-1]})" if reasons else ""
    for act in reversed(acts):
        match act["act"]:
            case "undone":
                return f"It was kept and later taken back: {knobs(old)} should stand."
            case "settle" if act["keep"]:
                return f"Kept{why}: {knobs(new)} is committed and should stand." + _open(acts, act)
            case "settle":
                return f"Restored{why}: {knobs(act['knobs'])} should stand."
            case "error":
                return f"It ended in an error: {act['text']}"
            case _:
                pass
    return _tell_death(acts, old, new)


def _open(acts: Sequence[_Act], settle: _Act) -> str:
    """What was begun after a keep and never confirmed: taking it back."""
    later = acts[acts.index(settle) + 1 :]
    if not any(act["act"] == "intent" for act in later):
        return ""
    return (
        " Taking it back was begun and not confirmed, so the older value may stand; run undo again."
    )


def _tell_death(acts: Sequence[_Act], old: _Act, new: _Act) -> str:
    intents = [act["to"] for act in acts if act["act"] == "intent"]
    if not intents:
        return (
            "The controller ended here without a word, before it changed anything:"
            f" {knobs(old)} should stand."
        )
    if intents[-1] == "commit":
        return (
            f"The controller ended here without a word while it committed {knobs(new)}: that"
            f" should stand if the commit arrived, otherwise the engine has restored {knobs(old)}"
            " by itself at the end of the lease. Read the knob to know which."
        )
    return (
        f"The controller ended here without a word (last intent: {intents[-1]}). The engine"
        f" restores {knobs(old)} by itself when the lease runs out, so that should stand now."
    )


def knobs(values: Mapping[str, Any]) -> str:
    """Knob values for a person: a=1, b=2."""
    return ", ".join(f"{name}={value}" for name, value in values.items())
