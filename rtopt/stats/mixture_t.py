"""The mixture-t e-process: evidence about a mean that may be looked at after every value.

For values x_1 .. x_n, a null mean delta and a prior N(0, g) on the standardised effect,

    log e_n = -1/2 log(1 + n g) - n/2 [ log(1 + t^2/(nu (1 + n g))) - log(1 + t^2/nu) ]

with t the one-sample t statistic of x - delta and nu = n - 1. It does not depend on the scale of
the values, so no variance has to be known. Written here, without a division by a standard
deviation, with the share R = n m^2 / sum((x - delta)^2) in 0..1, m the mean of x - delta:

    log e_n = -1/2 log(1 + n g) - n/2 log(1 - R n g / (1 + n g))

Used on one side ("the mean is above delta"): demand m > 0 and e_n >= 1/(2 alpha). Under a symmetric
null each sign carries half of the two-sided error 2 alpha.

Cases at the edge:
- n < 2: e = 1. One value says nothing about its own spread.
- No spread at all: the formula's limit. Values that are all equal to delta give R = 0, the least e
  that n values can give; all equal to something else R = 1, the largest, (n-1)/2 log(1 + n g).
  So even a noiseless series needs `fewest` values.

Source:
    Wang, Ramdas. arXiv 2310.03722 (scale-invariant e-processes for the t-test). Ville's inequality
    bounds P(e_n ever reaches 1/alpha) by alpha under the null.
"""

# Shapes: S independent series, N values each.

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rtopt.types import Interval

Array = npt.NDArray[np.float64]


def log_e(values: Sequence[float], *, delta: float = 0.0, prior: float) -> float:
    """Natural log of the evidence against "the mean is delta", after all values.

    Args:
        values: One number per pair or block, in time order; the order does not matter here.
        delta: The mean under the null, in the unit of the values.
        prior: Variance g of the standardised effect; .3 suits effects near the noise, 1 large ones.
    """
    if len(values) < 2:
        return 0.0
    return float(log_e_path(np.asarray(values, dtype=float) - delta, prior=prior)[-1])


def log_e_path(x_SN: Array, *, prior: float) -> Array:
    """Log evidence against "the mean is 0" after each value, along the last axis."""
    n_N = np.arange(1, x_SN.shape[-1] + 1, dtype=float)
    squares_SN = np.cumsum(np.square(x_SN), axis=-1)
    explained_SN = np.square(np.cumsum(x_SN, axis=-1)) / n_N
    has_size_SN = squares_SN > 0
    # Cauchy-Schwarz holds R <= 1; rounding does not.
    share_SN = np.minimum(explained_SN / np.where(has_size_SN, squares_SN, 1.0), 1.0)
    growth_N = n_N * prior
    log_SN: Array = -0.5 * np.log1p(growth_N) - 0.5 * n_N * np.log1p(
        -share_SN * growth_N / (1 + growth_N)
    )
    log_SN[..., :1] = 0.0
    return log_SN


def confidence_sequence(values: Sequence[float], *, alpha: float, prior: float) -> Interval | None:
    """Every mean delta that the values do not refute: e_n(delta) < 1/alpha.

    It covers the true mean at all times at once with probability 1 - alpha, so it may be read
    after every value.

    Returns:
        The interval in the unit of the values, or None when too few values refute nothing at all.
        Without any spread it is a single point.
    """
    n = len(values)
    if n < fewest(alpha=alpha, prior=prior):
        return None
    x_N = np.asarray(values, dtype=float)
    mean, spread = float(x_N.mean()), float(x_N.std())  # spread with n: t^2/nu = (m/spread)^2
    bound = np.exp(2 / n * (np.log(1 / alpha) + 0.5 * np.log1p(n * prior)))
    half = spread * float(np.sqrt((bound - 1) / (1 - bound / (1 + n * prior))))
    return Interval(low=mean - half, high=mean + half, level=1 - alpha)


def fewest(*, alpha: float, prior: float) -> int:
    """How many values it takes to reach e > 1/alpha even without any noise."""
    n = 2
    while 0.5 * (n - 1) * np.log1p(n * prior) <= np.log(1 / alpha):
        n += 1
    return n
