"""rtopt attribute."""

from rtopt.attribute import describe, rank
from rtopt.cli.options import AsJson, TraceFile, open_trace
from rtopt.cli.show import as_json, progress, say
from rtopt.predict import compare
from rtopt.predict import run as predict_now
from rtopt.storage import to_json


def run(trace_file: TraceFile, json: AsJson = False) -> None:
    """Say what binds, with the numbers used, or abstain."""
    trace = open_trace(trace_file)
    with progress() as said:
        said("replaying the trace to compare with", None)
        attribution = rank(trace, compare(trace, predict_now(trace)))
    if json:
        as_json(to_json(attribution))
    else:
        say(describe(attribution))
