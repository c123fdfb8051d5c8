"""vLLM servers on this machine, by their processes.

Command lines may hold secrets: of one only the few words that are looked for are used, and none of
it is kept.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from typing import Final, Literal

import psutil

DEFAULT_PORT: Final = 8000
_MODULES: Final = ("vllm.entrypoints.cli.main", "vllm.entrypoints.openai.api_server")
_RUST: Final = "vllm-rs"
_API_SERVER: Final = "VLLM::APIServer"
_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServer:
    """One running `vllm serve`."""

    pid: int
    url: str | None
    """Where it listens; absent when that cannot be told."""
    reason: str | None = None
    """Why there is no address."""
    front_end: Literal["python", "rust"] = "python"
    api_servers: int = 1
    plugins: str | None = None
    """Its VLLM_PLUGINS; absent when it is not set, or when its environment cannot be read."""
    has_profiler: bool = False


def find_servers() -> tuple[FoundServer, ...]:
    """Every vLLM server among the processes of this machine, by process id."""
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
            if is_server(words):
                found.append(_look_at(process, words))
        except psutil.Error:
            continue  # it has ended meanwhile, or belongs to somebody else
    return tuple(sorted(found, key=lambda server: server.pid))


def is_server(words: Sequence[str]) -> bool:
    """Whether a command line is vLLM's server itself, and not a wrapper around it."""
    if not words:
        return False
    program, rest = PurePath(words[0]).name, list(words[1:])
    if program in ("vllm", _RUST):
        return rest[:1] == ["serve"]
    if not program.startswith("python"):
        return False
    while rest and rest[0].startswith("-") and rest[0] != "-m":
        rest = rest[1:]
    match rest:
        case ["-m", module, *more] if module in _MODULES:
            return module.endswith("api_server") or more[:1] == ["serve"]
        case [script, "serve", *_]:
            return PurePath(script).name == "vllm"
        case _:
            return False


def option(words: Sequence[str], name: str) -> str | None:
    """The value of an option, as `--name VALUE` or `--name=VALUE`; the last one counts."""
    value = None
    for word, after in pairwise([*words, ""]):
        if word == name:
            value = after
        elif word.startswith(f"{name}="):
            value = word.partition("=")[2]
    return value


def address_of(words: Sequence[str], listening: Sequence[tuple[str, int]]) -> str | None:
    """Address of the API among the sockets that a server listens on."""
    given = option(words, "--port") or str(DEFAULT_PORT)
    port = int(given) if given.isdecimal() else DEFAULT_PORT
    hosts = [host for host, number in listening if number == port]
    if not hosts:
        return None
    host = _ANY.get(hosts[0], hosts[0])
    scheme = "http" if option(words, "--ssl-certfile") is None else "https"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _look_at(process: psutil.Process, words: Sequence[str]) -> FoundServer:
    family = [process, *process.children(recursive=True)]
    names = [_title(member) for member in family]
    url, reason = None, None
    if "--headless" in words:
        reason = "it runs without a front end (--headless); the front end is on another machine"
    elif option(words, "--uds") is not None:
        reason = "it listens on a Unix socket; wanted a port"
    elif process.uids().real != os.getuid():
        # A token or key of this user must not go to whoever looks like a server.
        reason = "it belongs to another user; name its address to ask it: rtopt doctor URL"
    else:
        try:
            url = address_of(words, [pair for member in family for pair in _listening(member)])
            reason = None if url else "it does not listen yet on its port"
        except psutil.AccessDenied:
            reason = "its sockets belong to another user"
    config = option(words, "--profiler-config") or ""
    return FoundServer(
        pid=process.pid,
        url=url,
        reason=reason,
        front_end="rust" if any(PurePath(name).name == _RUST for name in names) else "python",
        api_servers=max(1, sum(name.startswith(_API_SERVER) for name in names)),
        plugins=_plugins(process),
        has_profiler="torch" in config or "cuda" in config,
    )


def _listening(process: psutil.Process) -> Iterator[tuple[str, int]]:
    for connection in process.net_connections(kind="tcp"):
        if connection.status == psutil.CONN_LISTEN:
            yield connection.laddr.ip, connection.laddr.port


def _title(process: psutil.Process) -> str:
    """First word of its command line: a program, or the title that vLLM gives a process."""
    try:
        return next(iter(process.cmdline()), "")
    except psutil.Error:
        return ""


def _plugins(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("VLLM_PLUGINS")
    except psutil.Error:
        return None
