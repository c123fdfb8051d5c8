"""Runs the command line in a process of its own per command, without importing everything anew.

It imports rtopt once, and then forks for each line of JSON on its standard input: words, folder,
environment, and the files for the output. It answers with the exit code, or with the number of
the signal below 0.
"""

import gc
import json
import os
import signal
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from rtopt.cli import main
from rtopt.cli.commands import COMMANDS
from rtopt.cli.entry import load
from rtopt.config import read_config
from rtopt.engines.client import ask, open_client
from rtopt.errors import EngineError
from rtopt.storage import read_trace

ROOT = Path(__file__).parents[3]

LIMIT_S = 60


def serve() -> None:
    """Answer until the standard input ends."""
    _warm_up()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _run(json.loads(line))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _warm_up() -> None:
    """Load what commands load late, and build what they build once."""
    commands = [f"cli.{name.replace('-', '_')}" for name in COMMANDS]
    for name in (*commands, "report.page", "engines.vllm_server", "engines.vllm_metrics"):
        import_module(f"rtopt.{name}")
    for name in COMMANDS:
        load(name)
    read_config(None, {})
    for trace in (ROOT / "traces").glob("*.jsonl.gz"):
        read_trace(trace)
    with suppress(EngineError), open_client("http://127.0.0.1:9") as client:
        ask(client, "/")
    gc.freeze()  # children then share these pages


def _run(asked: dict[str, Any]) -> None:
    """Be the command, and end with its exit code."""
    signal.alarm(LIMIT_S)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["env"])
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(asked["out"], flags), 1)
    os.dup2(os.open(asked["err"], flags), 2)
    sys.argv = ["rtopt", *asked["words"]]
    code: object = 1
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - what Python itself would do with it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    serve()
