"""When a paired trial stops: the rule, and how it behaves for a known effect.

The gate and the simulation decide with the same function, so the figures printed before a trial
are those of the rule that runs.
"""

# Shapes: S simulated trials, N pairs each.

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from rtopt.stats.mixture_t import Array, fewest, log_e_path

HARM_E = 10.0
"""Evidence of harm that ends a trial: one-sided level 5 %."""


class Stop(IntEnum):
    """What the rule says after a pair."""

    HARM = -1
    GO_ON = 0
    KEEP = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Thresholds of a sequential paired test; gains are log ratios, positive is better."""

    alpha: float
    """Bound on P(keep) when the candidate is no better."""
    prior: float
    """Variance g of the standardised effect."""
    min_pairs: int
    max_pairs: int
    min_gain: float = 0.0
    """Smallest mean log ratio that is worth keeping."""

    @property
    def keep_e(self) -> float:
        """Evidence that a keep needs: one side of a two-sided test at 2 alpha."""
        return 1 / (2 * self.alpha)

    @property
    def fewest_pairs(self) -> int:
        """Pairs that a keep needs even when nothing is noisy."""
        return max(self.min_pairs, fewest(alpha=2 * self.alpha, prior=self.prior))

    def stops(self, gains_SN: Array) -> npt.NDArray[np.int8]:
        """The `Stop` after each pair, as if the trial went on, along the last axis.

        Source:
            Keep at mean > 0 and e >= 1/(2 alpha), harm stop at mean < 0 and e >= 10: the mixture-t
            e-process of arXiv 2310.03722 on both sides.
        """
        n_N = np.arange(1, gains_SN.shape[-1] + 1)
        mean_SN = np.cumsum(gains_SN, axis=-1) / n_N
        log_SN = log_e_path(gains_SN, prior=self.prior)
        is_due_N = n_N >= self.min_pairs
        is_kept_SN = (mean_SN > 0) & (mean_SN >= self.min_gain) & (log_SN >= np.log(self.keep_e))
        is_harm_SN = (mean_SN < 0) & (log_SN >= np.log(HARM_E))
        stops_SN = np.where(is_kept_SN, Stop.KEEP, np.where(is_harm_SN, Stop.HARM, Stop.GO_ON))
        return np.where(is_due_N, stops_SN, Stop.GO_ON).astype(np.int8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Characteristics:
    """How trials end for one true effect."""

    keep: float
    """Share kept."""
    harm: float
    """Share stopped for harm before the horizon."""
    pairs_mean: float
    pairs_p90: float


def simulate(
    rule: Rule, *, effect: float, sd: float, trials: int = 10_000, seed: int = 0
) -> Characteristics:
    """Run the rule on normal pair differences with a known mean.

    Guards are left out: they can only turn a keep into a restore.

    Args:
        rule: The rule.
        effect: True mean log ratio per pair, positive is better.
        sd: Standard deviation of the log ratio of a pair.
        trials: How many to simulate; a share p is good to about sqrt(p (1-p) / trials).
        seed: Of the generator.
    """
    rng = np.random.default_rng(seed)
    gains_SN = rng.standard_normal((trials, rule.max_pairs)) * sd + effect
    stops_SN = rule.stops(gains_SN)
    ended_SN = stops_SN != Stop.GO_ON
    has_ended_S = ended_SN.any(axis=-1)
    at_S = np.where(has_ended_S, ended_SN.argmax(axis=-1), rule.max_pairs - 1)
    stop_S = stops_SN[np.arange(trials), at_S]
    return Characteristics(
        keep=float(np.mean(stop_S == Stop.KEEP)),
        harm=float(np.mean(stop_S == Stop.HARM)),
        pairs_mean=float(np.mean(at_S + 1)),
        pairs_p90=float(np.quantile(at_S + 1, 0.9)),
    )
