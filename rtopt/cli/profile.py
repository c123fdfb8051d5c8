"""rtopt profile."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from rtopt.cli.options import AsJson, LoadText, TokenFile, Url, megabytes
from rtopt.cli.show import as_json, note, progress, table
from rtopt.config import parse_load
from rtopt.engines import connect
from rtopt.errors import EngineError, StoppedError
from rtopt.profile import record_to, summary
from rtopt.profile.events import events as trace_events
from rtopt.storage import to_json


def run(
    url: Url,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where to write the trace (.jsonl or .jsonl.gz).")
    ] = Path("trace.jsonl.gz"),
    duration: Annotated[float, typer.Option(help="Longest time to record, in seconds.")] = 60.0,
    requests: Annotated[
        int | None, typer.Option(help="End once so many requests have finished.")
    ] = None,
    max_mb: Annotated[
        float, typer.Option(help="Most megabytes to write; the rest is counted.")
    ] = 256.0,
    events: Annotated[
        int | None,
        typer.Option(help="Instead: the server's own profiler over so many steps, as files."),
    ] = None,
    load: LoadText = None,
    token_file: TokenFile = None,
    json: AsJson = False,
) -> None:
    """Record a running server into a trace.

    With the overlay every step and request; without it the Prometheus metrics once a second.
    Ctrl-C keeps what was recorded.
    """
    if events is not None:
        with progress() as said, closing(connect(url, token_file=token_file)) as engine:
            made = trace_events(engine, url, iterations=events, progress=said)
        if json:
            as_json({"plane": to_json(made.plane), "files": [str(file) for file in made.files]})
        note(made.where)
        return
    with progress() as said:
        trace = record_to(
            out,
            connect(url, token_file=token_file),
            duration_s=duration,
            load=parse_load(load) if load else None,
            max_requests=requests,
            max_bytes=megabytes(max_mb),
            progress=said,
        )
    if json:
        as_json({"file": str(out), "header": to_json(trace.header), "end": to_json(trace.end)})
    else:
        table(summary(trace), "", "", "")
        note(f"written: {out}")
    kept = f"{trace.duration_s:.0f} s were recorded and kept in {out}"
    if trace.end.reason == "interrupted":
        raise StoppedError(f"interrupted; {kept}")
    if trace.end.reason == "disconnected":
        raise EngineError(f"the server hung up; {kept}")
