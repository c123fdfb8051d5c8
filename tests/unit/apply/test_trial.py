"""A trial from end to end, on an engine whose truth is known."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from rtopt.apply import GateSettings, Journal, make_plan, run_trial, take_back
from rtopt.errors import (
    EngineError,
    HeldError,
    KnobError,
    RtoptError,
    StoppedError,
    UndoError,
    UsageError,
)
from rtopt.types import (
    Change,
    Clock,
    End,
    EngineInfo,
    EngineState,
    Header,
    Knob,
    Load,
    Machine,
    Plan,
    Request,
    Slo,
    Step,
    Trace,
    Trial,
    Value,
)

KNOB = "max_num_active_seqs"
CHANGE = Change(lever=KNOB, knobs={KNOB: 32}, reason="from 8 to 32")
STEP_NS = 500_000_000
SETTINGS = GateSettings(block_s=10, washout_s=2, max_pairs=30)


@dataclass
class SyntheticEngine:
    """A known multiplicative effect under known noise, in virtual time."""

    speedup: float = 1.0
    """Throughput of the candidate / of the baseline."""
    slowdown: float = 1.0
    """Time between tokens of the candidate / of the baseline."""
    noise: float = 0.03
    """Standard deviation of a block's log throughput."""
    seed: int = 1
    on_record: Callable[["SyntheticEngine"], None] = lambda engine: None
    """Called before each block: the place for trouble."""
    value: int = 8
    snapshot: int = 8
    boot: str = "first"
    now_ns: int = 10**12
    blocks: int = 0
    crawl_s: float = 0.0
    """At the start of each block the engine makes one token a step."""
    load_is_gone: bool = False
    failing_blocks: bool = False
    preempting: bool = False
    end_reason: str = "duration"
    restore_fails: int = 0
    """How many restores fail before one works."""
    held_by_other: bool = False
    calls: list[str] = field(default_factory=list)
    on_call: Callable[[str], None] = lambda what: None

    def state(self) -> EngineState:
        knob = Knob(name=KNOB, value=self.value, start=8, snapshot=self.snapshot, low=1, high=64)
        info = EngineInfo(name="synthetic", version="0", model="none", config={"max_num_seqs": 64})
        return EngineState(info=info, knobs=(knob,), boot=self.boot)

    def apply(self, change: Change) -> Change:
        self._called(f"apply {change.knobs[KNOB]}")
        if self.held_by_other:
            raise HeldError("somebody else holds the engine. Nothing was changed.")
        before, self.value = self.value, int(change.knobs[KNOB])
        return Change(lever="undo", knobs={KNOB: before}, reason="back")

    def settle(self, *, keep: bool) -> EngineState:
        self._called("commit" if keep else "restore")
        if keep:
            self.snapshot = self.value
        elif self.restore_fails:
            self.restore_fails -= 1
            raise EngineError("connection refused")
        self.value = self.snapshot
        return self.state()

    def record(
        self, duration_s: float, *, load: Load | None = None, max_requests: int | None = None
    ) -> Trace:
        self._called("record")
        self.blocks += 1
        self.on_record(self)
        start_ns, self.now_ns = self.now_ns, self.now_ns + int(duration_s * 1e9)
        rng = np.random.default_rng([self.seed, self.blocks])
        level = math.exp(rng.normal(0, self.noise))
        is_candidate = self.value != 8
        tokens = 100 * level * (self.speedup if is_candidate else 1.0)
        itl_ms = 50 / level * (self.slowdown if is_candidate else 1.0)
        times = range(start_ns + STEP_NS, self.now_ns + 1, STEP_NS)
        bad = is_candidate and self.failing_blocks
        return Trace(
            header=Header(
                source="replay",
                engine=self.state().info,
                machine=Machine(cpu="none", num_cpus=1),
                clock=Clock(mono_ns=start_ns, unix_ns=start_ns),
                start_ns=start_ns,
                knobs={KNOB: self.value},
                load=load,
            ),
            end=End(
                end_ns=self.now_ns,
                clock=Clock(mono_ns=self.now_ns, unix_ns=self.now_ns),
                reason=self.end_reason,
            ),
            steps=()
            if self.load_is_gone
            else tuple(
                Step(
                    t_ns=t_ns,
                    output_tokens=1 if t_ns <= start_ns + self.crawl_s * 1e9 else round(tokens),
                    itl_ms=(itl_ms,),
                    ttft_ms=(3 * itl_ms,),
                    preempted=int(is_candidate and self.preempting),
                )
                for t_ns in times
            ),
            requests=()
            if self.load_is_gone
            else tuple(
                Request(
                    id=str(t_ns),
                    arrival_ns=t_ns - STEP_NS,
                    finished_ns=t_ns,
                    prompt_tokens=8,
                    output_tokens=8,
                    e2e_ms=500,
                    finish="error" if bad else "length",
                )
                for t_ns in times
            ),
        )

    def _called(self, what: str) -> None:
        self.calls.append(what)
        self.on_call(what)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.jsonl", unix_ns=lambda: 0)


