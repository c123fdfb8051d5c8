"""A non-negative line through the step times, robust to stalls, with a weak prior.

Step time = base + c * tokens + extra * decoding requests + q * prefilling requests, all four
non-negative, tokens = prompt tokens + decoding requests. A decoding request so costs c + extra: at
least what a prompt token costs, since it does the same work for one token and reads its context.
"""

# ruff: noqa: N803, N806 - the suffix of an array is its shape
# Shapes: N steps, B stretches, 4 coefficients in the order base, c, extra, q.

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from rtopt.cost import StepLoad
from rtopt.predict.busy import Vector

BASE_PER_DECODE = 30.0
"""Assumed base of a step over the cost of one more decoding request, where the data do not tell.

A step reads the weights once, and each sequence adds its arithmetic, so the ratio is about the
machine's arithmetic per byte of memory traffic. Measured 27 with SmolLM2-135M on two CPU cores
(41 ms and 1.5 ms, vLLM 0.32); with more arithmetic per byte, as on GPUs, it is larger, so that 30
errs on the side of less gain.
Source: Williams, Waterman, Patterson. Roofline. CACM 52(4), 2009, pp. 65-76.
"""
LOG_SD = 1.26
"""Standard deviation of its logarithm: within a factor of 8 with a probability of 90 %."""
_PROMPT_TOKEN_PER_DECODE = 0.2
"""Assumed cost of a prompt token over a decoding request; measured 0.3 and 1.5 ms there too."""
_HUBER = 1.345
_ROUNDS = 12


@dataclass(frozen=True, slots=True)
class Prior:
    """Weak beliefs about c, c + extra and q, in ms: as good as one measurement each."""

    token_ms: float
    decode_ms: float
    request_ms: float


def prior_of(mean_ms: float, mean_decode: float, ratio: float = BASE_PER_DECODE) -> Prior:
    """Split a mean step time by the assumed ratios."""
    decode_ms = mean_ms / (ratio + mean_decode)
    return Prior(_PROMPT_TOKEN_PER_DECODE * decode_ms, decode_ms, decode_ms)


def row_of(load: StepLoad) -> tuple[float, float, float, float]:
    """What the four coefficients are multiplied with."""
    tokens = load.prefill_tokens + load.decode_requests
    return (1.0, float(tokens), float(load.decode_requests), float(load.prefill_requests))


def robust_weights(x_N4: Vector, y_N: Vector, prior: Prior) -> tuple[Vector, float]:
    """Weight per step, in 1 / ms^2, and the relative spread that it rests on.

    Spread grows with the step time, and a stall must not tilt the line: iteratively reweighted
    least squares with Huber's weights on relative residuals.

    Source:
        Huber. Annals of Mathematical Statistics 35(1), 1964, pp. 73-101.
    """
    fitted_N = np.full(len(y_N), float(np.median(y_N)))
    spread, huber_N = 1.0, np.ones(len(y_N))
    for _ in range(_ROUNDS):
        relative_N = y_N / fitted_N - 1
        centred_N = np.abs(relative_N - np.median(relative_N))
        spread = max(1.4826 * float(np.median(centred_N)), 1e-4)
        huber_N = np.minimum(1.0, _HUBER * spread / np.maximum(np.abs(relative_N), 1e-12))
        weight_N = huber_N / (spread * fitted_N) ** 2
        line_4 = solve(*moments(x_N4, y_N, weight_N), prior)
        fitted_N = np.maximum(x_N4 @ line_4, 1e-6)
    return huber_N / (spread * fitted_N) ** 2, spread


def moments(x_N4: Vector, y_N: Vector, weight_N: Vector) -> tuple[Vector, Vector]:
    """Weighted X'X and X'y."""
    weighted_N4 = x_N4 * weight_N[:, None]
    return weighted_N4.T @ x_N4, weighted_N4.T @ y_N


def solve(xx_44: Vector, xy_4: Vector, prior: Prior) -> Vector:
    """Most probable non-negative coefficients for these moments under the prior.

    Source:
        Lawson, Hanson. Solving Least Squares Problems, 1974, ch. 23 (NNLS).
    """
    rows_34 = np.array([[0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]], dtype=np.float64)
    centre_3 = np.array([prior.token_ms, prior.decode_ms, prior.request_ms])
    scaled_34 = rows_34 / centre_3[:, None]
    a_44 = xx_44 + scaled_34.T @ scaled_34
    b_4 = xy_4 + scaled_34.T @ np.ones(3)
    # In units in which all columns are alike, so that the factorisation is well conditioned.
    unit_4 = 1 / np.sqrt(np.maximum(np.diag(a_44), 1e-300))
    low_44 = np.linalg.cholesky(a_44 * np.outer(unit_4, unit_4) + 1e-12 * np.eye(4))
    line_4, _ = nnls(low_44.T, np.linalg.solve(low_44, b_4 * unit_4))
    return np.asarray(line_4 * unit_4, dtype=np.float64)


def decode_information(x_N4: Vector, weight_N: Vector) -> float:
    """How precisely the data alone know a decoding request's cost, in 1 / ms^2.

    The variation of the number of decoding requests that the other columns do not explain.
    """
    root_N = np.sqrt(weight_N)
    others_N3 = x_N4[:, [0, 1, 3]] * root_N[:, None]
    # In the line's terms the cost of one request: it moves tokens and requests together.
    others_N3[:, 1] -= x_N4[:, 2] * root_N
    decode_N = x_N4[:, 2] * root_N
    explained_3, *_ = np.linalg.lstsq(others_N3, decode_N, rcond=None)
    return float(np.sum((decode_N - others_N3 @ explained_3) ** 2))
