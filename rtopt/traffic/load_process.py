"""Runs the bundled load generator in a process of its own."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from types import TracebackType
from typing import Self

from rtopt.errors import EngineError
from rtopt.traffic.closed_loop import ClosedLoop
from rtopt.traffic.replay import Replay
from rtopt.traffic.tally import Tally

API_KEY_ENV = "RTOPT_API_KEY"
_STOP_TIMEOUT_S = 60


class LoadProcess:
    """Offers load while it is open; `stop` gives the tally."""

    def __init__(self, load: ClosedLoop | Replay, *, api_key: str | None = None) -> None:
        """Prepare; `start` begins to offer. The key travels in the environment, unseen by ps."""
        self.load = load
        self._env = {**os.environ, API_KEY_ENV: api_key} if api_key else None
        self._child: subprocess.Popen[str] | None = None
        self.tally: Tally | None = None

    def start(self) -> Self:
        """Begin to offer load; it also ends by itself, after its duration or its last request."""
        command = [sys.executable, "-m", "rtopt.traffic", json.dumps(asdict(self.load))]
        self._child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=self._env
        )
        return self

    @property
    def is_running(self) -> bool:
        """Whether it still offers load, or waits for answers."""
        return self._child is not None and self._child.poll() is None

    def stop(self) -> Tally:
        """Let requests in flight finish, and say what came of all of them.

        Raises:
            EngineError: The generator died or refused; its exit code or its reason is named.
        """
        if self.tally is not None:
            return self.tally
        if self._child is None:
            raise EngineError("the load generator has not been started")
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGINT)
        try:
            out, _ = self._child.communicate(timeout=_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.communicate()
            raise EngineError(
                f"the load generator did not stop within {_STOP_TIMEOUT_S} s and was ended"
            ) from None
        if self._child.returncode != 0:
            raise EngineError(f"the load generator {_reason(out, self._child.returncode)}")
        self.tally = Tally(**json.loads(out.splitlines()[-1]))
        return self.tally

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.stop()
        elif self._child is not None and self._child.poll() is None:
            self._child.kill()
            self._child.communicate()


def _reason(out: str, code: int) -> str:
    """Why it ended, from its last line where it gave one."""
    last = out.splitlines()[-1] if out.strip() else ""
    try:
        return f"refused: {json.loads(last)['error']}"
    except (ValueError, KeyError, TypeError):
        return f"ended with code {code}"
