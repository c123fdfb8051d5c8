"""Predicting metrics by replaying the recorded traffic on the engine's own scheduler.

The step time is fitted to the trace, the requests are those of the trace, and what runs in which
step is decided by vLLM's scheduler with the knobs in question.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

import numpy as np
from scipy.special import stdtrit

from rtopt.cost import StepLoad, StepTime
from rtopt.errors import EvidenceError, UnavailableError
from rtopt.metrics import cut, measure
from rtopt.predict.step_fit import fit_step_time
from rtopt.sim import KNOBS, Simulator, installed_version
from rtopt.traffic import workload_of
from rtopt.types import (
    EngineInfo,
    Estimate,
    InFlight,
    Interval,
    Origin,
    Prediction,
    Trace,
    Value,
    Workload,
)

LEVEL = 0.9
MAX_CLOSED_S = 120.0
"""A closed loop is stationary: replaying longer tells no more."""
EXTRAPOLATED = 1.25
"""Decoding requests beyond this times what the fit has seen are an extrapolation."""
_TERMS = ("step_base_ms", "step_decode_ms", "step_prefill_token_ms", "step_prefill_request_ms")
_NOT_REPLAYED = ("errors",)


def prepare(info: EngineInfo) -> None:
    """Load the engine's scheduler now (about 10 s, once), so that no measurement waits for it.

    Raises:
        UnavailableError: vLLM is missing here, or the engine is not modelled.
        EvidenceError: `info` lacks what the scheduler needs.
    """
    Simulator(info, {}, StepTime(base_ms=1.0, decode_ms=0.0, prefill_token_ms=0.0), seed=0)


def run(trace: Trace, *, step_time: StepTime | None = None) -> Prediction:
    """Predict the engine's metrics at the knobs it was recorded with."""
    return by_replay(trace, step_time=step_time)


