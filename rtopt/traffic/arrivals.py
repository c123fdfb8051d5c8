"""Made-up open loads: Poisson or bursty arrivals, drawn lengths, shared beginnings."""

import math
import random
from dataclasses import dataclass

from rtopt.errors import UsageError
from rtopt.types import Ask, Load, Workload

_MAX_ASKS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """An open load by its statistics; the same seed gives the same asks."""

    rate_per_s: float
    """Mean over the whole, also with pauses."""
    duration_s: float
    cv: float = 1.0
    """Coefficient of variation of the gaps (Gamma): 1 is Poisson, above it bursts."""
    on_s: float = 0.0
    """Arrivals only within so long, then none for `off_s`, and again; 0: always."""
    off_s: float = 0.0
    prompt_tokens: tuple[int, int] = (24, 40)
    """Shortest and longest prompt, without the shared beginning."""
    output_tokens: tuple[int, int] = (8, 16)
    prefixes: int = 0
    """So many different beginnings, one of them drawn for each request; 0: none."""
    prefix_tokens: int = 0
    """Length of each beginning."""
    seed: int = 0


def workload_by_arrivals(made: Arrivals) -> Workload:
    """Draw the asks.

    Raises:
        UsageError: A number out of its range, or more than a million requests.
    """
    _check(made)
    rng = random.Random(f"{made.seed}-arrivals")
    busy_frac = made.on_s / (made.on_s + made.off_s) if made.off_s else 1.0
    shape = 1 / made.cv**2
    mean_gap_s = busy_frac / made.rate_per_s
    at_s = rng.gammavariate(shape, mean_gap_s / shape)
    asks: list[Ask] = []
    while (wall_s := _wall_s(at_s, made)) < made.duration_s:
        blocks: tuple[int, ...] = (rng.randrange(made.prefixes),) if made.prefixes else ()
        asks.append(
            Ask(
                arrival_ns=int(wall_s * 1e9),
                prompt_tokens=rng.randint(*made.prompt_tokens)
                + (made.prefix_tokens if blocks else 0),
                output_tokens=rng.randint(*made.output_tokens),
                blocks=blocks,
            )
        )
        at_s += rng.gammavariate(shape, mean_gap_s / shape)
    return Workload(
        load=Load(kind="open"),
        asks=tuple(asks),
        duration_ns=int(made.duration_s * 1e9),
        source="arrivals",
        seed=made.seed,
        block_tokens=made.prefix_tokens if made.prefixes else None,
    )


def check_lengths(name: str, span: tuple[int, int]) -> None:
    """Refuse lengths that cannot be drawn.

    Raises:
        UsageError: Below 1, or the longest is shorter than the shortest.
    """
    if not 1 <= span[0] <= span[1]:
        raise UsageError(f"--{name} {span[0]}:{span[1]}: wanted SHORTEST:LONGEST, from 1")


def check_prefixes(prefixes: int, prefix_tokens: int) -> None:
    """Refuse shared beginnings that are none.

    Raises:
        UsageError: A number without the other, or below 0.
    """
    if min(prefixes, prefix_tokens) < 0 or (prefixes > 0) != (prefix_tokens > 0):
        raise UsageError("--prefixes and --prefix-tokens go together, each at least 1")


def _wall_s(at_s: float, made: Arrivals) -> float:
    """Time on the wall of a time that stands still in the pauses."""
    return at_s + made.off_s * math.floor(at_s / made.on_s) if made.off_s else at_s


def _check(made: Arrivals) -> None:
    for name, value in (("rate", made.rate_per_s), ("duration", made.duration_s), ("cv", made.cv)):
        if not 0 < value < math.inf:
            raise UsageError(f"--{name} {value:g}: must be above 0")
    if not all(0 <= s < math.inf for s in (made.on_s, made.off_s)) or (
        (made.on_s > 0) != (made.off_s > 0)
    ):
        raise UsageError("--on-off: wanted ON:OFF, seconds above 0")
    if made.rate_per_s * made.duration_s > _MAX_ASKS:
        raise UsageError(f"more than {_MAX_ASKS} requests: a lower --rate or --duration")
    check_lengths("prompt-tokens", made.prompt_tokens)
    check_lengths("output-tokens", made.output_tokens)
    check_prefixes(made.prefixes, made.prefix_tokens)
