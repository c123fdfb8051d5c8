"""What happened on an engine over a window.

Times are nanoseconds of the engine machine's monotonic clock; `Clock` pairs them with Unix time.
A value that was not read is absent (None or not in the mapping), never 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rtopt.types.event import DeviceEvent, HostEvent
from rtopt.types.machine import Machine
from rtopt.types.value import Value
from rtopt.types.workload import Load

SCHEMA = "rtopt.trace/1"
"""Written in the header; a reader refuses a higher number."""

Source = Literal[
    "overlay",
    "metrics",
    "replay",
    "kineto",
    "chrome",
    "nsys",
    "rocpd",
    "rocprof",
    "log",
    "prometheus",
]
Edge = Literal["start", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """One moment read on both clocks."""

    mono_ns: int
    unix_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInfo:
    """Which engine, with its effective configuration."""

    name: str
    version: str
    model: str
    """The served model's name; of a local folder only the last part."""
    config: Mapping[str, Value | None] = field(default_factory=dict)
    """Effective scheduler, cache, model and parallel settings, after vLLM resolved them."""
    kv: Mapping[str, Any] = field(default_factory=dict)
    """KV cache as built: num_blocks, block_size, groups."""
    model_config: Mapping[str, Any] = field(default_factory=dict)
    """The model's config.json."""
    num_engines: int = 1
    num_api_servers: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """One source of telemetry, or why there is none."""

    plane: Literal["step", "state", "event"]
    name: str
    """For example "kineto", "nvml", "none"."""
    version: str | None = None
    reason: str | None = None
    """Why it gave nothing, or less than it could."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """First line of a trace."""

    source: Source
    engine: EngineInfo
    machine: Machine
    clock: Clock
    start_ns: int
    knobs: Mapping[str, Value]
    """Live knobs at the start."""
    load: Load | None = None
    """As the user stated it; absent means unknown, and then arrivals count as open."""
    derived: Mapping[str, str] = field(default_factory=dict)
    """Fields that were worked out, and how."""
    planes: tuple[Plane, ...] = ()
    """Sources of telemetry; exactly one of events per process and window."""
    clock_error_ns: int | None = None
    """Most by which times of different sources may be apart; absent with one source, or unknown."""
    prefix_block_tokens: int | None = None
    """Length of the blocks in `Request.blocks`; absent when prefixes were not captured."""
    startup: Mapping[str, Value] = field(default_factory=dict)
    """What the engine's start-up log said, by name of the fact."""
    schema: str = SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of the engine: one scheduling and one run of the model."""

    t_ns: int
    """When its outputs were received."""
    engine: int = 0
    index: int | None = None
    """The engine's own step number."""
    dur_ns: int | None = None
    """The model's run, as the engine timed it."""
    prefill_requests: int | None = None
    prefill_tokens: int | None = None
    decode_requests: int | None = None
    decode_tokens: int | None = None
    running: int | None = None
    """Requests in the batch after the step."""
    waiting: int | None = None
    kv_frac: float | None = None
    """KV blocks in use, 0..1."""
    preempted: int | None = None
    output_tokens: int | None = None
    ttft_ms: tuple[float, ...] = ()
    """Time to first token of each request whose first token this step made."""
    itl_ms: tuple[float, ...] = ()
    """Time since the previous output of each decoding request in this step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One finished request."""

    id: str
    """Salted hash, different in every recording."""
    arrival_ns: int
    finished_ns: int
    prompt_tokens: int
    output_tokens: int
    e2e_ms: float
    queued_ms: float | None = None
    prefill_ms: float | None = None
    decode_ms: float | None = None
    cached_tokens: int | None = None
    max_tokens: int | None = None
    preemptions: int | None = None
    finish: str = "unknown"
    """Why it ended: stop, length, abort, error."""
    blocks: tuple[int, ...] = ()
    """Identity of each whole block of the prompt, hashed with a salt of this recording over the
    block and all before it: equal ids are equal prefixes. Empty: not captured, or too short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlight:
    """A request that was in the engine at an edge of the window."""

    edge: Edge
    id: str
    prompt_tokens: int
    computed_tokens: int
    output_tokens: int
    arrival_ns: int | None = None
    max_tokens: int | None = None
    is_waiting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Something was done to the engine."""

    t_ns: int
    what: Literal["set", "commit", "restore", "expire"]
    by: str
    knobs: Mapping[str, Value]
    """Effective values after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One reading of a source of state, for example "cpu" or "metrics"."""

    t_ns: int
    source: str
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Last line of a trace; a trace without it was cut off."""

    end_ns: int
    clock: Clock
    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many records of each kind were not kept, for example by the size cap."""
    failed_reads: Mapping[str, int] = field(default_factory=dict)
    reason: str = "duration"
    """Why it ended: duration, requests, size, interrupted, disconnected, cut (no end was found)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A window of an engine's life, in memory."""

    header: Header
    end: End
    steps: tuple[Step, ...] = ()
    requests: tuple[Request, ...] = ()
    in_flight: tuple[InFlight, ...] = ()
    marks: tuple[Mark, ...] = ()
    samples: tuple[Sample, ...] = ()
    device: tuple[DeviceEvent, ...] = ()
    host: tuple[HostEvent, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader had to say: a truncated last line, a missing end."""

    @property
    def start_ns(self) -> int:
        """Start of the window."""
        return self.header.start_ns

    @property
    def end_ns(self) -> int:
        """End of the window."""
        return self.end.end_ns

    @property
    def duration_s(self) -> float:
        """Length of the window in seconds."""
        return (self.end.end_ns - self.header.start_ns) / 1e9
