"""Which change to try next, and everything that was considered for it."""

from dataclasses import dataclass

from rtopt.types.lever import Change
from rtopt.types.prediction import Prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One candidate change, its forecast, and why it was passed over (None: it was not)."""

    lever: str
    change: Change | None
    """Absent when the lever could not be used at all."""
    forecast: Prediction | None = None
    gain_frac: float | None = None
    """Forecast objective against the forecast at present knobs; positive is better."""
    rejected: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The change to try, or the reason why there is none."""

    change: Change | None
    reason: str
    options: tuple[Option, ...] = ()
    now: Prediction | None = None
    """Forecast at present knobs."""
