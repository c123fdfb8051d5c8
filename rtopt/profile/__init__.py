"""Stage 1: record a running server, with the state of its machine, as a Trace."""

from rtopt.profile.overview import summary
from rtopt.profile.recording import record_to, run

__all__ = ["record_to", "run", "summary"]
