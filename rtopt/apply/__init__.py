"""Stage 4: try a change behind a statistical gate; keep it or restore."""

from rtopt.apply.choice import choose
from rtopt.apply.journal import Journal, Kept
from rtopt.apply.kept import last_kept, take_back
from rtopt.apply.plan import check, make_plan
from rtopt.apply.registry import find_lever, load_levers
from rtopt.apply.settings import GateSettings
from rtopt.apply.trial import run_trial

__all__ = [
    "GateSettings",
    "Journal",
    "Kept",
    "check",
    "choose",
    "find_lever",
    "last_kept",
    "load_levers",
    "make_plan",
    "run_trial",
    "take_back",
]