def throughput_plan(*slos: Slo, settings: GateSettings = SETTINGS) -> Plan:
    return make_plan(CHANGE, settings, objective="throughput", slos=slos)


def run(engine: SyntheticEngine, journal: Journal, plan: Plan | None = None) -> Trial:
    return run_trial(engine, plan or throughput_plan(), journal=journal)


def at_block(number: int, trouble: BaseException) -> Callable[[SyntheticEngine], None]:
    def raise_it(engine: SyntheticEngine) -> None:
        if engine.blocks == number:
            raise trouble

    return raise_it


def acts(journal: Journal) -> list[str]:
    return [act["act"] for act in journal.acts()]


# -- verdicts --------------------------------------------------------------------------------------


def test_a_good_lever_is_kept_and_its_gain_measured(journal: Journal) -> None:
    engine = SyntheticEngine(speedup=1.5)
    trial = run(engine, journal)
    assert trial.verdict.keep
    assert (engine.value, engine.snapshot) == (32, 32)
    effect = trial.verdict.effect
    assert effect is not None
    assert effect.interval is not None
    assert effect.interval.low < 0.5 < effect.interval.high
    assert effect.interval.low > 0.3
    assert effect.interval.level == pytest.approx(0.98)
    assert trial.verdict.pairs == 8
    assert trial.verdict.exposed_requests == 8 * 20
    assert len(trial.e_values) == 8
    assert all(guard.state == "held" for guard in trial.verdict.guards)


def test_the_washout_is_not_measured(journal: Journal) -> None:
    trial = run(SyntheticEngine(speedup=1.5, noise=0.0, crawl_s=SETTINGS.washout_s), journal)
    levels = {block.arm: block.metrics["throughput"] for block in trial.blocks}
    assert levels == {"base": 200.0, "candidate": 300.0}


def test_a_lever_without_effect_is_restored_at_the_horizon(journal: Journal) -> None:
    engine = SyntheticEngine()
    trial = run(engine, journal)
    assert trial.verdict.decision == "restore"
    assert trial.verdict.pairs == SETTINGS.max_pairs
    assert "not proven better" in trial.verdict.reason
    assert (engine.value, engine.snapshot) == (8, 8)


def test_a_bad_lever_is_stopped_early_with_the_knob_back(journal: Journal) -> None:
    engine = SyntheticEngine(speedup=0.8)
    trial = run(engine, journal)
    assert trial.verdict.decision == "restore"
    assert trial.verdict.reason.startswith("harm:")
    assert trial.verdict.pairs <= 9
    assert engine.value == 8


def test_for_a_time_less_is_better(journal: Journal) -> None:
    plan = make_plan(CHANGE, SETTINGS, objective="itl_mean", margins=())
    trial = run(SyntheticEngine(slowdown=0.7), journal, plan)
    assert trial.verdict.keep
    assert trial.verdict.effect is not None
    assert trial.verdict.effect.value == pytest.approx(-0.3, abs=0.03)


def test_a_broken_limit_restores_although_throughput_rose(journal: Journal) -> None:
    engine = SyntheticEngine(speedup=1.5, slowdown=3.0)
    trial = run(engine, journal, throughput_plan(Slo(metric="itl_p95", limit=100)))
    assert trial.verdict.decision == "restore"
    assert trial.verdict.reason.startswith("guard slo itl_p95")
    assert trial.verdict.effect is not None
    assert trial.verdict.effect.value > 0.3
    assert engine.value == 8


