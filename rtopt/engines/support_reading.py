"""A server whose overlay refuses to answer for its engine: its metrics page is read instead."""

from dataclasses import replace

from rtopt.engines.vllm_metrics import MetricsEngine
from rtopt.errors import UnavailableError
from rtopt.types import Change, EngineState


class ReadingEngine(MetricsEngine):
    """A `MetricsEngine` that says why the overlay, which is there, is not used."""

    def __init__(self, url: str, why: str) -> None:
        """Talk to the server at `url`; nothing is sent yet.

        Raises:
            UsageError: Not the URL of an HTTP server.
        """
        super().__init__(url)
        self._why = why

    def state(self) -> EngineState:
        """Read what the metrics page tells; no knob is among it."""
        return replace(super().state(), read_only=self._why)

    def apply(self, change: Change) -> Change:
        """Refuse: nothing can be changed here."""
        raise UnavailableError(f"{self.url}: {change.lever}: {self._why}. Nothing was changed.")

    def settle(self, *, keep: bool) -> EngineState:
        """Refuse: no change can be on trial here."""
        verb = "keep" if keep else "restore"
        raise UnavailableError(f"{self.url}: there is nothing to {verb}: {self._why}.")
