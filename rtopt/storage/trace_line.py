"""One line of a trace file: {"kind": "step", ...the fields of the noun}."""

from typing import Any, Final, assert_never

from rtopt.errors import TraceError
from rtopt.storage.codec import dump, from_json, parse, to_json
from rtopt.types import (
    SCHEMA,
    DeviceEvent,
    End,
    Header,
    HostEvent,
    InFlight,
    Mark,
    Request,
    Sample,
    Step,
)

Event = Step | Request | InFlight | Mark | Sample | DeviceEvent | HostEvent
"""What lies between the header and the end."""
Line = Header | Event | End

KINDS: Final[dict[str, type[Line]]] = {
    "header": Header,
    "step": Step,
    "request": Request,
    "in_flight": InFlight,
    "mark": Mark,
    "sample": Sample,
    "device": DeviceEvent,
    "host": HostEvent,
    "end": End,
}
_KIND_OF: Final = {cls: kind for kind, cls in KINDS.items()}


def kind_of(line: Line) -> str:
    """Name of the kind, as it stands in the file."""
    return _KIND_OF[type(line)]


def time_of(event: Event) -> int | None:
    """When it happened; None for a request in flight, which belongs to an edge."""
    match event:
        case Step() | Mark() | Sample() | DeviceEvent() | HostEvent():
            return event.t_ns
        case Request():
            return event.finished_ns
        case InFlight():
            return None
    assert_never(event)


def encode(line: Line) -> bytes:
    """Give the line with its line break."""
    return (dump({"kind": kind_of(line), **to_json(line)}) + "\n").encode("ascii")


def decode(text: bytes, *, where: str) -> Line:
    """Read a line back.

    Raises:
        TraceError: It is not JSON, of an unknown kind, or not a valid noun.
    """
    data: Any = parse(text, where=where)
    kind = data.pop("kind", None) if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise TraceError(f"{where}: found kind {kind!r}, wanted one of {', '.join(KINDS)}")
    if kind == "header":
        _check_schema(data.get("schema"), where)
    return from_json(KINDS[kind], data, where=where)


def _check_schema(schema: object, where: str) -> None:
    """Refuse what another program, or a newer rtopt, wrote."""
    name, _, number = str(schema).partition("/")
    known_name, _, known_number = SCHEMA.partition("/")
    if name != known_name or not number.isdecimal():
        raise TraceError(
            f"{where}: found schema {schema!r}, wanted {SCHEMA!r} (not an rtopt trace)"
        )
    number = number.lstrip("0")
    # By digits: a number that is too long for an int is newer, too.
    if (len(number), number) > (len(known_number), known_number):
        raise TraceError(f"{where}: schema {schema!r} is newer than this rtopt's {SCHEMA!r}")