def test_a_limit_that_holds_does_not_stand_in_the_way(journal: Journal) -> None:
    engine = SyntheticEngine(speedup=1.5, slowdown=1.3)
    trial = run(engine, journal, throughput_plan(Slo(metric="itl_p95", limit=100)))
    assert trial.verdict.keep
    (guard,) = [g for g in trial.verdict.guards if g.name == "slo itl_p95"]
    assert guard.state == "held"
    assert guard.e_value is not None
    assert guard.e_value >= 10


def test_a_limit_that_can_not_be_told_from_the_value_is_no_keep(journal: Journal) -> None:
    engine = SyntheticEngine(speedup=1.5, slowdown=2.0)
    trial = run(engine, journal, throughput_plan(Slo(metric="itl_p95", limit=100)))
    assert trial.verdict.decision == "restore"
    assert "not proven" in trial.verdict.reason


def test_a_metric_that_the_objective_does_not_trade_is_guarded(journal: Journal) -> None:
    engine = SyntheticEngine(slowdown=0.7, speedup=0.8)
    trial = run(engine, journal, make_plan(CHANGE, SETTINGS, objective="itl_mean"))
    assert trial.verdict.decision == "restore"
    assert "margin throughput" in trial.verdict.reason


def test_errors_restore_at_once(journal: Journal) -> None:
    engine = SyntheticEngine(speedup=1.5, failing_blocks=True)
    trial = run(engine, journal)
    assert trial.verdict.decision == "restore"
    assert trial.verdict.pairs == 1
    assert "guard errors" in trial.verdict.reason


def test_preemptions_restore_at_once(journal: Journal) -> None:
    engine = SyntheticEngine(speedup=1.5, preempting=True)
    trial = run(engine, journal)
    assert trial.verdict.decision == "restore"
    assert "guard preemptions" in trial.verdict.reason


def test_an_engine_that_was_started_anew_is_restored(journal: Journal) -> None:
    def restart(engine: SyntheticEngine) -> None:
        if engine.blocks == 5:
            engine.boot, engine.value = "second", 8

    engine = SyntheticEngine(speedup=1.5, on_record=restart)
    trial = run(engine, journal)
    assert trial.verdict.decision == "restore"
    assert "engine_restart" in trial.verdict.reason
    assert engine.value == 8


def test_no_data_is_inconclusive_and_restored(journal: Journal) -> None:
    def leave(engine: SyntheticEngine) -> None:
        engine.load_is_gone = engine.blocks >= 6

    engine = SyntheticEngine(speedup=1.5, on_record=leave)
    trial = run(engine, journal)
    assert trial.verdict.decision == "inconclusive"
    assert "no data for throughput in pair 3" in trial.verdict.reason
    assert trial.verdict.pairs == 3
    assert engine.value == 8


def test_a_limit_without_data_is_never_a_pass(journal: Journal) -> None:
    plan = throughput_plan(Slo(metric="kv_mean", limit=0.9))
    trial = run(SyntheticEngine(speedup=1.5), journal, plan)
    assert trial.verdict.decision == "inconclusive"
    assert "no data is not a pass" in trial.verdict.reason


def test_a_proven_gain_below_the_smallest_wanted_is_restored(journal: Journal) -> None:
    plan = throughput_plan(settings=replace(SETTINGS, min_gain_frac=0.5))
    engine = SyntheticEngine(speedup=1.2)
    trial = run(engine, journal, plan)
    assert trial.verdict.decision == "restore"
    assert "less than the 50.0% wanted" in trial.verdict.reason
    assert engine.value == 8


# -- budgets ---------------------------------------------------------------------------------------


def test_a_time_budget_that_can_not_hold_a_keep_tries_nothing(journal: Journal) -> None:
    engine = SyntheticEngine(speedup=1.5)
    trial = run_trial(engine, throughput_plan(), journal=journal, max_minutes=1)
    assert trial.verdict.decision == "inconclusive"
    assert "can't hold the 8 pairs" in trial.verdict.reason
    assert engine.calls == []


