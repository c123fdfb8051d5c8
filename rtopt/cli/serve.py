"""rtopt serve."""

import sys
from typing import Annotated

import typer

from rtopt.cli.show import note, progress
from rtopt.engines.vllm_process import VllmProcess
from rtopt.errors import EngineError

SETTINGS = {"context_settings": {"allow_extra_args": True, "ignore_unknown_options": True}}


def run(
    context: typer.Context,
    model: Annotated[
        str | None, typer.Argument(help="A model for vLLM; none: the embedded SmolLM2-135M.")
    ] = None,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1.")] = 8000,
) -> None:
    """Start an unmodified vLLM with the overlay on.

    Everything after -- goes to vLLM as it is. Ends with Ctrl-C.
    """
    flags = list(context.args)
    if model is not None and model.startswith("-"):
        flags, model = [model, *flags], None
    server = VllmProcess(model, flags, port=port)
    with progress() as said:
        server.start(said)
    note(f"serving at {server.url}; try: rtopt profile {server.url} -o trace.jsonl.gz")
    try:
        code = server.wait()
    except KeyboardInterrupt:
        server.stop()
        sys.exit(0)
    if code != 0:
        raise EngineError(f"vLLM ended with code {code}")
