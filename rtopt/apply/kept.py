"""Taking a kept change back, from the journal alone."""

from rtopt.apply.hold import Hold
from rtopt.apply.journal import Journal, Kept
from rtopt.apply.story import knobs
from rtopt.errors import EngineError, UsageError
from rtopt.types import Engine


def last_kept(journal: Journal) -> Kept:
    """The change that this run kept last.

    Raises:
        UsageError: The run kept nothing, or it was taken back already.
    """
    kept = journal.kept()
    if not kept:
        raise UsageError(f"{journal.path}: no kept change to take back. Nothing was changed.")
    return kept[-1]


def take_back(engine: Engine, journal: Journal) -> Kept:
    """Undo the change that this run kept last, and commit the older values.

    Raises:
        UsageError: The run kept nothing, or it was taken back already.
        EngineError: The engine no longer stands at the kept values. Nothing was changed.
        UndoError: The undo failed; the message names what stands.
    """
    last = last_kept(journal)
    state = engine.state()
    found = {knob.name: knob.value for knob in state.knobs if knob.name in last.change.knobs}
    if found != dict(last.change.knobs):
        raise EngineError(
            f"{last.trial} kept {knobs(last.change.knobs)}, and the engine stands at"
            f" {knobs(found)}: it was moved or started anew since. Nothing was changed."
        )
    with Hold(
        engine,
        journal,
        trial=last.trial,
        change=last.undo,
        undo=last.change,
        boot=state.boot,
    ) as hold:
        hold.settle(keep=True, confirm="undone")
    return last