def test_a_time_budget_that_runs_out_restores(journal: Journal) -> None:
    engine = SyntheticEngine()
    trial = run_trial(engine, throughput_plan(), journal=journal, max_minutes=4)
    assert trial.verdict.decision == "inconclusive"
    assert trial.verdict.pairs == 12
    assert "time budget" in trial.verdict.reason
    assert engine.value == 8


def test_an_exposure_budget_is_not_overrun(journal: Journal) -> None:
    engine = SyntheticEngine()
    trial = run_trial(engine, throughput_plan(), journal=journal, max_exposed=110)
    assert trial.verdict.decision == "inconclusive"
    assert "exposure budget of 110" in trial.verdict.reason
    assert trial.verdict.exposed_requests == 100
    assert engine.value == 8


# -- trouble ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trouble", "raised"),
    [
        (EngineError("connection refused"), EngineError),
        (OSError("disk"), EngineError),
        (ValueError("a bug"), EngineError),
        (KeyboardInterrupt(), StoppedError),
    ],
)
@pytest.mark.parametrize("block", [1, 2, 3, 6])
def test_any_exception_while_recording_restores(
    journal: Journal, trouble: BaseException, raised: type[RtoptError], block: int
) -> None:
    engine = SyntheticEngine(speedup=1.5, on_record=at_block(block, trouble))
    with pytest.raises(raised, match=f"{KNOB}=8 stands") as caught:
        run(engine, journal)
    assert caught.value.__cause__ is trouble
    assert (engine.value, engine.snapshot) == (8, 8)
    assert acts(journal)[-1] == "error"
    if "apply 32" in engine.calls:
        assert engine.calls[-1] == "restore"


def test_ctrl_c_that_the_recording_swallowed_still_stops(journal: Journal) -> None:
    def interrupt(engine: SyntheticEngine) -> None:
        engine.end_reason = "interrupted" if engine.blocks == 4 else "duration"

    engine = SyntheticEngine(speedup=1.5, on_record=interrupt)
    with pytest.raises(StoppedError, match=f"Restored: {KNOB}=8 stands"):
        run(engine, journal)
    assert engine.value == 8


def test_an_exit_of_the_process_restores_too(journal: Journal) -> None:
    engine = SyntheticEngine(speedup=1.5, on_record=at_block(4, SystemExit(3)))
    with pytest.raises(SystemExit):
        run(engine, journal)
    assert engine.value == 8


@pytest.mark.parametrize("act", ["apply 32", "apply 8", "commit"])
@pytest.mark.parametrize("trouble", [EngineError("timeout"), KeyboardInterrupt()])
def test_an_exception_in_an_act_restores(
    journal: Journal, act: str, trouble: BaseException
) -> None:
    def raise_it(what: str) -> None:
        if what == act:
            raise trouble

    engine = SyntheticEngine(speedup=1.5, on_call=raise_it)
    with pytest.raises((EngineError, StoppedError), match=f"Restored: {KNOB}=8 stands"):
        run(engine, journal)
    assert (engine.value, engine.snapshot) == (8, 8)


def test_a_commit_that_took_but_was_not_confirmed_is_taken_back(journal: Journal) -> None:
    class LosesAnswer(SyntheticEngine):
        def settle(self, *, keep: bool) -> EngineState:
            state = super().settle(keep=keep)
            if keep and self.value == 32:
                raise EngineError("the answer was lost")
            return state

    engine = LosesAnswer(speedup=1.5)
    with pytest.raises(EngineError, match=f"answer was lost Restored: {KNOB}=8 stands"):
        run(engine, journal)
    assert (engine.value, engine.snapshot) == (8, 8)


def test_a_restore_that_fails_once_is_tried_again(journal: Journal) -> None:
    engine = SyntheticEngine(restore_fails=1)
    assert run(engine, journal).verdict.decision == "restore"
    assert engine.value == 8


