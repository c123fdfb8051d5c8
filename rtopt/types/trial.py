"""One attempt to improve an engine: the plan, what was measured, and the verdict."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rtopt.types.lever import Change
from rtopt.types.value import Estimate

Arm = Literal["base", "candidate"]
Decision = Literal["keep", "restore", "inconclusive"]
GuardState = Literal["held", "violated", "uncertain", "no_data"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """An absolute limit that the user gave, for example itl_p95 <= 200 ms."""

    metric: str
    limit: float
    """In the metric's unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """A relative limit: the candidate may be worse than the baseline by at most this share."""

    metric: str
    worse_frac: float
    certify: bool = True
    """Must be proven for a keep; False: too noisy to prove in one trial, only harm counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything fixed before the first block, so that nothing can be chosen afterwards."""

    change: Change
    objective: str
    """Metric id."""
    slos: tuple[Slo, ...] = ()
    margins: tuple[Margin, ...] = ()
    alpha: float = 0.01
    """Bound on P(kept although worse than baseline) for this trial."""
    prior: float = 0.3
    """Variance g of the standardised effect in the mixture-t e-process."""
    min_pairs: int = 4
    max_pairs: int = 60
    block_s: float = 30.0
    """Length of one arm's block, washout included."""
    washout_s: float = 6.0
    seed: int = 0
    min_gain_frac: float = 0.0
    """Smallest gain worth having."""
    noise_sd: float | None = None
    """Standard deviation of the log ratio of A/A pairs, when measured."""
    false_keep: Mapping[str, float] = field(default_factory=dict)
    """Effect ("0", "-2%", "-5%") to the simulated share of trials kept with these settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One arm's stretch of one pair; metrics are of the part after the washout."""

    pair: int
    arm: Arm
    start_ns: int
    end_ns: int
    metrics: Mapping[str, float]
    """Metric id to value; a metric without data is not here."""
    requests: int = 0
    """Requests that finished in the block: its exposure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardResult:
    """What one guard said at the end."""

    name: str
    state: GuardState
    text: str
    e_value: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Keep, restore or inconclusive, with the reason."""

    decision: Decision
    reason: str
    effect: Estimate | None = None
    """Ratio candidate / baseline of the objective - 1, with its confidence sequence."""
    e_value: float | None = None
    guards: tuple[GuardResult, ...] = ()
    pairs: int = 0
    exposed_requests: int = 0
    """Requests that finished in candidate blocks."""

    @property
    def keep(self) -> bool:
        """Whether the change was kept."""
        return self.decision == "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One attempt, whole."""

    id: str
    plan: Plan
    undo: Change
    blocks: tuple[Block, ...]
    verdict: Verdict
    e_values: tuple[float, ...] = ()
    """The e-process after each pair."""
    started_unix_ns: int = 0
    ended_unix_ns: int = 0
