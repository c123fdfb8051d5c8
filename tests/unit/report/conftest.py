"""A synthetic run built from our own nouns: one change kept, one restored."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtopt.metrics import measure
from rtopt.report import Chain, fingerprint
from rtopt.report.page import page_of, to_html
from rtopt.report.run import Run, open_run
from rtopt.storage import AppendLog, save, to_json, write_trace
from rtopt.types import (
    Arm,
    Attribution,
    Block,
    Cause,
    Change,
    Choice,
    Clock,
    Deviation,
    End,
    EngineInfo,
    EntryKind,
    Estimate,
    Evidence,
    Finding,
    Gap,
    GuardResult,
    Header,
    Interval,
    Load,
    Machine,
    Mark,
    Option,
    Plan,
    Prediction,
    Request,
    Slo,
    Step,
    Trace,
    Trial,
    Value,
    Verdict,
)

S = 1_000_000_000
START_NS = 5_000 * S
UNIX_NS = 1_790_000_000 * S
CLIENTS = 32
OUTPUT = 48


def trace(slots: int, start_s: float, duration_s: float, seed: int, budget: int = 2048) -> Trace:
    """32 clients on a toy engine with this many slots."""
    rng = np.random.default_rng(seed)
    start_ns = START_NS + int(start_s * S)
    waiting = CLIENTS - slots
    at_ms = 0.0
    steps: list[Step] = []
    requests: list[Request] = []
    per_request_ms = OUTPUT * (41 + 1.5 * slots) / slots
    while at_ms < duration_s * 1e3 - 500:
        done = int(rng.binomial(slots, 1 / OUTPUT))
        ms = (41 + 1.5 * (slots - done) + 22 * done) * float(np.exp(rng.normal(0, 0.05)))
        at_ms += ms + 1.2
        ttft = [(waiting * per_request_ms + ms) * float(rng.uniform(0.8, 1.2)) for _ in range(done)]
        now = start_ns + int(at_ms * 1e6)
        steps.append(
            Step(
                t_ns=now,
                index=len(steps),
                dur_ns=int(ms * 1e6),
                prefill_requests=done,
                prefill_tokens=64 * done,
                decode_requests=slots - done,
                decode_tokens=slots - done,
                running=slots,
                waiting=waiting,
                kv_frac=min(slots * 100 / 46_592, 1.0),
                preempted=0,
                output_tokens=slots,
                ttft_ms=tuple(ttft),
                itl_ms=tuple(float(x) for x in (ms + 1.2) * rng.uniform(0.98, 1.02, slots - done)),
            )
        )
        requests += [
            Request(
                id=f"r{len(steps)}-{i}",
                arrival_ns=now - int((first + OUTPUT * ms) * 1e6),
                finished_ns=now,
                prompt_tokens=64,
                output_tokens=OUTPUT,
                e2e_ms=first + OUTPUT * ms,
                finish="length",
            )
            for i, first in enumerate(ttft)
        ]
    end_ns = start_ns + int(duration_s * S)
    header = Header(
        source="overlay",
        engine=EngineInfo(
            name="vllm",
            version="0.32.0",
            model="SmolLM2-135M-Instruct",
            config={
                "max_num_seqs": 64,
                "max_num_batched_tokens": 2048,
                "block_size": 128,
                "enforce_eager": True,
                "model": "/home/somebody/models/SmolLM2-135M-Instruct",
                "speculative_config": None,
            },
        ),
        machine=Machine(
            cpu="Intel Xeon (AMX)", num_cpus=2, memory_bytes=16 * 2**30, python="3.11.9"
        ),
        clock=Clock(mono_ns=start_ns, unix_ns=UNIX_NS + start_ns - START_NS),
        start_ns=start_ns,
        knobs={"max_num_active_seqs": slots, "max_num_scheduled_tokens": budget},
        load=Load(kind="closed", clients=CLIENTS),
        derived={"output_tokens": "decode tokens plus first tokens"},
    )
    end = End(
        end_ns=end_ns,
        clock=Clock(mono_ns=end_ns, unix_ns=UNIX_NS + end_ns - START_NS + 400_000),
        failed_reads={"cpu": 1},
    )
    mark = Mark(t_ns=start_ns, what="set", by="rtopt", knobs=header.knobs)
    return Trace(
        header=header, end=end, steps=tuple(steps), requests=tuple(requests), marks=(mark,)
    )


def estimate(value: float, spread: float = 0.06) -> Estimate:
    low, high = value * (1 - spread), value * (1 + spread)
    return Estimate(value=value, interval=Interval(low=low, high=high, level=0.9))


def prediction(of: Trace, knobs: dict[str, Value], *, off: float, far: bool = False) -> Prediction:
    """What the trace measured, off by so much."""
    values = measure(of)
    signs = {"throughput": 1.0, "ttft_p95": -2.0, "e2e_mean": -0.5}
    metrics = {n: estimate(v * (1 + signs.get(n, -1.0) * off)) for n, v in values.items() if v > 0}
    return Prediction(method="replay", knobs=knobs, metrics=metrics, is_extrapolated=far)


def trial(
    name: str,
    change: Change,
    undo: Change,
    *,
    of: tuple[Trace, Trace],
    start_s: float,
    effects: tuple[float, ...],
    e_values: tuple[float, ...],
    verdict: Verdict,
    slos: tuple[Slo, ...],
) -> Trial:
    """Blocks with the metrics of two recordings, each pair off by a common drift."""
    rng = np.random.default_rng(len(effects))
    blocks = []
    for pair in range(len(effects)):
        order: tuple[Arm, Arm] = ("base", "candidate")
        drift = float(np.exp(rng.normal(0, 0.04)))
        for place, arm in enumerate(order if rng.random() < 0.5 else order[::-1]):
            source = of[0] if arm == "base" else of[1]
            at = START_NS + int((start_s + (2 * pair + place) * 10) * S)
            wobble = float(np.exp(rng.normal(0, 0.02)))
            metrics = {
                n: v * (drift * wobble if n == "throughput" else 1 / (drift * wobble))
                for n, v in measure(source).items()
            }
            if arm == "candidate":
                metrics["throughput"] *= effects[pair]
            blocks.append(
                Block(
                    pair=pair,
                    arm=arm,
                    start_ns=at,
                    end_ns=at + 10 * S,
                    metrics=metrics,
                    requests=int(metrics["throughput"] * 10 / OUTPUT),
                )
            )
    exposed = sum(b.requests for b in blocks if b.arm == "candidate")
    plan = Plan(
        change=change,
        objective="throughput",
        slos=slos,
        alpha=0.005,
        prior=1.0,
        block_s=10,
        washout_s=2,
        max_pairs=30,
        noise_sd=0.036,
        false_keep={"0": 0.0031, "-2%": 0.0, "-5%": 0.0},
    )
    return Trial(
        id=name,
        plan=plan,
        undo=undo,
        blocks=tuple(blocks),
        verdict=Verdict(
            decision=verdict.decision,
            reason=verdict.reason,
            effect=verdict.effect,
            e_value=e_values[-1],
            guards=verdict.guards,
            pairs=len(effects),
            exposed_requests=exposed,
        ),
        e_values=e_values,
        started_unix_ns=UNIX_NS + int(start_s * S),
        ended_unix_ns=UNIX_NS + int((start_s + 20 * len(effects)) * S),
    )


def attribution(trace: Trace, *, is_bound: bool) -> Attribution:
    """Slots full before, nothing after."""
    slots = float(trace.header.knobs["max_num_active_seqs"])
    share = 1.0 if is_bound else 0.0
    text = f"every one of the {slots:g} slots was taken while requests waited"
    found = Finding(
        cause=Cause.SLOTS_FULL,
        share=share,
        evidence=(
            Evidence(
                measure="slots_full_frac",
                value=share,
                unit="frac",
                threshold=0.2,
                supports=is_bound,
                text=f"{text} for {share:.0%} of the busy time",
            ),
            Evidence(
                measure="running_mean",
                value=slots,
                unit="requests",
                threshold=slots,
                supports=is_bound,
                text=f"{slots:g} requests ran at once on average, {slots:g} may",
            ),
        ),
    )
    gap = Finding(
        cause=Cause.HOST_GAP,
        share=0.024,
        evidence=(
            Evidence(
                measure="host_gap_frac",
                value=0.024,
                unit="frac",
                threshold=0.15,
                supports=False,
                text="2% of the busy time passed between the model's runs although work was left",
            ),
        ),
    )
    nothing = (
        "none of 7 checks reached its threshold; nearest: time is lost between steps (2%, named"
        " from 15%)"
    )
    return Attribution(
        method="rules",
        findings=(found,) if is_bound else (),
        abstained=None if is_bound else nothing,
        considered=(gap,) if is_bound else (found, gap),
        absent={Cause.QUEUE_GROWING: "closed loop: clients wait for answers"},
        unexplained_frac=0.0,
    )


@dataclass(slots=True)
class Story:
    """What happened in a run; `write` leaves it as the loop would."""

    slos: tuple[Slo, ...] = (Slo(metric="itl_p95", limit=200.0),)
    settings: dict[str, Any] = field(
        default_factory=lambda: {
            "objective": "throughput",
            "url": "http://engine.example:8000",
            "token": "t0p-s3cret",
            "gate": {"alpha": 0.01, "block_s": 10},
            "levers": "/home/somebody/levers",
        }
    )
    before: Trace = field(default_factory=lambda: trace(4, 0, 40, 1))
    after: Trace = field(default_factory=lambda: trace(32, 220, 40, 2))

    def raise_slots(self) -> Trial:
        return trial(
            "max_num_active_seqs-1",
            change(max_num_active_seqs=32, reason="from 4 to 32"),
            change(max_num_active_seqs=4, reason="back"),
            of=(self.before, self.after),
            start_s=45,
            effects=(1.0,) * 8,
            e_values=(1.0, 0.9, 4.2, 17.0, 61.0, 98.0, 155.0, 243.0),
            verdict=Verdict(
                decision="keep",
                reason="throughput +288% after 8 pairs, e=243 (needs 100), every guard held",
                effect=Estimate(value=2.88, interval=Interval(low=2.62, high=3.17, level=0.99)),
                guards=(
                    GuardResult(name="engine_restart", state="held", text="no restart"),
                    GuardResult(
                        name="errors",
                        state="held",
                        text="0 requests ended in an error, baseline 0",
                    ),
                    GuardResult(
                        name="slo itl_p95",
                        state="held",
                        text="itl_p95 <= 200 ms, candidate mean 135: proven",
                        e_value=61.0,
                    ),
                ),
            ),
            slos=self.slos,
        )

    def lower_budget(self) -> Trial:
        return trial(
            "max_num_scheduled_tokens-2",
            change(max_num_scheduled_tokens=512, reason="from 2048 to 512"),
            change(max_num_scheduled_tokens=2048, reason="back"),
            of=(self.after, self.after),
            start_s=265,
            effects=(0.93, 0.95, 0.92, 0.94, 0.93),
            e_values=(1.0, 1.3, 2.8, 7.1, 13.4),
            verdict=Verdict(
                decision="restore",
                reason="harm: throughput -7% after 5 pairs, e=13.4 (stops at 10)",
                effect=Estimate(value=-0.066, interval=Interval(low=-0.12, high=-0.01, level=0.99)),
                guards=(GuardResult(name="errors", state="held", text="0 errors, baseline 0"),),
            ),
            slos=self.slos,
        )

    def choices(self) -> tuple[Choice, Choice]:
        now = prediction(self.before, {}, off=0.02)
        half = trace(8, 0, 20, 3)
        up = Option(
            lever="max_num_active_seqs",
            change=change(max_num_active_seqs=32, reason="from 4 to 32"),
            forecast=prediction(self.after, {"max_num_active_seqs": 32}, off=0.05, far=True),
            gain_frac=3.1,
        )
        less = Option(
            lever="max_num_active_seqs",
            change=change(max_num_active_seqs=8, reason="from 4 to 8"),
            forecast=prediction(half, {"max_num_active_seqs": 8}, off=0.03),
            gain_frac=0.83,
            rejected="ranked behind from 4 to 32 (forecast gain +310.0%)",
        )
        no = Option(
            lever="max_num_scheduled_tokens",
            change=None,
            rejected="it targets token_budget_full, and the named causes are: slots_full",
        )
        first = Choice(
            change=up.change,
            reason="max_num_active_seqs from 4 to 32: forecast gain +310.0%, the best of 2.",
            options=(up, less, no),
            now=now,
        )
        down = Option(
            lever="max_num_scheduled_tokens",
            change=change(max_num_scheduled_tokens=512, reason="from 2048 to 512"),
            forecast=Prediction(method="none", knobs={}, refusal="too few steps with prefill"),
        )
        second = Choice(change=down.change, reason="The user asked for it.", options=(down,))
        return first, second


def change(*, reason: str, **knobs: Value) -> Change:
    return Change(lever=next(iter(knobs)), knobs=knobs, reason=reason)


class Folder:
    """A run's folder, written link by link."""

    def __init__(self, path: Path, story: Story) -> None:
        path.mkdir()
        self.path, self.story = path, story
        about = {"kind": "tune", "created_unix_ns": UNIX_NS, "settings": story.settings}
        save_json(path / "run.json", about)
        ticks = iter(range(UNIX_NS, UNIX_NS + 1000 * S, S))
        self.chain = Chain(path / "provenance.jsonl", unix_ns=lambda: next(ticks))
        self.chain.append("run", "rtopt tune", {"objective": "throughput"})

    def recording(self, name: str, of: Trace) -> None:
        write_trace(of, self.path / f"{name}.jsonl.gz")
        body = fingerprint(self.path / f"{name}.jsonl.gz")
        self.chain.append("evidence", f"recorded: {name}", body)

    def noun(self, name: str, kind: EntryKind, title: str, noun: object) -> None:
        save(noun, self.path / f"{name}.json")
        self.chain.append(kind, title, noun)

    def thought(self, round_: int, of: Trace, choice: Choice, *, is_bound: bool) -> None:
        said = prediction(of, dict(of.header.knobs), off=0.02)
        values = measure(of)
        gaps = {
            n: Gap(measured=values[n], predicted=e.value, rel=values[n] / e.value - 1)
            for n, e in said.metrics.items()
        }
        deviation = Deviation(
            metrics=gaps, unmatched_frac=0.01, absent={"kernel_time": "no event plane"}
        )
        self.noun(f"prediction-{round_}", "evidence", "predicted for present knobs", said)
        self.noun(f"deviation-{round_}", "evidence", "measured against predicted", deviation)
        why = attribution(of, is_bound=is_bound)
        self.noun(f"attribution-{round_}", "claim", "why it is as fast as it is", why)
        self.noun(f"choice-{round_}", "claim", choice.reason, choice)

    def cost(self) -> None:
        body = {"overlay_cost": {"record_ns": 52_000_000, "steps": 1300}}
        self.chain.append("evidence", "what recording cost", body)

    def end(self, reason: str) -> None:
        self.chain.append("end", reason, {"trials": 2})