@pytest.mark.parametrize("block", [None, 6])
def test_a_failing_restore_says_what_stands(journal: Journal, block: int | None) -> None:
    engine = SyntheticEngine(
        speedup=0.8,
        restore_fails=9,
        on_record=at_block(block, EngineError("gone")) if block else lambda engine: None,
    )
    with pytest.raises(UndoError, match=f"restore of {KNOB}=8 failed: connection refused") as error:
        run(engine, journal)
    assert error.value.exit_code == 70
    assert "lease" in str(error.value)
    assert acts(journal)[-1] == "error"


def test_a_second_ctrl_c_while_restoring_still_restores(journal: Journal) -> None:
    presses = iter([KeyboardInterrupt()])

    def press(what: str) -> None:
        if what == "restore":
            for interrupt in presses:
                raise interrupt

    engine = SyntheticEngine(on_record=at_block(4, KeyboardInterrupt()), on_call=press)
    with pytest.raises(StoppedError):
        run(engine, journal)
    assert engine.value == 8


def test_ctrl_c_in_an_ordinary_restore_is_heard_after_it(journal: Journal) -> None:
    presses = iter([KeyboardInterrupt()])

    def press(what: str) -> None:
        if what == "restore":
            for interrupt in presses:
                raise interrupt

    engine = SyntheticEngine(speedup=0.8, on_call=press)
    with pytest.raises(StoppedError, match=f"{KNOB}=8 stands"):
        run(engine, journal)
    assert engine.value == 8


def test_a_full_disk_does_not_stop_the_restore(journal: Journal, tmp_path: Path) -> None:
    def fill(engine: SyntheticEngine) -> None:
        if engine.blocks == 4:
            journal.path.unlink()
            journal.path.mkdir()

    engine = SyntheticEngine(speedup=1.5, on_record=fill)
    with pytest.raises(UsageError, match="The journal could not be written"):
        run(engine, journal)
    assert engine.value == 8


def test_a_lease_that_ran_out_within_a_block_spoils_it(journal: Journal) -> None:
    def expire(engine: SyntheticEngine) -> None:
        engine.value = 8

    engine = SyntheticEngine(speedup=1.5, on_record=expire)
    with pytest.raises(EngineError, match="lease ran out or somebody else"):
        run(engine, journal)
    assert engine.value == 8


def test_a_recording_that_was_cut_off_is_no_block(journal: Journal) -> None:
    class HangsUp(SyntheticEngine):
        def record(
            self, duration_s: float, *, load: Load | None = None, max_requests: int | None = None
        ) -> Trace:
            return super().record(duration_s / 2 if self.blocks == 3 else duration_s, load=load)

    engine = HangsUp(speedup=1.5)
    with pytest.raises(EngineError, match=r"ended after 5\.0 s"):
        run(engine, journal)
    assert engine.value == 8


def test_an_engine_that_somebody_else_holds_is_left_alone(journal: Journal) -> None:
    engine = SyntheticEngine(held_by_other=True)
    with pytest.raises(HeldError):
        run(engine, journal)
    assert "restore" not in engine.calls


@pytest.mark.parametrize(
    ("change", "state", "wanted"),
    [
        ({"nonsense": 3}, {}, KnobError),
        ({KNOB: 8}, {}, KnobError),
        ({KNOB: 32}, {"value": 16}, EngineError),
    ],
)
def test_what_can_not_be_tried_is_refused_before_anything_is_done(
    journal: Journal, change: Mapping[str, Value], state: dict[str, int], wanted: type[RtoptError]
) -> None:
    engine = SyntheticEngine(**state)  # type: ignore[arg-type]  # only int fields are given
    plan = replace(throughput_plan(), change=replace(CHANGE, knobs=change))
    with pytest.raises(wanted, match="Nothing was changed"):
        run(engine, journal, plan)
    assert engine.calls == []
    assert journal.acts() == ()


# -- the journal -----------------------------------------------------------------------------------


@pytest.mark.parametrize("speedup", [1.5, 0.8])
def test_the_intent_is_on_the_disk_before_every_act(journal: Journal, speedup: float) -> None:
    seen: list[tuple[str, object]] = []

    def look(what: str) -> None:
        if what != "record":
            last = journal.acts()[-1]
            assert last["act"] == "intent"
            seen.append((what, last["to"]))

    run(SyntheticEngine(speedup=speedup, on_call=look), journal)
    names = {"apply 32": "candidate", "apply 8": "base", "commit": "commit", "restore": "restore"}
    assert seen
    assert all(names[what] == to for what, to in seen)


