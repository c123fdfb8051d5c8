"""What a profiler saw inside the engine's steps: work on a device, and what the host did."""

from dataclasses import dataclass
from typing import Literal

DeviceWork = Literal["kernel", "memcpy", "memset", "collective"]
HostWork = Literal["op", "launch", "range", "sync", "overhead"]
"""op: of the framework. launch: a call of the device's run time. range: an annotation."""
OpBy = Literal["correlation", "sequence", "reference"]
"""How a kernel's op was found: by its launch, by its place in the layer's period, by a dictionary
from a reference run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEvent:
    """One piece of work on a device."""

    t_ns: int
    """Start."""
    dur_ns: int
    name: str
    """As the profiler gave it, without private paths."""
    what: DeviceWork = "kernel"
    device: int | None = None
    stream: int | None = None
    correlation: int | None = None
    """Shared with the host's launch."""
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    graph: int | None = None
    node: int | None = None
    """Node of the graph; the same over replays of one instance."""
    bytes: int | None = None
    """Moved by a copy, set by a memset."""
    direction: str | None = None
    """Of a copy, for example "h2d"."""
    rank: int | None = None
    step: int | None = None
    """Index of the step it belongs to."""
    op: str | None = None
    op_by: OpBy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEvent:
    """One thing that a thread of the host did."""

    t_ns: int
    """Start."""
    dur_ns: int
    name: str
    what: HostWork = "op"
    thread: int | None = None
    correlation: int | None = None
    """Of a launch: shared with the work that it started."""
    dims: tuple[tuple[int, ...], ...] = ()
    """Shapes of an op's inputs; a scalar or unknown input has an empty one."""
    dtypes: tuple[str, ...] = ()
    rank: int | None = None
    step: int | None = None
    """Index of the step it belongs to."""
