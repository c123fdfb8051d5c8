"""One tree of errors; each leaf has the exit code that the command line returns.

RtoptError
|- UsageError        2   usage or configuration
|- UnavailableError  3   not available here (hardware, extra, engine version)
|- TraceError        4   trace or input file damaged, foreign or too new
|- EngineError       5   engine missing, refused or died
|  |- KnobError      5   a knob is unknown or its value is outside its limits
|  `- GoneError      5   nobody listens at the engine's address
|- EvidenceError     6   too little or too poor evidence
|- ProvenanceError   7   the provenance chain does not verify
|- HeldError         8   somebody else holds the engine
|- UndoError        70   an undo failed; the state is named
`- StoppedError    130   interrupted, and restored

Every message says where, what was found, what was wanted, and the state things are in now.
"""

from collections.abc import Mapping
from typing import ClassVar


class RtoptError(Exception):
    """Anything rtopt refuses or could not do.

    `facts` carries the values named in the message, for the report and `--json`.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.facts: Mapping[str, object] = facts


class UsageError(RtoptError):
    """The command line or the configuration is wrong."""

    exit_code = 2


class UnavailableError(RtoptError):
    """This machine, installation or engine version cannot do it; the message says what would."""

    exit_code = 3


class TraceError(RtoptError):
    """A trace or input file is damaged, foreign or too new."""

    exit_code = 4


class EngineError(RtoptError):
    """The engine is missing, refused, or died."""

    exit_code = 5


class KnobError(EngineError):
    """A knob is unknown, or the value is outside its floor and ceiling. Nothing was changed."""


class GoneError(EngineError):
    """Nobody listens at the engine's address; it ended, and what was on trial with it."""


class EvidenceError(RtoptError):
    """Too little or too poor evidence to answer."""

    exit_code = 6


class ProvenanceError(RtoptError):
    """The provenance chain does not verify."""

    exit_code = 7


class HeldError(RtoptError):
    """Somebody else holds the engine; the message says who and until when."""

    exit_code = 8


class UndoError(RtoptError):
    """An undo failed; the message names the state the engine is in."""

    exit_code = 70


class StoppedError(RtoptError):
    """Interrupted by the user; what was on trial has been restored."""

    exit_code = 130