def test_the_journal_gives_back_the_trial(journal: Journal) -> None:
    trial = run(SyntheticEngine(speedup=1.5), journal)
    (read,) = journal.trials()
    assert read == replace(trial, started_unix_ns=0, ended_unix_ns=0)


def test_a_kept_change_is_taken_back_from_the_journal_alone(journal: Journal) -> None:
    engine = SyntheticEngine(speedup=1.5)
    run(engine, journal)
    (kept,) = Journal(journal.path).kept()
    assert kept.change.knobs == {KNOB: 32}
    assert take_back(engine, Journal(journal.path)).undo.knobs == {KNOB: 8}
    assert (engine.value, engine.snapshot) == (8, 8)
    assert journal.kept() == ()
    assert "later taken back" in journal.story()
    with pytest.raises(UsageError, match="no kept change"):
        take_back(engine, journal)


def test_a_kept_change_that_somebody_moved_since_is_not_taken_back(journal: Journal) -> None:
    engine = SyntheticEngine(speedup=1.5)
    run(engine, journal)
    engine.value = engine.snapshot = 16
    with pytest.raises(EngineError, match="moved or started anew"):
        take_back(engine, journal)
    assert engine.value == 16


def test_an_undo_that_fails_leaves_the_kept_value(journal: Journal) -> None:
    engine = SyntheticEngine(speedup=1.5)
    run(engine, journal)

    def lose(what: str) -> None:
        if what == "commit":
            raise EngineError("timeout")

    engine.on_call = lose
    with pytest.raises(EngineError, match=f"Restored: {KNOB}=32 stands"):
        take_back(engine, journal)
    assert (engine.value, engine.snapshot) == (32, 32)
    assert len(journal.kept()) == 1


@pytest.mark.parametrize("last", ["plan", "intent", "set", "block", "verdict"])
def test_after_a_kill_the_story_says_what_should_stand(
    journal: Journal, tmp_path: Path, last: str
) -> None:
    run(SyntheticEngine(speedup=1.5), journal)
    whole = journal.path.read_text().splitlines(keepends=True)
    until = max(i for i, act in enumerate(acts(journal)) if act == last)
    if last == "intent":
        until = acts(journal).index("intent")  # the later ones have their own test
    cut_off = tmp_path / "cut.jsonl"
    cut_off.write_text("".join(whole[: until + 1]) + '{"act": "se')
    story = Journal(cut_off).story()
    assert f"{KNOB}=8" in story
    assert "ended here without a word" in story
    assert "cut off while it was being written" in story
    assert Journal(cut_off).kept() == ()


def test_after_a_kill_within_the_commit_the_story_names_both_values(
    journal: Journal, tmp_path: Path
) -> None:
    run(SyntheticEngine(speedup=1.5), journal)
    lines = journal.path.read_text().splitlines(keepends=True)
    cut_off = tmp_path / "cut.jsonl"
    cut_off.write_text("".join(lines[:-1]))
    story = Journal(cut_off).story()
    assert f"while it committed {KNOB}=32" in story
    assert f"restored {KNOB}=8" in story


def test_the_story_of_a_whole_run_names_every_trial(journal: Journal) -> None:
    assert "empty" in journal.story()
    engine = SyntheticEngine(speedup=0.8)
    run(engine, journal)
    engine.speedup = 1.5
    run(engine, journal)
    story = journal.story()
    assert f"{KNOB}-1" in story
    assert f"{KNOB}-2" in story
    assert "Restored (harm:" in story
    assert f"{KNOB}=32 is committed" in story


def test_progress_is_told_before_each_block(journal: Journal) -> None:
    told: list[tuple[str, float | None]] = []

    def tell(message: str, done: float | None = None) -> None:
        told.append((message, done))

    run_trial(
        SyntheticEngine(speedup=1.5),
        throughput_plan(),
        journal=journal,
        progress=tell,
    )
    assert told[0][0].startswith("pair 1 of at most 30")
    assert told[-1][0].startswith("keep: throughput +")
