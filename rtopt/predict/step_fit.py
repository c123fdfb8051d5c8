"""Fitting the time of a step to a recorded trace."""

# ruff: noqa: N803, N806, N815 - the suffix of an array is its shape
# Shapes: N steps, B stretches, D draws, 4 coefficients (see line.py).

from dataclasses import dataclass

import numpy as np

from rtopt.cost import StepTime
from rtopt.cost.step_time import Coefficients
from rtopt.errors import EvidenceError
from rtopt.predict.busy import BusySteps, Vector, busy_steps, merged
from rtopt.predict.line import (
    BASE_PER_DECODE,
    LOG_SD,
    decode_information,
    moments,
    prior_of,
    robust_weights,
    row_of,
    solve,
)
from rtopt.types import Trace

MIN_STEPS = 50
DRAWS = 200
STRETCH_NS = 1_000_000_000


def fit_step_time(*traces: Trace, seed: int = 0) -> StepTime:
    """Coefficients, their uncertainty and the spread of the time from step to step.

    The line is robust, so stalls do not tilt it; then all of it is scaled so that the fitted times
    add up to the measured wall time. Without that the replay would forget the stalls and promise
    too much throughput. Where the recording hardly varies the number of decoding requests, the
    split between base and request rests on an assumed ratio: `decode_origin` says so, and the
    draws span a factor of 8 on either side.

    Args:
        traces: Recordings of one engine, not overlapping; together they may vary the number of
            decoding requests more than one does.
        seed: Of the bootstrap.

    Raises:
        EvidenceError: Fewer than 50 steps with work and wall time, or the engine was never busy.
    """
    busy = merged(*map(busy_steps, traces))
    _check(busy)
    x_N4 = np.array([row_of(step.load) for step in busy.steps])
    y_N = busy.wall_N
    mean_ms, mean_decode = float(np.mean(y_N)), float(np.mean(x_N4[:, 2]))
    prior = prior_of(mean_ms, mean_decode)
    weight_N, spread = robust_weights(x_N4, y_N, prior)
    stretch_N = _stretches(busy)
    line_4 = solve(*moments(x_N4, y_N, weight_N), prior)
    weight_N = weight_N / _dependence(y_N / (x_N4 @ line_4) - 1, stretch_N, spread)
    line_4 = solve(*moments(x_N4, y_N, weight_N), prior)
    line_4 = line_4 * (np.sum(y_N) / np.sum(x_N4 @ line_4))
    ratio_N = y_N / (x_N4 @ line_4)
    draws = _draws(_Data(x_N4, y_N, weight_N, stretch_N), mean_ms, mean_decode, seed)
    knows = decode_information(x_N4, weight_N)
    base, decode, token, request = _coefficients(line_4)
    return StepTime(
        base_ms=base,
        decode_ms=decode,
        prefill_token_ms=token,
        prefill_request_ms=request,
        residuals=tuple(float(r) for r in ratio_N / np.mean(ratio_N)),
        max_decode=int(np.max(x_N4[:, 2])),
        steps=len(y_N),
        draws=draws,
        decode_origin="observed" if knows * prior.decode_ms**2 > 1 else "seed",
    )


@dataclass(frozen=True, slots=True)
class _Data:
    x_N4: Vector
    y_N: Vector
    weight_N: Vector
    stretch_N: Vector


def _check(busy: BusySteps) -> None:
    measured = sum(step.has_predecessor for step in busy.steps)
    if len(busy.steps) < MIN_STEPS or measured == 0:
        raise EvidenceError(
            f"{busy.total} steps in the trace, {len(busy.steps)} of them with their work and wall"
            f" time, {measured} of those right after another step of a busy engine: wanted at"
            f" least {MIN_STEPS} and 1. Record for longer, while there is traffic."
            " No step time was fitted.",
            total=busy.total,
            usable=len(busy.steps),
            after_another=measured,
        )


def _stretches(busy: BusySteps) -> Vector:
    """Number of each step's 1-s stretch, from 0 without holes."""
    t_N = np.array([step.t_ns // STRETCH_NS for step in busy.steps])
    return np.asarray(np.unique(t_N, return_inverse=True)[1], dtype=np.float64)


def _dependence(relative_N: Vector, stretch_N: Vector, spread: float) -> float:
    """By how much slow spells make the data worth less than as many independent steps.

    Variance of the stretches' sums over what independent residuals would give, at least 1.
    """
    clipped_N = np.clip(relative_N, -3 * spread, 3 * spread)
    variance = float(np.var(clipped_N))
    if variance <= 0:
        return 1.0
    index_N = stretch_N.astype(np.int64)
    sums_B = np.bincount(index_N, weights=clipped_N - np.mean(clipped_N))
    sizes_B = np.bincount(index_N)
    return max(1.0, float(np.sum(sums_B**2) / (variance * np.sum(sizes_B))))


def _draws(data: _Data, mean_ms: float, mean_decode: float, seed: int) -> tuple[Coefficients, ...]:
    """Lines through resampled 1-s stretches, each under another assumed ratio.

    Where the data are clear the prior has no say and the draws show sampling error; where they are
    silent, each draw follows its own prior and the draws show what was assumed.

    Source:
        Randomise-then-optimise: Bardsley et al. SIAM J. Sci. Comput. 36(4), 2014, A1895-A1910.
    """
    rng = np.random.default_rng(seed)
    index_N = data.stretch_N.astype(np.int64)
    num = int(index_N[-1]) + 1
    weighted_N4 = data.x_N4 * data.weight_N[:, None]
    xx_B44, xy_B4 = np.zeros((num, 4, 4)), np.zeros((num, 4))
    x_B4, y_B = np.zeros((num, 4)), np.zeros(num)
    np.add.at(xx_B44, index_N, weighted_N4[:, :, None] * data.x_N4[:, None, :])
    np.add.at(xy_B4, index_N, weighted_N4 * data.y_N[:, None])
    np.add.at(x_B4, index_N, data.x_N4)
    np.add.at(y_B, index_N, data.y_N)
    draws = []
    for _ in range(DRAWS):
        times_B = np.bincount(rng.integers(num, size=num), minlength=num).astype(np.float64)
        ratio = BASE_PER_DECODE * float(np.exp(LOG_SD * rng.standard_normal()))
        prior = prior_of(mean_ms, mean_decode, ratio)
        xy_4 = np.asarray(times_B @ xy_B4, dtype=np.float64)
        line_4 = solve(np.einsum("b,bij->ij", times_B, xx_B44), xy_4, prior)
        line_4 = line_4 * (times_B @ y_B) / float(times_B @ x_B4 @ line_4)
        draws.append(_coefficients(line_4))
    return tuple(draws)


def _coefficients(line_4: Vector) -> Coefficients:
    base, token, extra, request = (float(value) for value in line_4)
    return (base, token + extra, token, request)