def by_replay(
    trace: Trace,
    *,
    set: Mapping[str, Value] | None = None,  # noqa: A002 - reads like the flag --set knob=value
    step_time: StepTime | None = None,
    seeds: int = 3,
    allow_version: bool = False,
) -> Prediction:
    """Predict the engine's metrics with some knobs set differently.

    The interval of a metric holds the spread from seed to seed and what the uncertainty of the
    step time does to it: two more replays take the coefficients at the 5 % and the 95 % draw,
    ordered by the time of a step with the replayed work.

    Args:
        trace: Recorded with the overlay, so that it has every step.
        set: Knob name to value; the other knobs stay as recorded.
        step_time: From `fit_step_time`, when more than this trace has taught it.
        seeds: Replays with the central coefficients, at least 2.
        allow_version: Replay also when another vLLM is installed than was recorded; labelled.

    Raises:
        EvidenceError: The trace has no steps, too few of them, or no finished request.
        KnobError: A knob is unknown, or its value outside floor and ceiling.
        UnavailableError: vLLM is missing, of another version, or the engine is not modelled.
    """
    _need_steps(trace)
    differs = _version_note(trace, allow=allow_version)
    wanted = dict(set or {})
    step_time = step_time or fit_step_time(trace)
    plan = _Plan.of(trace, wanted)
    central = [plan.replay(step_time, seed) for seed in range(max(2, seeds))]
    batch = fmean(run.decode_p95 for run in central)
    edges = [plan.replay(edge, 0) for edge in _edges(step_time, central[0].load)]
    beyond = batch > EXTRAPOLATED * step_time.max_decode
    # At the recorded knobs the batch is the recorded one, and the split does not matter.
    rests_on: Origin = step_time.decode_origin if wanted else "observed"
    return Prediction(
        method="replay",
        knobs={**plan.knobs, **wanted},
        metrics=_estimates(central, edges, rests_on),
        terms=_terms(step_time, batch),
        assumptions=(*plan.assumptions, *_fit_notes(step_time, batch, beyond=beyond), *differs),
        is_extrapolated=beyond,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One replay."""

    metrics: Mapping[str, float]
    load: StepLoad
    """Mean work of a step, rounded."""
    decode_p95: float
    """95th percentile of the number of decoding requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What every replay of one prediction has in common."""

    trace: Trace
    workload: Workload
    resume: tuple[InFlight, ...]
    knobs: Mapping[str, Value]
    """As recorded, at the end of the trace."""
    wanted: Mapping[str, Value]
    warm_s: float
    duration_s: float
    assumptions: tuple[str, ...]

    @staticmethod
    def of(trace: Trace, wanted: Mapping[str, Value]) -> "_Plan":
        workload = workload_of(trace)
        resume = _resume(trace)
        recorded = _recorded_knobs(trace)
        closed = workload.load.kind == "closed"
        if closed:
            resume = resume[: workload.load.clients]
        elif resume:
            # Those that arrived before the window are in the engine already.
            later = tuple(ask for ask in workload.asks if ask.arrival_ns > 0)
            workload = replace(workload, asks=later or workload.asks)
        e2e_s = fmean(request.e2e_ms for request in trace.requests) / 1e3
        duration_s = min(trace.duration_s, MAX_CLOSED_S) if closed else trace.duration_s
        return _Plan(
            trace=trace,
            workload=workload,
            resume=resume,
            knobs=recorded,
            wanted=wanted,
            warm_s=min(max(2.0, 2 * e2e_s), duration_s) if closed else 0.0,
            duration_s=duration_s,
            assumptions=_assumptions(trace, workload, resume),
        )

    def replay(self, step_time: StepTime, seed: int) -> _Run:
        at_start = {k: v for k, v in self.wanted.items() if k in KNOBS and not KNOBS[k].path}
        recorded = dict(self.knobs)
        seqs = self.trace.header.engine.config.get("max_num_seqs")
        if "max_num_seqs" in at_start and recorded.get("max_num_active_seqs") == seqs:
            # It was no cap of its own, and would not be one after that restart.
            recorded.pop("max_num_active_seqs", None)
        simulator = Simulator(
            self.trace.header.engine, {**at_start, **recorded}, step_time, seed=seed
        )
        simulator.offer(self.workload, resume=self.resume)
        for name, value in self.wanted.items():
            if name not in at_start:
                simulator.set_knob(name, value)
        whole = simulator.advance(self.warm_s + self.duration_s)
        return _run(cut(whole, round(self.warm_s * 1e9), whole.end_ns))


def _run(trace: Trace) -> _Run:
    steps = trace.steps
    if not steps:
        raise EvidenceError(
            f"the replay of {trace.duration_s:.0f} s of this workload made no step: with these"
            " knobs no request can be scheduled. Nothing was predicted."
        )
    decode = [step.decode_requests or 0 for step in steps]
    return _Run(
        metrics={k: v for k, v in measure(trace).items() if k not in _NOT_REPLAYED},
        load=StepLoad(
            prefill_requests=round(fmean(step.prefill_requests or 0 for step in steps)),
            prefill_tokens=round(fmean(step.prefill_tokens or 0 for step in steps)),
            decode_requests=round(fmean(decode)),
        ),
        decode_p95=float(np.quantile(decode, 0.95)),
    )


def _need_steps(trace: Trace) -> None:
    if trace.header.source == "metrics" or not trace.steps:
        raise EvidenceError(
            f"this trace has no engine steps (source: {trace.header.source}), and predicting needs"
            " them. Start the server with the overlay: `rtopt serve`, or"
            " `PYTHONPATH=$(rtopt overlay-path) VLLM_PLUGINS=rtopt vllm serve ...`, and record"
            " again. Nothing was predicted.",
            source=trace.header.source,
        )


def _version_note(trace: Trace, *, allow: bool) -> tuple[str, ...]:
    recorded, here = trace.header.engine.version, installed_version()
    # "0.32.0+cpu" and "0.32.0" have the same scheduler.
    if recorded.split("+")[0] == here.split("+")[0]:
        return ()
    if not allow:
        raise UnavailableError(
            f"the trace is of vLLM {recorded}, and the scheduler installed here is {here}'s: it may"
            " decide otherwise. Install that version beside rtopt, or allow another version and"
            " take the prediction with that label. Nothing was predicted.",
            recorded=recorded,
            installed=here,
        )
    return (f"replayed on the scheduler of vLLM {here}; the engine runs {recorded}",)


def _recorded_knobs(trace: Trace) -> dict[str, Value]:
    knobs = dict(trace.header.knobs)
    for mark in sorted(trace.marks, key=lambda mark: mark.t_ns):
        knobs.update(mark.knobs)
    return {name: value for name, value in knobs.items() if name in KNOBS}


def _resume(trace: Trace) -> tuple[InFlight, ...]:
    """Requests in the engine when recording began, with the full length of their answers.

    One whose full length nobody knows is left out.
    """
    length = {request.id: request.output_tokens for request in trace.requests}
    known = []
    for item in trace.in_flight:
        total = length.get(item.id) or item.max_tokens
        if item.edge == "start" and total is not None and total > item.output_tokens:
            since = None if item.arrival_ns is None else item.arrival_ns - trace.start_ns
            known.append(replace(item, max_tokens=total, arrival_ns=since))
    return tuple(known)


def _assumptions(trace: Trace, workload: Workload, resume: Sequence[InFlight]) -> tuple[str, ...]:
    notes = ["the machine stays as fast as it was during the trace"]
    if trace.header.load is None:
        notes.append("nobody stated the load, so arrivals do not react to the engine's speed")
    if workload.load.kind == "closed":
        notes.append(
            f"{workload.load.clients} clients ask again {workload.think_ns / 1e6:.1f} ms after each"
            " answer, with the recorded lengths in the recorded order from a random place on"
        )
    if not resume and workload.load.kind == "closed":
        notes.append(
            "the trace does not say what was in flight at its start: the first answers are cut at"
            " random, so that the clients do not march in step"
        )
    if not resume and workload.load.kind == "open":
        notes.append("the engine is empty at the start")
    if any(ask.cached_tokens for ask in workload.asks):
        notes.append("prompt tokens found in the prefix cache are one prefix shared by all of them")
    if trace.header.engine.config.get("async_scheduling"):
        notes.append("asynchronous scheduling: the replay of it is not validated on a live engine")
    return tuple(notes)


def _fit_notes(step_time: StepTime, batch: float, *, beyond: bool) -> tuple[str, ...]:
    notes = []
    if step_time.decode_origin == "seed":
        notes.append(
            "the number of decoding requests hardly varied in the trace, so what one more costs"
            " rests on an assumed ratio to the step's base, right within a factor of 8"
        )
    if beyond:
        notes.append(
            f"extrapolated: {batch:.0f} requests decode together in the replay, at most"
            f" {step_time.max_decode} did in the trace"
        )
    return tuple(notes)


def _edges(step_time: StepTime, load: StepLoad) -> tuple[StepTime, ...]:
    """The fastest and the slowest line that the data allow, for steps with this work."""
    lines = [step_time.with_coefficients(draw) for draw in step_time.draws]
    lines.sort(key=lambda line: line.mean_ms(load))
    last = len(lines) - 1
    return (lines[round((1 - LEVEL) / 2 * last)], lines[round((1 + LEVEL) / 2 * last)])


def _estimates(
    central: Sequence[_Run], edges: Sequence[_Run], origin: Origin
) -> dict[str, Estimate]:
    num = len(central)
    # A measurement is one more run, so its own spread counts too.
    widen = float(stdtrit(num - 1, (1 + LEVEL) / 2)) * (1 + 1 / num) ** 0.5
    estimates = {}
    for name in central[0].metrics:
        if not all(name in run.metrics for run in (*central, *edges)):
            continue
        values = [run.metrics[name] for run in central]
        mean, noise = fmean(values), widen * stdev(values)
        # Against the run with the same seed, so that only the coefficients differ.
        shifts = [run.metrics[name] - values[0] for run in edges]
        low = mean - (noise**2 + min(0.0, *shifts) ** 2) ** 0.5
        high = mean + (noise**2 + max(0.0, *shifts) ** 2) ** 0.5
        estimates[name] = Estimate(
            value=mean,
            interval=Interval(low=max(0.0, low), high=high, level=LEVEL),
            origin=origin,
        )
    return estimates


def _terms(step_time: StepTime, batch: float) -> dict[str, Estimate]:
    intervals = step_time.intervals(LEVEL) or (None,) * len(_TERMS)
    terms = {
        name: Estimate(value=value, interval=interval)
        for name, value, interval in zip(_TERMS, step_time.coefficients, intervals, strict=True)
    }
    # Base and request share what the data do not tell apart.
    for name in _TERMS[:2]:
        terms[name] = replace(terms[name], origin=step_time.decode_origin)
    terms["decode_batch_seen"] = Estimate(value=float(step_time.max_decode))
    terms["decode_batch_replayed"] = Estimate(value=batch)
    return terms
