"""An engine on trial: whatever ends the `with` block, the engine is settled or restored.

Every act is in the journal before the engine is asked for it.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rtopt.apply.journal import Act, Journal
from rtopt.apply.story import knobs
from rtopt.errors import (
    EngineError,
    GoneError,
    HeldError,
    KnobError,
    RtoptError,
    StoppedError,
    UndoError,
)
from rtopt.types import Arm, Change, Engine, EngineState, Value

_ATTEMPTS = 2
"""A restore may be repeated; the second try is for a lost connection or a second Ctrl-C."""
_FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    OSError,
    RtoptError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What an engine's restore can raise, its own bugs included."""


class Hold:
    """Switches between the two arms of a change, and ends by keeping or restoring."""

    def __init__(
        self,
        engine: Engine,
        journal: Journal,
        *,
        trial: str,
        change: Change,
        undo: Change,
        boot: str,
    ) -> None:
        self._engine = engine
        self._journal = journal
        self._trial = trial
        self._arms: dict[Arm, Change] = {"base": undo, "candidate": change}
        self._arm: Arm = "base"
        self._boot = boot
        self._standing: dict[str, Value] = dict(undo.knobs)
        """What stands when nothing of ours is on the engine."""
        self._may_be_on = False
        """Whether the engine may be held by us, with either arm on it."""
        self._has_failed = False
        """Whether a restore was given up, and told."""
        self._interrupt: KeyboardInterrupt | None = None
        """A Ctrl-C that came while restoring; it is raised when the restore is done."""

    def put(self, arm: Arm) -> None:
        """Put an arm on the engine, unless it is on already, under our lease in either case.

        Raises:
            EngineError: The engine does not have the values that it should have.
        """
        if arm == self._arm and self._may_be_on:
            return
        change, was_on = self._arms[arm], self._may_be_on
        self._journal.append("intent", self._trial, to=arm, knobs=dict(change.knobs))
        self._may_be_on = True
        try:
            inverse = self._engine.apply(change)
        except (KnobError, HeldError):
            self._may_be_on = was_on  # refused: nothing was changed
            raise
        other = self._arms[self._arm]
        if dict(inverse.knobs) != dict(other.knobs):
            raise EngineError(
                f"{knobs(change.knobs)} was put on over {knobs(inverse.knobs)}, wanted"
                f" {knobs(other.knobs)}: somebody else moved it."
            )
        self._arm = arm
        self._journal.append("set", self._trial, arm=arm, knobs=dict(change.knobs))

    def look(self) -> bool:
        """Check that the arm's values stand; tell whether the engine was started anew.

        Raises:
            EngineError: They do not: the lease ran out or somebody else moved them.
        """
        state = self._engine.state()
        if state.boot != self._boot:
            return True
        wanted = self._arms[self._arm].knobs
        found = _pick(state, wanted)
        if found != dict(wanted):
            raise EngineError(
                f"{knobs(found)} stands after a block that wanted {knobs(wanted)}: the lease ran"
                " out or somebody else moved it, so the block can't be used."
            )
        return False

    def settle(self, *, keep: bool, confirm: Act = "settle") -> None:
        """Commit the candidate, or restore; the act `confirm` tells the journal that it took.

        Raises:
            EngineError: The commit did not take.
            UndoError: The restore did not take.
        """
        if not keep:
            self._restore()
            if self._interrupt is not None:
                raise self._interrupt
            return
        self.put("candidate")
        wanted = self._arms["candidate"].knobs
        self._journal.append("intent", self._trial, to="commit", knobs=dict(wanted))
        state = self._engine.settle(keep=True)
        if not (_pick(state, wanted) == _snapshot(state, wanted) == dict(wanted)):
            raise EngineError(
                f"{knobs(wanted)} was to be committed, and the engine reports"
                f" {knobs(_pick(state, wanted))} with snapshot {knobs(_snapshot(state, wanted))}."
            )
        self._may_be_on = False
        self._standing = dict(wanted)
        self._journal.append(confirm, self._trial, keep=True, knobs=dict(wanted))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Restore after any exception, and raise it again with the state named."""
        if error is None or self._has_failed:
            return
        cause = str(error) or type(error).__name__
        was_on = self._may_be_on
        if was_on:
            self._restore(cause=error)
            error = self._interrupt or error
        standing = f"{'Restored: ' if was_on else ''}{knobs(self._standing)} stands."
        unwritten = self._note("error", text=f"{cause} {standing}")
        told = " ".join(text for text in (standing, unwritten) if text)
        match error:
            case KeyboardInterrupt():
                raise StoppedError(f"Interrupted within {self._trial}. {told}") from error
            case UndoError():  # of a commit; the restore after it has worked
                raise EngineError(f"{cause} {told}", **error.facts) from error
            case RtoptError():
                raise type(error)(f"{cause} {told}", **error.facts) from error
            case Exception():
                raise EngineError(
                    f"{self._trial} ended in {type(error).__name__}: {cause} {told}"
                ) from error
            case _:  # SystemExit and its like: not ours to rename
                return

    def _restore(self, *, cause: BaseException | None = None) -> None:
        """Put the base values back and end the lease; twice if need be, then give up loudly."""
        base = dict(self._arms["base"].knobs)
        self._note("intent", to="restore", knobs=base)
        failure: BaseException | None = None
        for _ in range(_ATTEMPTS if self._may_be_on else 0):
            try:
                found = self._restored(base)
            except KeyboardInterrupt as interrupt:
                self._interrupt = failure = interrupt
                continue
            except _FAILURES as error:
                failure = error
                continue
            if found == base:
                self._may_be_on = False
                break
            failure = EngineError(f"the engine reports {knobs(found)}")
        if self._may_be_on and isinstance(failure, GoneError):
            self._lose(base, failure, cause)
        if self._may_be_on:
            self._fail(base, failure, cause)
        self._note("settle", keep=False, knobs=base)
        self._arm = "base"

    def _restored(self, base: Mapping[str, Value]) -> dict[str, Value]:
        """Ask for the snapshot; where a commit has made that the candidate, undo the commit."""
        state = self._engine.settle(keep=False)
        if _snapshot(state, base) == dict(self._arms["candidate"].knobs):
            self._engine.apply(self._arms["base"])
            state = self._engine.settle(keep=True)
        return _pick(state, base)

    def _lose(
        self, base: Mapping[str, Value], gone: GoneError, cause: BaseException | None
    ) -> None:
        """Tell that there is no server left to restore, and why none of the trial can stay."""
        message = (
            f"{self._trial}: the server is gone, so {knobs(base)} could not be restored: {gone}"
            f" {knobs(self._arms[self._arm].knobs)} was on it last and ended with it: a server"
            " that is started anew has its start-up values. If only its front end died, the engine"
            f" restores {knobs(base)} by itself when the lease runs out."
        )
        self._has_failed = True
        self._note("error", text=message)
        raise GoneError(message, wanted=dict(base)) from (cause or gone)

    def _fail(
        self, base: Mapping[str, Value], failure: BaseException | None, cause: BaseException | None
    ) -> None:
        message = (
            f"{self._trial}: the restore of {knobs(base)} failed:"
            f" {str(failure or 'no answer').rstrip('.')}."
            f" {knobs(self._arms[self._arm].knobs)} was on it last. A running engine restores by"
            " itself when the lease runs out; read the knobs before you rely on it."
        )
        self._has_failed = True
        self._note("error", text=message)
        raise UndoError(message, wanted=dict(base)) from (cause or failure)

    def _note(self, act: Act, **body: object) -> str | None:
        """Write to the journal; a full disk must not stop a restore, so its failure is told."""
        try:
            self._journal.append(act, self._trial, **body)
        except (OSError, RtoptError) as error:
            return f"The journal could not be written: {error}."
        except KeyboardInterrupt as interrupt:
            self._interrupt = interrupt
        return None


def _pick(state: EngineState, names: Mapping[str, Value]) -> dict[str, Value]:
    return {knob.name: knob.value for knob in state.knobs if knob.name in names}


def _snapshot(state: EngineState, names: Mapping[str, Value]) -> dict[str, Value]:
    return {knob.name: knob.snapshot for knob in state.knobs if knob.name in names}
