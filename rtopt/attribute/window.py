"""The engine's busy time, step by step: what every check looks at."""

# ruff: noqa: N815 - the shape suffix of a series, see Shapes below

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rtopt.errors import EvidenceError
from rtopt.types import Step, Trace, Value

# Shapes: N steps whose wall time is known, in the order of time within each engine.

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

MIN_KNOWN_FRAC = 0.9
"""A share needs its inputs for this part of the busy time; otherwise the missing part could turn
the answer around at the thresholds used here (0.1 to 0.5)."""

SLOT_KNOBS = ("max_num_active_seqs", "max_num_seqs")
BUDGET_KNOBS = ("max_num_scheduled_tokens", "max_num_batched_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Series over the steps of a trace; NaN where a value was not recorded."""

    trace: Trace
    t_N: Vector
    """End of the step, s from the start of the window."""
    wall_N: Vector
    """Busy time that belongs to the step, s: since the step before it when there was work left,
    otherwise the model's run alone."""
    run_N: Vector
    """The model's run, s."""
    follows_work_N: Mask
    """Work was left when the step before it ended, so `wall_N` holds everything between the two."""
    prefill_requests_N: Vector
    prefill_tokens_N: Vector
    decode_requests_N: Vector
    decode_tokens_N: Vector
    batch_N: Vector
    """Requests in the step: scheduled in it, or still running after it, whichever is more."""
    waiting_N: Vector
    kv_N: Vector
    """KV blocks in use, 0..1."""
    preempted_N: Vector
    slots_N: Vector
    """Cap on requests that run at once, as it stood at the step."""
    budget_N: Vector
    """Cap on tokens in one step, as it stood at the step."""
    itl_ms: tuple[tuple[float, ...], ...]
    """Inter-token latencies of each step."""
    num_engines: int
    hole_s: float
    """Time next to steps that were not recorded, summed over engines."""

    @property
    def busy_s(self) -> float:
        """Busy time, summed over engines."""
        return float(self.wall_N.sum())

    @property
    def idle_frac(self) -> float:
        """Share of the window in which an engine had nothing to do."""
        total = self.trace.duration_s * self.num_engines
        return min(max(1.0 - (self.busy_s + self.hole_s) / total, 0.0), 1.0)

    @property
    def hole_frac(self) -> float:
        """Share of busy time and holes together that lies next to steps not recorded."""
        return self.hole_s / (self.busy_s + self.hole_s) if self.hole_s else 0.0

    def share(self, held_N: Mask, *needs: Vector, what: str) -> float:
        """Share of the busy time in which `held_N` is true, 0..1.

        Args:
            held_N: The condition; its value where an input is NaN does not count.
            needs: Its inputs.
            what: Their name, for the message.

        Raises:
            EvidenceError: The inputs are known for too little of the busy time.
        """
        known_N = self.known(*needs, what=what)
        return float(self.wall_N[known_N & held_N].sum() / self.wall_N[known_N].sum())

    def mean(self, y_N: Vector, *, what: str) -> float:
        """Time-weighted mean over the busy time.

        Raises:
            EvidenceError: The series is known for too little of the busy time.
        """
        known_N = self.known(y_N, what=what)
        return float(np.average(y_N[known_N], weights=self.wall_N[known_N]))

    def known(self, *needs: Vector, what: str) -> Mask:
        """Mark the steps in which every input was recorded.

        Raises:
            EvidenceError: They hold too little of the busy time.
        """
        known_N = np.ones(len(self.wall_N), dtype=np.bool_)
        for y_N in needs:
            known_N &= np.isfinite(y_N)
        frac = float(self.wall_N[known_N].sum() / self.busy_s)
        if frac < MIN_KNOWN_FRAC:
            raise EvidenceError(
                f"{what} recorded for {frac:.0%} of the busy time, "
                f"at least {MIN_KNOWN_FRAC:.0%} wanted",
                known_frac=frac,
            )
        return known_N


def open_window(trace: Trace) -> Window:
    """Lay the steps of a trace out as series.

    Raises:
        EvidenceError: No step has a known wall time, or all of them together have none.
    """
    engines = sorted({s.engine for s in trace.steps})
    rows: list[tuple[Step, float, bool]] = []
    hole_s = 0.0
    for engine in engines:
        steps = sorted((s for s in trace.steps if s.engine == engine), key=lambda s: s.t_ns)
        found, hole = _walls(steps)
        rows.extend(found)
        hole_s += hole
    if not rows:
        raise EvidenceError(f"steps: none of {len(trace.steps)} has a known wall time")
    if trace.duration_s <= 0 or sum(wall for _, wall, _ in rows) <= 0:
        raise EvidenceError(
            f"steps: {len(rows)} of them in {trace.duration_s:g} s took no time, as recorded"
        )
    kept = [step for step, _, _ in rows]
    return Window(
        trace=trace,
        t_N=np.array([(s.t_ns - trace.start_ns) / 1e9 for s in kept]),
        wall_N=np.array([wall for _, wall, _ in rows]),
        run_N=_series(None if s.dur_ns is None else s.dur_ns / 1e9 for s in kept),
        follows_work_N=np.array([follows for _, _, follows in rows]),
        prefill_requests_N=_series(s.prefill_requests for s in kept),
        prefill_tokens_N=_series(s.prefill_tokens for s in kept),
        decode_requests_N=_series(s.decode_requests for s in kept),
        decode_tokens_N=_series(s.decode_tokens for s in kept),
        batch_N=_series(_batch(s) for s in kept),
        waiting_N=_series(s.waiting for s in kept),
        kv_N=_series(s.kv_frac for s in kept),
        preempted_N=_series(s.preempted for s in kept),
        slots_N=_series(_caps(trace, kept, SLOT_KNOBS)),
        budget_N=_series(_caps(trace, kept, BUDGET_KNOBS)),
        itl_ms=tuple(s.itl_ms for s in kept),
        num_engines=len(engines),
        hole_s=hole_s,
    )


def _walls(steps: list[Step]) -> tuple[list[tuple[Step, float, bool]], float]:
    """Busy seconds of each step of one engine, and the seconds next to missing steps."""
    rows: list[tuple[Step, float, bool]] = []
    hole_s = 0.0
    if steps and steps[0].dur_ns is not None:
        rows.append((steps[0], steps[0].dur_ns / 1e9, False))
    for before, step in pairwise(steps):
        since_s = (step.t_ns - before.t_ns) / 1e9
        if before.index is not None and step.index is not None and step.index != before.index + 1:
            hole_s += since_s
        elif (before.running or 0) + (before.waiting or 0) > 0:
            rows.append((step, since_s, True))
        elif step.dur_ns is not None:
            rows.append((step, min(step.dur_ns / 1e9, since_s), False))
    return rows, hole_s


def _batch(step: Step) -> int | None:
    """Requests in the step.

    `running` is read after the step, when those that it finished are gone already; the scheduled
    ones alone miss running requests that the token budget left out.
    """
    counts = [] if step.running is None else [step.running]
    if step.prefill_requests is not None and step.decode_requests is not None:
        counts.append(step.prefill_requests + step.decode_requests)
    return max(counts, default=None)


def _caps(trace: Trace, steps: list[Step], names: tuple[str, ...]) -> list[float | None]:
    """Tightest of the named limits at each step, following the marks in the trace."""
    limits = {name: _number(trace.header.engine.config.get(name)) for name in names}
    changes: list[tuple[int, Mapping[str, Value]]] = [(trace.start_ns, trace.header.knobs)]
    changes.extend((m.t_ns, m.knobs) for m in trace.marks)
    changes.sort(key=lambda change: change[0])
    times = np.array([t for t, _ in changes])
    tightest: list[float | None] = []
    for _, knobs in changes:
        limits |= {n: _number(knobs[n]) for n in names if n in knobs}
        tightest.append(min((v for v in limits.values() if v is not None), default=None))
    at = np.searchsorted(times, [s.t_ns for s in steps], side="left") - 1
    return [tightest[max(int(i), 0)] for i in at]


def _number(value: Value | None) -> float | None:
    if value is None or isinstance(value, bool | str):
        return None
    return float(value)


def _series(values: Iterable[float | None]) -> Vector:
    return np.array([np.nan if v is None else float(v) for v in values])
