"""A run's settings: one TOML file plus a few flags; every part belongs to the room that uses it."""

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from rtopt.apply import GateSettings
from rtopt.errors import TraceError, UsageError
from rtopt.metrics import METRICS
from rtopt.storage import from_json
from rtopt.types import Load, Slo, Value

OBJECTIVES: Mapping[str, str] = {
    "throughput": "throughput",
    "ttft": "ttft_mean",
    "itl": "itl_mean",
    "e2e": "e2e_mean",
}
"""What a user asks for, and the metric that it is measured in."""

_SLO = re.compile(
    r"(?P<metric>[a-z0-9_]+)=(?P<value>\d+(?:\.\d*)?|\.\d+)(?P<unit>[a-z/%]*)", re.ASCII
)
_TO_MS = {"ms": 1.0, "s": 1e3, "": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much a run may take."""

    trials: int = 3
    """Changes that may be tried; alpha is split over them."""
    max_minutes: float | None = None
    max_exposed: int | None = None
    """Requests that may finish in candidate blocks over the whole run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """Everything that decides what a run does."""

    objective: str = "throughput"
    """One of OBJECTIVES."""
    slos: tuple[Slo, ...] = ()
    load: Load | None = None
    """How the traffic is offered; None: unknown, arrivals count as open."""
    profile_s: float = 60.0
    """Length of a baseline recording."""
    settle_s: float = 0.0
    """The first part of the first recording while the load still rises: it teaches what a step
    costs at other batch sizes, and does not count as baseline."""
    gate: GateSettings = field(default_factory=GateSettings)
    budget: Budget = field(default_factory=Budget)

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise UsageError(
                f"objective={self.objective}: unknown; known: {', '.join(OBJECTIVES)}."
                " Nothing was changed."
            )
        if self.budget.trials < 1 or not 0 <= self.settle_s < self.profile_s:
            raise UsageError(
                f"trials={self.budget.trials}, profile_s={self.profile_s:g},"
                f" settle_s={self.settle_s:g}: wanted at least one trial, and a recording that is"
                " longer than its settling. Nothing was changed."
            )
        self._check_limits()

    def _check_limits(self) -> None:
        """Refuse a limit that nothing can meet; those of the gate are its own."""
        for slo in self.slos:
            if slo.metric not in METRICS:
                raise UsageError(
                    f"slo {slo.metric}: unknown metric; known: {', '.join(METRICS)}."
                    " Nothing was changed."
                )
        for name in ("max_minutes", "max_exposed"):
            limit = getattr(self.budget, name)
            if limit is not None and limit <= 0:
                raise UsageError(f"{name}={limit:g}: must be above 0. Nothing was changed.")
        clients = self.load.clients if self.load is not None else None
        if self.load is not None and (self.load.kind == "closed") != (clients is not None):
            raise UsageError(
                f"load: kind {self.load.kind} with clients={clients}; wanted open without clients,"
                " or closed with their number. Nothing was changed."
            )
        if clients is not None and clients < 1:
            raise UsageError(f"load: clients={clients}: must be above 0. Nothing was changed.")

    @property
    def metric(self) -> str:
        """The metric id of the objective."""
        return OBJECTIVES[self.objective]


def read_config(path: Path | None, overrides: Mapping[str, Any]) -> RunConfig:
    """Read a TOML file, put flags over it, and check the whole once.

    Args:
        path: The file, or None for defaults.
        overrides: Nested values that win over the file; None means not given.

    Raises:
        UsageError: The file cannot be read, or a setting is unknown or impossible.
    """
    data: dict[str, Any] = {}
    if path is not None:
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}. Nothing was changed.") from error
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{path}: not TOML: {error}. Nothing was changed.") from error
    merged, where = _over(data, overrides), str(path or "the command line")
    _check_names(merged, RunConfig, where)
    for name, part in _PARTS.items():
        _check_names(merged.get(name), part, f"{where}, [{name}]")
    try:
        return from_json(RunConfig, merged, where=where)
    except TraceError as error:
        raise UsageError(f"{error}. Nothing was changed.") from error


_PARTS: Mapping[str, type] = {"gate": GateSettings, "budget": Budget}


def _check_names(given: object, cls: type, where: str) -> None:
    """Refuse a setting that nobody reads, which is mostly a slip of the pen."""
    known = [field.name for field in fields(cls)]
    unknown = [name for name in given if name not in known] if isinstance(given, Mapping) else []
    if unknown:
        raise UsageError(
            f"{where}: unknown setting {', '.join(unknown)}; known: {', '.join(known)}."
            " Nothing was changed."
        )


def _over(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(base)
    for key, value in top.items():
        if isinstance(value, Mapping):
            under = out.get(key, {})
            # What stands there instead of a table is refused with the rest.
            if isinstance(under, Mapping) and (below := _over(under, value)):
                out[key] = below
        elif value is not None:
            out[key] = value
    return out


def parse_slo(text: str) -> Slo:
    """Read a limit such as itl_p95=200ms or throughput=100.

    Raises:
        UsageError: Not of that form, an unknown metric, or a unit that the metric does not have.
    """
    found = _SLO.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"--slo {text}: wanted METRIC=LIMIT, for example itl_p95=200ms")
    metric = METRICS.get(found["metric"])
    if metric is None:
        known = ", ".join(METRICS)
        raise UsageError(f"--slo {text}: unknown metric {found['metric']}; known: {known}")
    unit, limit = found["unit"], float(found["value"])
    if not math.isfinite(limit):
        raise UsageError(f"--slo {text}: the limit is too large a number")
    if metric.unit == "ms" and unit in _TO_MS:
        return Slo(metric=metric.id, limit=limit * _TO_MS[unit])
    if unit not in ("", metric.unit):
        raise UsageError(f"--slo {text}: {metric.id} is in {metric.unit}, not {unit}")
    return Slo(metric=metric.id, limit=limit)


def parse_load(text: str) -> Load:
    """Read how traffic is offered: "open", or "closed:N" for N clients that each wait.

    Raises:
        UsageError: Neither.
    """
    if text == "open":
        return Load(kind="open")
    kind, _, clients = text.partition(":")
    # Its digits first: a very long number is none for Python either.
    if kind == "closed" and clients.isdecimal() and len(clients) < 10 and int(clients) > 0:
        return Load(kind="closed", clients=int(clients))
    raise UsageError(f"--load {text}: wanted open, or closed:N with N clients")


def parse_knobs(texts: Sequence[str]) -> dict[str, Value]:
    """Read KNOB=VALUE pairs; a value is a whole number, a number, true, false, or text.

    Raises:
        UsageError: Not of that form, or a knob named twice.
    """
    knobs: dict[str, Value] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value) or name in knobs:
            raise UsageError(f"--set {text}: wanted KNOB=VALUE, each knob once")
        knobs[name] = _value(value)
    return knobs


def _value(text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if math.isfinite(number) else text
    return text
