"""What should happen, and how far what did happen is from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rtopt.types.value import Estimate, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Metrics expected for some knobs, or a refusal with its reason."""

    method: str
    """For example "replay"."""
    knobs: Mapping[str, Value]
    metrics: Mapping[str, Estimate] = field(default_factory=dict)
    """Metric id (see `rtopt.metrics`) to its estimate."""
    terms: Mapping[str, Estimate] = field(default_factory=dict)
    """Coefficients used, for example step_base_ms."""
    assumptions: tuple[str, ...] = ()
    is_extrapolated: bool = False
    """The knobs lead the engine where the trace has no data."""
    refusal: str | None = None
    """Why there is no prediction; then `metrics` is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """One measured value beside its prediction."""

    measured: float
    predicted: float
    rel: float
    """measured / predicted - 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OddWindow:
    """A stretch in which steps took much longer or shorter than the fit says."""

    start_ns: int
    end_ns: int
    rel: float
    """Mean measured / predicted step time - 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """Measured against predicted."""

    metrics: Mapping[str, Gap] = field(default_factory=dict)
    step_residual_sd_frac: float | None = None
    """Spread of measured / fitted step time."""
    windows: tuple[OddWindow, ...] = ()
    unmatched_frac: float | None = None
    """Share of the steps' wall time that the fit could not be compared with."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """What could not be compared, and why, for example kernel_time: no event plane."""
