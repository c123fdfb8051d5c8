"""How a change is tried: the settings of the gate, with defaults that work on live traffic."""

from dataclasses import dataclass

from rtopt.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSettings:
    """What a user may set about a trial; `make_plan` turns it into a `Plan`.

    Block and washout: the washout should last twice a request's residence time, and a block five
    washouts.
    """

    alpha: float = 0.01
    """Bound on P(any lever of the run is kept although worse); split over the levers tried."""
    prior: float = 0.3
    """Variance g of the standardised effect; 1 suits effects that are large against the noise."""
    min_pairs: int = 4
    max_pairs: int = 60
    block_s: float = 30.0
    """Length of one arm's block, washout included."""
    washout_s: float = 6.0
    min_gain_frac: float = 0.0
    """Smallest gain of the objective worth having."""
    seed: int = 0
    """Of the coin that orders the arms of each pair."""

    def __post_init__(self) -> None:
        wrong = [
            text
            for is_right, text in (
                (0 < self.alpha < 0.5, f"alpha={self.alpha}: must be between 0 and 0.5"),
                (self.prior > 0, f"prior={self.prior}: must be above 0"),
                (self.min_pairs >= 2, f"min_pairs={self.min_pairs}: must be at least 2"),
                (
                    self.max_pairs >= self.min_pairs,
                    f"max_pairs={self.max_pairs}: must be at least min_pairs={self.min_pairs}",
                ),
                (
                    0 <= self.washout_s < self.block_s,
                    f"washout_s={self.washout_s}: must be at least 0 and below"
                    f" block_s={self.block_s}",
                ),
                (
                    0 <= self.min_gain_frac < 10,
                    f"min_gain_frac={self.min_gain_frac}: a share such as 0.05, at least 0",
                ),
            )
            if not is_right
        ]
        if wrong:
            raise UsageError(f"gate settings: {'; '.join(wrong)}. Nothing was changed.")
