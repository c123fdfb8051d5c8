"""The embedded API: `rtopt.attach(url)` and the five verbs on what it returns."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from rtopt import apply, attribute, loop, predict, profile
from rtopt.config import RunConfig
from rtopt.engines import connect
from rtopt.engines.vllm_server import VllmServer
from rtopt.engines.window import trial_window
from rtopt.errors import (
    EngineError,
    EvidenceError,
    HeldError,
    RtoptError,
    UnavailableError,
    UsageError,
)
from rtopt.ledger import Ledger
from rtopt.report import render
from rtopt.storage import RunDir, find_run, new_run, save, to_json
from rtopt.storage import load as load_noun
from rtopt.types import (
    Attribution,
    Engine,
    EngineState,
    Load,
    Plan,
    Prediction,
    Progress,
    Trace,
    Trial,
    Value,
    silent,
)

_log = logging.getLogger("rtopt")
_SERVER_FILE = "server.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Which server a run was on."""

    url: str


class Session:
    """One engine, and what can be done with it."""

    def __init__(
        self,
        engine: Engine,
        *,
        config: RunConfig | None = None,
        levers: Path | None = None,
        progress: Progress = silent,
    ) -> None:
        """Work with `engine`; nothing is sent yet. `levers` is a folder with more of them."""
        self.engine = engine
        self.config = config or RunConfig()
        self._levers = levers
        self._progress = progress
        self.last_run: RunDir | None = None

    def state(self) -> EngineState:
        """Read the engine's knobs, limits and lease."""
        return self.engine.state()

    def prepare(self) -> None:
        """Load what the forecast needs (about 10 s, once), before anything is measured."""
        self._progress("loading the engine's own scheduler (about 10 s, once)", None)
        predict.prepare(self.engine.state().info)

    def profile(
        self,
        duration_s: float | None = None,
        *,
        load: Load | None = None,
        max_requests: int | None = None,
    ) -> Trace:
        """Record what the engine does."""
        return profile.run(
            self.engine,
            duration_s=duration_s or self.config.profile_s,
            load=load or self.config.load,
            max_requests=max_requests,
            progress=self._progress,
        )

    def predict(self, trace: Trace, knobs: Mapping[str, Value] | None = None) -> Prediction:
        """Replay the trace on the engine's own scheduler, at present or other knobs."""
        return predict.by_replay(trace, set=knobs or {})

    def attribute(self, trace: Trace) -> Attribution:
        """Name what binds, with its numbers, or abstain."""
        return attribute.rank(trace, predict.compare(trace, predict.run(trace)))

    def apply(self, lever: str, *, confirm: loop.Confirm = loop.yes) -> Trial | None:
        """Try one lever behind the gate; None when there was nothing to try.

        The engine ends at the kept value or at its snapshot.
        """
        self._need_writable()
        trials = self._run("apply", 1, only=lever, confirm=confirm)
        return trials[-1] if trials else None

    def plan(self, lever: str, *, show: Callable[[Plan], None]) -> None:
        """Work out what `apply` would try, hand it to `show`, and change nothing.

        Raises:
            EngineError: The server has no overlay, so there is nothing to forecast from.
        """
        state = self.engine.state()
        if not state.knobs:
            raise EngineError(f"nothing can be planned for this server: {state.read_only}")

        def decline(plan: Plan) -> bool:
            show(plan)
            return False

        self._run("plan", 1, only=lever, confirm=decline)

    def tune(self, *, confirm: loop.Confirm = loop.yes) -> Sequence[Trial]:
        """Turn the loop with every lever, within the budget."""
        self._need_writable()
        return self._run("tune", self.config.budget.trials, only=None, confirm=confirm)

    def undo(self, run: str | Path | None = None) -> None:
        """Take back what a run kept last; without a name, this session's last run."""
        apply.take_back(self.engine, apply.Journal(self._path(run) / "journal.jsonl"))

    def report(self, run: str | Path | None = None) -> Path:
        """Write the report of a run; without a name, of this session's last one."""
        return render(self._path(run))

    def _path(self, run: str | Path | None) -> Path:
        if run is not None:
            return find_run(run).path
        if self.last_run is None:
            raise UsageError("this session has made no run yet; name one")
        return self.last_run.path

    def _need_writable(self) -> None:
        """Refuse before anything is recorded where nothing can be changed."""
        state = self.engine.state()
        if state.read_only:
            raise EngineError(f"nothing can be changed on this server: {state.read_only}")
        if state.held:
            raise HeldError(
                f"the engine is held by {state.held.holder} for another"
                f" {state.held.remaining_s:.0f} s. Nothing was changed."
            )
        if isinstance(self.engine, VllmServer):
            self.engine.check_token()

    def _run(
        self, kind: str, trials: int, *, only: str | None, confirm: loop.Confirm
    ) -> Sequence[Trial]:
        config = replace(self.config, budget=replace(self.config.budget, trials=trials))
        levers = apply.load_levers(self._levers)
        if only is not None:
            apply.find_lever(levers, only)
        apply.check(config.gate, objective=config.metric, slos=config.slos, num_levers=trials)
        self.last_run = new_run(kind, to_json(config))
        url = getattr(self.engine, "url", None)
        if url is not None:
            # For `rtopt undo RUN`; kept out of every noun, so that no report names a host.
            save(Server(url=url), self.last_run.path / _SERVER_FILE)
        ledger = Ledger(self.last_run)
        ledger.open(f"{kind} for {config.objective}", to_json(config))
        try:
            with self._no_profiler():
                reason = loop.run(
                    self.engine,
                    config,
                    ledger,
                    levers=levers,
                    only=only,
                    confirm=confirm,
                    progress=self._progress,
                )
            if isinstance(self.engine, VllmServer):
                ledger.overlay_cost(self.engine.overlay_cost())
            ledger.close(reason)
        except RtoptError as error:
            _close_after(error, ledger)
            if not ledger.kept:
                raise
            if not isinstance(error, EvidenceError):
                raise type(error)(f"{error} {_kept(ledger)}", **error.facts) from error
        return tuple(ledger.trials)

    def _no_profiler(self) -> AbstractContextManager[None]:
        """Open only when no profiler of ours runs on the engine, and none starts meanwhile."""
        if isinstance(self.engine, VllmServer):
            return trial_window(self.engine.state().boot)
        return nullcontext()

    def close(self) -> None:
        """Stop renewing any lease and close the connection."""
        close = getattr(self.engine, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def attach(
    url: str,
    *,
    config: RunConfig | None = None,
    token_file: Path | None = None,
    levers: Path | None = None,
    progress: Progress = silent,
) -> Session:
    """Connect to the vLLM server at `url`.

    Raises:
        EngineError: Nobody listens there, it is not vLLM, or several servers answer in turn.
    """
    engine = connect(url, token_file=token_file)
    return Session(engine, config=config, levers=levers, progress=progress)


def undo(run: str, *, url: str | None = None, token_file: Path | None = None) -> str:
    """Take back what a run kept last; one sentence about what stands now.

    Raises:
        UsageError: The run kept nothing, or does not say which server it was on.
        UndoError: The undo failed; the message names what stands.
    """
    found = find_run(run)
    journal = apply.Journal(found.path / "journal.jsonl")
    apply.last_kept(journal)  # says so when there is none, whether or not the server lives
    with attach(url or _url_of(found), token_file=token_file) as session:
        taken = apply.take_back(session.engine, journal)
        return f"undone: {_knobs(taken.undo.knobs)}; {_standing(session.state())}"


def restore(url: str, *, force: bool = False, token_file: Path | None = None) -> str:
    """Return a server to its start-up values; one sentence about what stands now.

    Raises:
        EngineError: The server has no overlay, so rtopt has changed nothing there.
        HeldError: Another controller holds the engine, and `force` was not given.
    """
    with closing(connect(url, token_file=token_file)) as engine:
        if not isinstance(engine, VllmServer):
            raise EngineError(f"{engine.url}: {engine.state().read_only}. Nothing was changed.")
        state = engine.restore_start(force=force)
    return f"restored to the start-up values; {_standing(state)}"


def resume(run: str, *, url: str | None = None, token_file: Path | None = None) -> str:
    """What became of a run that was cut off, from its journal and from the engine as it is now.

    Nothing is changed: a change on trial was restored by its lease, or is about to be.
    """
    found = find_run(run)
    story = apply.Journal(found.path / "journal.jsonl").story()
    try:
        with attach(url or _url_of(found), token_file=token_file) as session:
            return f"{story}\nThe engine now: {_standing(session.state())}."
    except (EngineError, UnavailableError) as error:
        return f"{story}\nThe engine now: unknown ({error})."


def _close_after(error: RtoptError, ledger: Ledger) -> None:
    """Close the run's chain; where that fails too, the first error is the one to tell."""
    try:
        ledger.close(f"ended by an error: {error}")
    except RtoptError as second:
        _log.warning("the run could not be closed either: %s", second)


def _kept(ledger: Ledger) -> str:
    stands = ", ".join(_knobs(trial.plan.change.knobs) for trial in ledger.kept)
    return (
        f"{stands} was kept before that and stands: take it back with"
        f" `rtopt undo {ledger.run.id}`, or `rtopt restore URL`."
    )


def _standing(state: EngineState) -> str:
    values = ", ".join(
        f"{k.name}={k.value}" + ("" if k.value == k.snapshot else f" (snapshot {k.snapshot})")
        for k in state.knobs
    )
    held = f", held by {state.held.holder} for {state.held.remaining_s:.0f} s" if state.held else ""
    return f"the engine runs with {values}{held}"


def _knobs(values: Mapping[str, Value]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _url_of(run: RunDir) -> str:
    path = run.path / _SERVER_FILE
    if not path.is_file():
        raise UsageError(f"{run.id} does not say which server it was on; name the URL")
    return load_noun(Server, path).url
