"""Whether a graph's node ids stay the same over replays, and over capturing it again."""

from collections.abc import Callable
from typing import Any

from benchmarks.gpu.decode import Decode, Sizes
from rtopt.backends.cupti import CuptiSession
from rtopt.types import DeviceEvent

Node = tuple[str, int | None]


def measure(*, is_dry: bool) -> dict[str, Any]:
    """Compare the nodes of three replays, and of a second capture."""
    decode = Decode(Sizes.of(is_dry=is_dry), is_dry=is_dry)
    first, second = decode.graph(), decode.graph()
    runs = [traced(decode, first) for _ in range(3)] + [traced(decode, second)]
    nodes = [[(event.name, event.node) for event in run] for run in runs]
    names = [[event.name for event in run] for run in runs]
    return {
        "kernels": [len(run) for run in runs],
        "graphs": [sorted({event.graph for event in run if event.graph}) for run in runs],
        "same_over_replays": nodes[0] == nodes[1] == nodes[2],
        "same_over_captures": nodes[0] == nodes[3],
        "same_names_over_captures": names[0] == names[3],
        "period": period(names[0]),
        "layers": decode.sizes.layers,
    }


def traced(decode: Decode, call: Callable[[], Any]) -> tuple[DeviceEvent, ...]:
    """The kernels of one call."""
    with CuptiSession(["kernel"]) as session:
        call()
        decode.wait()
    assert session.activity is not None
    return session.activity.device


def period(names: list[str]) -> int | None:
    """The shift at which most kernels match, the smallest of equals; None without kernels."""
    shifts = range(1, len(names) // 2 + 1)
    if not shifts:
        return None
    return max(
        shifts,
        key=lambda by: (
            sum(a == b for a, b in zip(names, names[by:], strict=False)) / (len(names) - by),
            -by,
        ),
    )
