"""The nouns that travel between the stages: frozen dataclasses, standard library only."""

from rtopt.types.attribution import Attribution, Cause, Evidence, Finding
from rtopt.types.choice import Choice, Option
from rtopt.types.engine import Engine, EngineState, Held, Knob
from rtopt.types.event import DeviceEvent, DeviceWork, HostEvent, HostWork, OpBy
from rtopt.types.lever import Change, Context, Envelope, Lever, Risk, Scope
from rtopt.types.machine import Accelerator, Machine
from rtopt.types.prediction import Deviation, Gap, OddWindow, Prediction
from rtopt.types.progress import Progress, silent
from rtopt.types.provenance import Entry, EntryKind, Provenance
from rtopt.types.trace import (
    SCHEMA,
    Clock,
    End,
    EngineInfo,
    Header,
    InFlight,
    Mark,
    Plane,
    Request,
    Sample,
    Step,
    Trace,
)
from rtopt.types.trial import (
    Arm,
    Block,
    Decision,
    GuardResult,
    Margin,
    Plan,
    Slo,
    Trial,
    Verdict,
)
from rtopt.types.value import Estimate, Interval, Origin, Value
from rtopt.types.workload import Ask, Load, Workload

__all__ = [
    "SCHEMA",
    "Accelerator",
    "Arm",
    "Ask",
    "Attribution",
    "Block",
    "Cause",
    "Change",
    "Choice",
    "Clock",
    "Context",
    "Decision",
    "Deviation",
    "DeviceEvent",
    "DeviceWork",
    "End",
    "Engine",
    "EngineInfo",
    "EngineState",
    "Entry",
    "EntryKind",
    "Envelope",
    "Estimate",
    "Evidence",
    "Finding",
    "Gap",
    "GuardResult",
    "Header",
    "Held",
    "HostEvent",
    "HostWork",
    "InFlight",
    "Interval",
    "Knob",
    "Lever",
    "Load",
    "Machine",
    "Margin",
    "Mark",
    "OddWindow",
    "OpBy",
    "Option",
    "Origin",
    "Plan",
    "Plane",
    "Prediction",
    "Progress",
    "Provenance",
    "Request",
    "Risk",
    "Sample",
    "Scope",
    "Slo",
    "Step",
    "Trace",
    "Trial",
    "Value",
    "Verdict",
    "Workload",
    "silent",
]
