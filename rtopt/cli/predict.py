"""rtopt predict."""

from typing import Annotated

import typer

from rtopt.cli.options import AsJson, TraceFile, open_trace
from rtopt.cli.show import as_json, progress, say
from rtopt.config import parse_knobs
from rtopt.predict import by_replay, describe
from rtopt.storage import to_json


def run(
    trace_file: TraceFile,
    knobs: Annotated[
        list[str] | None,
        typer.Option("--set", help="What if: KNOB=VALUE, repeatable."),
    ] = None,
    allow_version: Annotated[
        bool,
        typer.Option(
            "--allow-version", help="Replay although the trace is of another vLLM version."
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """Replay a trace on the engine's own scheduler, at present or other knobs."""
    wanted = parse_knobs(knobs or ())
    trace = open_trace(trace_file)
    with progress() as said:
        said("replaying on the engine's own scheduler", None)
        now = by_replay(trace, allow_version=allow_version)
        then = by_replay(trace, set=wanted, allow_version=allow_version) if wanted else None
    if json:
        as_json({"now": to_json(now), **({"set": to_json(then)} if then else {})})
    else:
        say(describe(trace, now, then))
