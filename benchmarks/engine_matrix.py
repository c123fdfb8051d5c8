"""How far rtopt gets with servers of several shapes: reading, recording, moving a knob, doctor.

Each case starts a real engine of its own, one after the other, and its result replaces the one of
the same name in the file. What is refused is written down in the words of the refusal.

    python benchmarks/engine_matrix.py --out benchmarks/results/engine-matrix-DATE.json [CASE ...]
"""

import argparse
import json
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import trustme

import rtopt
from rtopt.backends import machine
from rtopt.doctor import examine, examine_servers
from rtopt.engines import connect
from rtopt.engines.client import open_client
from rtopt.engines.vllm_process import VllmProcess
from rtopt.errors import RtoptError
from rtopt.storage import to_json
from rtopt.types import Change, Engine

MODEL = "SmolLM2-135M-Instruct"
FLAGS = ("--enforce-eager", "--max-num-seqs", "16")
RECORD_S = 6.0


@dataclass(frozen=True, kw_only=True)
class Case:
    """One shape of server."""

    flags: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    is_guarded: bool = False
    """Behind TLS with a private certificate, and an API key."""


CASES = {
    "plain": Case(env={"VLLM_PLUGINS": ""}),
    "overlay": Case(),
    "two API servers": Case(flags=("--api-server-count", "2")),
    "data parallel 2": Case(
        flags=("--data-parallel-size", "2"), env={"VLLM_CPU_OMP_THREADS_BIND": "0|1"}
    ),
    "TLS and API key": Case(is_guarded=True),
}


def guard(folder: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """Flags and environment of a guarded server; this process gets what it needs to enter."""
    authority = trustme.CA()
    made = authority.issue_cert("127.0.0.1")
    cert, key, trusted = folder / "cert.pem", folder / "key.pem", folder / "authority.pem"
    made.cert_chain_pems[0].write_to_path(str(cert))
    made.private_key_pem.write_to_path(str(key))
    authority.cert_pem.write_to_path(str(trusted))
    os.environ["SSL_CERT_FILE"] = str(trusted)
    os.environ["RTOPT_API_KEY"] = secrets.token_urlsafe(16)
    flags = ("--ssl-certfile", str(cert), "--ssl-keyfile", str(key))
    return flags, {"VLLM_API_KEY": os.environ["RTOPT_API_KEY"]}


def offer(url: str, stop: threading.Event) -> None:
    """One request after the other until told to stop."""
    headers = {"Authorization": f"Bearer {os.environ.get('RTOPT_API_KEY', 'none')}"}
    asked = {"model": MODEL, "max_tokens": 16, "ignore_eos": True}
    with open_client(url, timeout=httpx.Timeout(60)) as client:
        while not stop.is_set():
            body = {**asked, "prompt": secrets.token_hex(8)}
            client.post("/v1/completions", json=body, headers=headers).raise_for_status()


def outcome(what: Callable[[], Any]) -> Any:
    """What came of it; a refusal in its own words."""
    try:
        return what()
    except RtoptError as error:
        return {"refused": type(error).__name__, "exit_code": error.exit_code, "why": str(error)}


def move(engine: Engine) -> dict[str, Any]:
    """Set a knob one down, read it back, and restore it."""
    knob = engine.state().knobs[0] if engine.state().knobs else None
    name, value = (knob.name, knob.high - 1) if knob else ("max_num_active_seqs", 1)
    engine.apply(Change(lever=name, knobs={name: value}, reason="the matrix"))
    moved = engine.state().values()[name]
    restored = engine.settle(keep=False).values()[name]
    return {"knob": name, "moved_to": moved, "restored_to": restored}


def record(engine: Engine) -> dict[str, Any]:
    """What a recording under load holds."""
    trace = engine.record(RECORD_S)
    counts = {"steps": len(trace.steps), "requests": len(trace.requests)}
    return {"source": trace.header.source, **counts, "samples": len(trace.samples)}


def look(process: VllmProcess) -> dict[str, Any]:
    """Everything that is asked of one server."""
    with closing(connect(process.url)) as engine:
        state = engine.state()
        stop = threading.Event()
        load = threading.Thread(target=offer, args=(process.url, stop))
        load.start()
        try:
            recorded = outcome(lambda: record(engine))
        finally:
            stop.set()
            load.join()
        return {
            "engine": type(engine).__name__,
            "info": {
                "version": state.info.version,
                "num_engines": state.info.num_engines,
                "num_api_servers": state.info.num_api_servers,
            },
            "read_only": state.read_only,
            "knobs": [knob.name for knob in state.knobs],
            "recording": recorded,
            "moving": outcome(lambda: move(engine)),
            "doctor": [c.as_dict() for c in examine(process.url) if c.name == "server"],
            "doctor --servers": [
                {**c.as_dict(), "name": c.name.replace(f"pid {process.pid}", "pid N")}
                for c in examine_servers()
                if f"pid {process.pid}" in c.name
            ],
        }


def run(case: Case) -> dict[str, Any]:
    """Start the case's server, look, and end it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        more, env = guard(folder) if case.is_guarded else ((), {})
        process = VllmProcess(
            flags=(*FLAGS, *case.flags, *more),
            log=folder / "vllm.log",
            extra_env={**case.env, **env},
        )
        began = time.monotonic()
        with process:
            started_s = time.monotonic() - began
            found = outcome(lambda: look(process))
        text = json.dumps({"flags": case.flags, "started_s": round(started_s, 1), **found})
        return dict(json.loads(text.replace(f":{process.port}", ":PORT").replace(name, "FOLDER")))


def main() -> None:
    """Run the named cases, or all, and keep the results of the others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if unknown := [name for name in args.cases if name not in CASES]:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(CASES)}")
    kept = json.loads(args.out.read_text())["cases"] if args.out.is_file() else {}
    for name in args.cases or CASES:
        kept[name] = run(CASES[name])
        print(name, json.dumps(kept[name], indent=1), flush=True)
        result = {
            "what": "what rtopt can read, record and move on servers of several shapes",
            "cases": kept,
            "flags": FLAGS,
            "machine": to_json(replace(machine(), kernel=None)),
            "rtopt": rtopt.__version__,
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        }
        args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
