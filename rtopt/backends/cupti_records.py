"""CUPTI's activity records as our events.

Not yet run on a GPU. Only attributes are read, and their names have been the same since 12.6.

Source:
    CUPTI 13 documentation, CUpti_ActivityKind and the CUpti_Activity structures.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from rtopt.types import DeviceEvent, HostEvent

Kind = Literal["kernel", "memcpy", "memset", "runtime", "driver", "sync", "overhead", "graph"]
_COPY: Final = {
    1: "h2d",
    2: "d2h",
    3: "h2a",
    4: "a2h",
    5: "a2a",
    6: "a2d",
    7: "d2a",
    8: "d2d",
    9: "h2h",
    10: "p2p",
}
"""CUpti_ActivityMemcpyKind; a: array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How one kind of record is asked for and read."""

    number: int
    """CUpti_ActivityKind."""
    read: Callable[[Any], DeviceEvent | HostEvent]


def event_of(record: Any) -> DeviceEvent | HostEvent | str:
    """The record's event; its kind as text when it is not one that we read, or lacks a time."""
    try:
        number = int(record.kind)
    except (AttributeError, OverflowError, TypeError, ValueError):
        return "without a kind"
    reading = _BY_NUMBER.get(number)
    if reading is None:
        return str(number)
    try:
        event = reading.read(record)
    except (AttributeError, OverflowError, TypeError, ValueError):
        return str(number)
    # CUPTI writes 0 where it has no time.
    return event if event.t_ns > 0 and event.dur_ns >= 0 else str(number)


def _kernel(record: Any) -> DeviceEvent:
    return DeviceEvent(
        **_span(record),
        name=_text(record.name),
        what="collective" if "nccl" in _text(record.name).lower() else "kernel",
        device=_number(record, "device_id"),
        stream=_number(record, "stream_id"),
        correlation=_number(record, "correlation_id"),
        grid=_triple(record, "grid"),
        block=_triple(record, "block"),
        # 0: outside any graph.
        graph=_number(record, "graph_id") or None,
        node=_number(record, "graph_node_id") or None,
    )


def _memcpy(record: Any) -> DeviceEvent:
    copy = _number(record, "copy_kind")
    return DeviceEvent(
        **_span(record),
        name="memcpy",
        what="memcpy",
        device=_number(record, "device_id"),
        stream=_number(record, "stream_id"),
        correlation=_number(record, "correlation_id"),
        graph=_number(record, "graph_id") or None,
        node=_number(record, "graph_node_id") or None,
        bytes=_number(record, "bytes"),
        direction=None if copy is None else _COPY.get(copy),
    )


def _memset(record: Any) -> DeviceEvent:
    return DeviceEvent(
        **_span(record),
        name="memset",
        what="memset",
        device=_number(record, "device_id"),
        stream=_number(record, "stream_id"),
        correlation=_number(record, "correlation_id"),
        bytes=_number(record, "bytes"),
    )


def _graph(record: Any) -> DeviceEvent:
    return DeviceEvent(
        **_span(record),
        name="graph",
        device=_number(record, "device_id"),
        stream=_number(record, "stream_id"),
        correlation=_number(record, "correlation_id"),
        graph=_number(record, "graph_id"),
    )


def _launch(what: str) -> Callable[[Any], HostEvent]:
    def read(record: Any) -> HostEvent:
        # The name behind a number differs by release, so the number is kept.
        return HostEvent(
            **_span(record),
            name=f"{what} {int(record.cbid)}",
            what="launch",
            thread=_number(record, "thread_id"),
            correlation=_number(record, "correlation_id"),
        )

    return read


def _sync(record: Any) -> HostEvent:
    return HostEvent(**_span(record), name=f"sync {int(record.type)}", what="sync")


def _overhead(record: Any) -> HostEvent:
    name = f"overhead {int(record.overhead_kind)}"
    return HostEvent(**_span(record), name=name, what="overhead")


KINDS: Final[Mapping[Kind, Reading]] = {
    "kernel": Reading(number=10, read=_kernel),
    "memcpy": Reading(number=1, read=_memcpy),
    "memset": Reading(number=2, read=_memset),
    "runtime": Reading(number=5, read=_launch("runtime")),
    "driver": Reading(number=4, read=_launch("driver")),
    "sync": Reading(number=38, read=_sync),
    "overhead": Reading(number=17, read=_overhead),
    "graph": Reading(number=51, read=_graph),
}
"""What a session can record. "graph" makes every graph one record, for the rest of the process."""
_PEER_COPY: Final = 22
"""MEMCPY2: comes with memcpy, and has the same fields."""
_BY_NUMBER: Final = {reading.number: reading for reading in KINDS.values()} | {
    _PEER_COPY: KINDS["memcpy"]
}


def _span(record: Any) -> dict[str, Any]:
    start_ns = int(record.start)
    return {"t_ns": start_ns, "dur_ns": int(record.end) - start_ns}


def _number(record: Any, name: str) -> int | None:
    value = getattr(record, name, None)
    return None if value is None else int(value)


def _triple(record: Any, name: str) -> tuple[int, int, int] | None:
    x, y, z = (_number(record, f"{name}_{axis}") for axis in "xyz")
    return None if x is None or y is None or z is None else (x, y, z)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
