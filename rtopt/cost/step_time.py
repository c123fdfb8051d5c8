"""How long a step takes: a straight line in its work, and the spread around it."""

from dataclasses import dataclass, replace

from rtopt.cost.load import StepLoad
from rtopt.types import Interval, Origin

Coefficients = tuple[float, float, float, float]
"""base, decode, prefill token, prefill request; all in ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Wall time from one step's end to the next while the engine is busy.

    base + decode * requests that decode + prefill_token * tokens + prefill_request * requests.
    """

    base_ms: float
    """Of any step: reading the weights, launching, scheduling."""
    decode_ms: float
    """More for each request that decodes."""
    prefill_token_ms: float
    """More for each prompt token."""
    prefill_request_ms: float = 0.0
    """More for each request with prompt tokens in the step."""
    residuals: tuple[float, ...] = (1.0,)
    """Measured / mean, in the order of the steps; their mean is 1."""
    max_decode: int = 0
    """Largest number of decoding requests that the fit has seen; 0: not from a fit."""
    steps: int = 0
    """How many steps were fitted."""
    draws: tuple[Coefficients, ...] = ()
    """Coefficients that the data allow as well: bootstrap over 1-s stretches."""
    decode_origin: Origin = "observed"
    """"seed" where the number of decoding requests hardly varied, so that `decode_ms` rests on
    the assumed ratio of a step's base to one request, within the interval that the draws span."""

    @property
    def coefficients(self) -> Coefficients:
        """The four numbers, in ms."""
        return (self.base_ms, self.decode_ms, self.prefill_token_ms, self.prefill_request_ms)

    def mean_ms(self, load: StepLoad) -> float:
        """Expected wall time of a step with this work."""
        return (
            self.base_ms
            + self.decode_ms * load.decode_requests
            + self.prefill_token_ms * load.prefill_tokens
            + self.prefill_request_ms * load.prefill_requests
        )

    def with_coefficients(self, coefficients: Coefficients) -> "StepTime":
        """The same spread around another line."""
        base, decode, token, request = coefficients
        return replace(
            self,
            base_ms=base,
            decode_ms=decode,
            prefill_token_ms=token,
            prefill_request_ms=request,
        )

    def intervals(self, level: float) -> tuple[Interval, ...] | None:
        """One interval per coefficient, or None when there are no draws."""
        if not self.draws:
            return None
        cut = (1 - level) / 2 * (len(self.draws) - 1)
        low, high = round(cut), round(len(self.draws) - 1 - cut)
        columns = (sorted(column) for column in zip(*self.draws, strict=True))
        return tuple(Interval(low=c[low], high=c[high], level=level) for c in columns)
