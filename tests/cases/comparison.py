"""Whether what the product says is what a case expects."""

from collections.abc import Mapping, Sequence

TOLERANCE = 0.005


def is_same(expected: object, got: object, tolerance: float = TOLERANCE) -> bool:
    """Numbers within `tolerance` of the expected, lists element by element, the rest equal."""
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    if isinstance(expected, int | float) and isinstance(got, int | float):
        return abs(got - expected) <= tolerance * abs(expected)
    if isinstance(expected, Sequence) and not isinstance(expected, str):
        if not isinstance(got, Sequence) or isinstance(got, str) or len(expected) != len(got):
            return False
        return all(is_same(e, g, tolerance) for e, g in zip(expected, got, strict=True))
    return type(expected) is type(got) and expected == got


def differences(
    expected: Mapping[str, object], got: Mapping[str, object], tolerance: float
) -> tuple[str, ...]:
    """Names of the expected facts that the product lacks or says otherwise."""
    return tuple(
        name
        for name, value in expected.items()
        if name not in got or not is_same(value, got[name], tolerance)
    )
