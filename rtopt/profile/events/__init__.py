"""The event plane of a running engine: what ran inside its steps, from exactly one source."""

from rtopt.profile.events.source import choose
from rtopt.profile.events.window import Events, events

__all__ = ["Events", "choose", "events"]
