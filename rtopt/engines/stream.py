"""One recording as it comes over the wire, line by line, on its way to a Trace."""

from collections.abc import Mapping
from typing import Any

from rtopt.engines.answers import ERRORS, MALFORMED, info_of, malformed
from rtopt.errors import EngineError
from rtopt.storage import from_json
from rtopt.types import (
    Clock,
    End,
    Header,
    InFlight,
    Load,
    Machine,
    Mark,
    Request,
    Step,
    Trace,
    Value,
)

_DERIVED = {
    "step.t_ns": "when the front end received the step's outputs",
    "request.finished_ns": "the step's wall-clock stamp, moved to the monotonic clock",
    "request.arrival_ns": "finished_ns minus e2e_ms",
}


class Recording:
    """Lines of one stream, on their way to a Trace."""

    def __init__(self, load: Load | None) -> None:
        """`load` is kept in the header."""
        self._load = load
        self.header: Header | None = None
        self.steps: list[Step] = []
        self.requests: list[Request] = []
        self._in_flight: list[InFlight] = []
        self._marks: list[Mark] = []
        self._end: End | None = None
        self._last_ns = 0
        self.reason = "disconnected"

    def add(self, line: dict[str, Any], *, where: str) -> None:
        """Take one line.

        Raises:
            EngineError: It is not of the overlay's form, or says that the recording failed.
        """
        try:
            self._add(line, where)
        except MALFORMED as error:
            raise malformed(where, error) from error

    def _add(self, line: dict[str, Any], where: str) -> None:
        kind = line.pop("kind", None)
        match kind:
            case "open":
                self.header = self._open(line)
                self._last_ns = line["start_ns"]
            case "step":
                self.steps.append(from_json(Step, line, where=where))
                self._last_ns = line["t_ns"]
            case "request":
                self.requests.append(from_json(Request, line, where=where))
            case "in_flight":
                self._in_flight.append(from_json(InFlight, line, where=where))
            case "mark":
                self._marks.append(from_json(Mark, line, where=where))
            case "beat":
                self._last_ns = line["t_ns"]
            case "error":
                raise ERRORS.get(line["code"], EngineError)(f"{where}: {line['message']}")
            case "close":
                self._end = End(
                    end_ns=line["end_ns"],
                    clock=Clock(mono_ns=line["mono_ns"], unix_ns=line["unix_ns"]),
                    dropped={"lines": line["lost"]} if line["lost"] else {},
                )
            case _:
                raise EngineError(f"{where} holds a line of unknown kind {kind!r}")

    def _open(self, line: Mapping[str, Any]) -> Header:
        state = line["state"]
        knobs: dict[str, Value] = {k["name"]: k["value"] for k in state["knobs"]}
        return Header(
            source="overlay",
            engine=info_of(state),
            machine=from_json(Machine, state["machine"], where="/rtopt/state"),
            clock=Clock(mono_ns=state["mono_ns"], unix_ns=state["unix_ns"]),
            start_ns=line["start_ns"],
            knobs=knobs,
            load=self._load,
            derived=_DERIVED,
        )

    def trace(self) -> Trace:
        """Everything that came, within the window.

        Raises:
            EngineError: Nothing came.
        """
        if self.header is None:
            raise EngineError("the recording ended before it began: the server hung up")
        end = self._end or End(
            end_ns=self._last_ns,
            clock=self.header.clock,
            reason=self.reason,
        )
        start_ns, end_ns = self.header.start_ns, end.end_ns
        return Trace(
            header=self.header,
            end=end,
            steps=tuple(s for s in self.steps if start_ns < s.t_ns <= end_ns),
            requests=tuple(r for r in self.requests if start_ns < r.finished_ns <= end_ns),
            in_flight=tuple(self._in_flight),
            marks=tuple(self._marks),
        )
