"""The profiler routes of a vLLM server: POST /start_profile and /stop_profile.

They exist only where the server was started with a profiler, they need no API key, and neither
tells whether a profiler is on, nor where its files are.

Source:
    vLLM 0.32, entrypoints/serve/profile/api_router.py and v1/engine/async_llm.py.
"""

import json
import re
from types import TracebackType
from typing import Final, Self

import httpx

from rtopt.engines.client import Answer, address, ask, no_answer, open_client
from rtopt.errors import EngineError, HeldError, UnavailableError

# Writing the files of many ranks can take minutes.
_STOP_TIMEOUT: Final = httpx.Timeout(600.0, connect=5.0)
_START_TIMEOUT: Final = httpx.Timeout(60.0, connect=5.0)
_STEPS: Final = re.compile(r"^vllm:iteration_tokens_total_count(?:\{[^\n]*\})? (\S+)", re.MULTILINE)
WANTED: Final = {
    "profiler": "torch",
    "torch_profiler_dir": "/absolute/folder",
    "torch_profiler_with_stack": False,
    "torch_profiler_record_shapes": True,
    "detailed_trace_annotation": True,
    "ignore_frontend": True,
}
FLAG: Final = f"--profiler-config '{json.dumps(WANTED)}'"
"""What a server has to be started with; stacks cost far more than they tell."""


class ProfilerRoutes:
    """One server's profiler."""

    def __init__(self, url: str) -> None:
        """Talk to the server at `url`; nothing is sent yet.

        Raises:
            UsageError: Not the URL of an HTTP server.
        """
        self._client = open_client(url)
        self.url = address(self._client)

    def check(self) -> None:
        """Find out whether the routes are there, without using them.

        Raises:
            UnavailableError: They are not; the message has the flag to restart with.
            EngineError: The server does not answer.
        """
        # A route that takes POST alone answers 405 to a GET.
        match ask(self._client, "/start_profile").status:
            case 405:
                return
            case 404:
                raise UnavailableError(
                    f"{self.url}: the server was started without a profiler, so it has no"
                    f" /start_profile. Restart it with {FLAG}. No profiler was started.",
                    flag=FLAG,
                )
            case status:
                raise EngineError(
                    f"{self.url}: GET /start_profile answered {status}, wanted 405 of a server with"
                    " a profiler or 404 of one without. No profiler was started."
                )

    def start(self, *, iterations: int, prefix: str) -> None:
        """Switch the profiler on for so many steps.

        Args:
            iterations: Steps after which the workers stop by themselves, whoever forgot to.
            prefix: Of the files' names; before vLLM 0.32 it is ignored.

        Raises:
            HeldError: A profiler is on already.
            EngineError: It was refused, or there was no answer.
        """
        body = {"max_iterations": iterations, "profile_prefix": prefix}
        answer = self._post("/start_profile", body, _START_TIMEOUT)
        if answer.status == 409:
            raise HeldError(
                f"{self.url}: another profiler session is on, and two would spoil each other's"
                " events. We started none; end that one with POST /stop_profile.",
                reason="busy",
            )
        self._must_be_done(answer, "/start_profile")

    def stop(self) -> None:
        """Switch it off, and wait until its files are written.

        Raises:
            EngineError: It was refused, or there was no answer.
        """
        self._must_be_done(self._post("/stop_profile", None, _STOP_TIMEOUT), "/stop_profile")

    def steps(self) -> int | None:
        """Steps that the engines have made so far; None when the server does not count them."""
        found = _STEPS.findall(ask(self._client, "/metrics").text)
        try:
            return sum(int(float(value)) for value in found) if found else None
        except (ValueError, OverflowError):
            return None

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _post(self, path: str, body: dict[str, object] | None, timeout: httpx.Timeout) -> Answer:
        try:
            response = self._client.post(path, json=body, timeout=timeout)
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise no_answer(error, where=self.url, path=path) from error
        return Answer(status=response.status_code, text=response.text, location=None)

    def _must_be_done(self, answer: Answer, path: str) -> None:
        if answer.status != 200:
            raise EngineError(
                f"{self.url}: POST {path} answered {answer.status}, wanted 200"
                f" ({' '.join(answer.text.split())[:200] or 'no text'})"
            )
