"""What a server shows, what can be moved on it, and the restart that would give more."""

import shlex
from collections.abc import Iterator
from contextlib import closing

from rtopt.doctor.check import Check
from rtopt.doctor.planes import PROFILER_FLAG
from rtopt.engines import connect
from rtopt.engines.discovery import FoundServer
from rtopt.engines.launch import plugins_with_ours
from rtopt.engines.vllm_metrics import MetricsEngine
from rtopt.errors import RtoptError, UsageError
from rtopt.types import EngineState


def named_server(url: str) -> list[Check]:
    """The server at an address.

    Raises:
        UsageError: Not a server's address, or a secret that was named cannot be read.
    """
    try:
        state, _ = _look(url)
    except UsageError:
        raise  # there is no server to look at
    except RtoptError as error:
        return [Check(name="server", found=str(error), is_ok=False)]
    info = state.info
    checks = [Check(name="server", found=f"vLLM {info.version}, {info.model}", is_ok=True)]
    if state.read_only:
        checks.append(_extra("changing knobs", state.read_only, is_ok=False))
    checks += [
        _extra(k.name, f"{k.value} (from {k.low} to {k.high}, start {k.start})", is_ok=True)
        for k in state.knobs
    ]
    return checks


def local_server(server: FoundServer) -> Iterator[Check]:
    """A server found on this machine; its arguments are never shown.

    Raises:
        UsageError: A secret that the environment names cannot be read.
    """
    name = f"server pid {server.pid}"
    if server.url is None:
        yield _extra(name, f"not readable: {server.reason}", is_ok=False)
        return
    try:
        state, is_metrics = _look(server.url)
    except UsageError:
        raise
    except RtoptError as error:
        yield _extra(name, f"not readable: {error}", is_ok=False)
        return
    info = state.info
    yield _extra(name, f"{server.url}: vLLM {info.version}, {info.model}", is_ok=True)
    if server.front_end == "rust":
        why = "its front end is the Rust one, which loads no plug-ins, so the overlay can't run"
        yield _extra(f"{name} sees", "the metrics page", is_ok=True)
        yield _extra(f"{name} moves", f"nothing: {why}", is_ok=False)
        return
    has_steps = not is_metrics and info.num_api_servers == 1
    sees = "steps, requests and the metrics page" if has_steps else "the metrics page"
    yield _extra(f"{name} sees", sees, is_ok=has_steps, fix=_more(server, state, is_metrics))
    if state.read_only:
        yield _extra(f"{name} moves", f"nothing: {state.read_only}", is_ok=False)
    else:
        moves = ", ".join(knob.name for knob in state.knobs)
        yield _extra(f"{name} moves", moves or "nothing: no knob in this version", is_ok=True)
    if not server.has_profiler:
        found = "none: it was started without vLLM's profiler"
        fix = f"restart it with {PROFILER_FLAG}"
        yield _extra(f"{name} events", found, is_ok=False, fix=fix)


def _look(url: str) -> tuple[EngineState, bool]:
    """The server's state, and whether it is its metrics page that tells it."""
    with closing(connect(url)) as engine:
        return engine.state(), isinstance(engine, MetricsEngine)


def _more(server: FoundServer, state: EngineState, is_metrics: bool) -> str:
    """The restart that would show steps; empty when they are shown."""
    before, after = "", ""
    if is_metrics:
        plugins = shlex.quote(plugins_with_ours(server.plugins))
        before = f'RTOPT_TOKEN_FILE=FILE PYTHONPATH="$(rtopt overlay-path)" VLLM_PLUGINS={plugins} '
    if max(server.api_servers, state.info.num_api_servers) > 1:
        after = " --api-server-count 1"
    if state.info.num_engines > 1:
        after += " --data-parallel-size 1"
    if not before and not after:
        return ""
    return f"restart: {before}(the command of pid {server.pid}){after}"


def _extra(name: str, found: str, *, is_ok: bool, fix: str = "") -> Check:
    return Check(name=name, found=found, is_ok=is_ok, is_needed=False, fix=fix)