def save_json(path: Path, data: dict[str, Any]) -> None:
    AppendLog(path).append(data)


@pytest.fixture(scope="session")
def story() -> Story:
    return Story()


RUN_ID = "20260921-134640-000-tune-ab12"


def _baseline_only(folder: Folder) -> None:
    story = folder.story
    folder.recording("baseline", story.before)
    first, _ = story.choices()
    folder.thought(1, story.before, first, is_bound=True)
    folder.end("the plan was not confirmed; nothing was changed")


def _two_trials(folder: Folder) -> None:
    story = folder.story
    first, second = story.choices()
    folder.recording("baseline", story.before)
    folder.thought(1, story.before, first, is_bound=True)
    kept = story.raise_slots()
    folder.chain.append("intervention", "trial planned: from 4 to 32", to_json(kept.plan))
    folder.noun("trial-1", "delta", kept.verdict.reason, kept)
    folder.recording("after-1", story.after)
    folder.thought(2, story.after, second, is_bound=False)
    lost = story.lower_budget()
    folder.chain.append("intervention", "trial planned: from 2048 to 512", to_json(lost.plan))
    folder.noun("trial-2", "delta", lost.verdict.reason, lost)
    folder.cost()
    folder.end("2 trials, the most this run may make")


def _one_restored(folder: Folder) -> None:
    lost = folder.story.lower_budget()
    folder.recording("baseline", folder.story.after)
    folder.noun("trial-1", "delta", lost.verdict.reason, lost)
    folder.end("1 trial")


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory, story: Story) -> Callable[[str], Path]:
    """Each kind of run, written once; do not change it."""
    kinds = {f.__name__: f for f in (_baseline_only, _two_trials, _one_restored)}
    made: dict[str, Path] = {}

    def write(kind: str) -> Path:
        if kind not in made:
            folder = Folder(tmp_path_factory.mktemp(kind) / RUN_ID, story)
            kinds[f"_{kind}"](folder)
            made[kind] = folder.path
        return made[kind]

    return write


@pytest.fixture
def baseline_only(tmp_path: Path, written: Callable[[str], Path]) -> Path:
    """Profile, predict and attribute; nothing is tried."""
    return shutil.copytree(written("baseline_only"), tmp_path / "b" / RUN_ID)


@pytest.fixture
def two_trials(tmp_path: Path, written: Callable[[str], Path]) -> Path:
    """The whole loop: more slots are kept, a smaller budget is restored."""
    return shutil.copytree(written("two_trials"), tmp_path / "t" / RUN_ID)


@pytest.fixture
def one_restored(tmp_path: Path, written: Callable[[str], Path]) -> Path:
    """A single `rtopt apply` that was restored; no diagnosis was made."""
    return shutil.copytree(written("one_restored"), tmp_path / "o" / RUN_ID)


@pytest.fixture(scope="session")
def opened(written: Callable[[str], Path]) -> Run:
    """The whole loop, read back."""
    return open_run(written("two_trials"))


@pytest.fixture(scope="session")
def html(opened: Run) -> str:
    """The whole loop's page."""
    return to_html(page_of(opened))
