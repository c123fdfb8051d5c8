"""A vLLM server that we launch, unmodified, with the overlay on its path."""

import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import httpx

from rtopt.engines.embedded import embedded_model
from rtopt.engines.launch import check_installation, serve_command, serve_environment
from rtopt.engines.secret import new_token_file
from rtopt.errors import EngineError, UsageError
from rtopt.types import Progress, silent

_START_TIMEOUT_S = 600
_STOP_TIMEOUT_S = 30


def free_port() -> int:
    """A port on loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
