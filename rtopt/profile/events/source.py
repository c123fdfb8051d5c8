"""Choosing the one source of events for a process and window.

A process has one pair of CUPTI callbacks, and the last who registers wins, so two sources at once
spoil each other without a word. A server's own profiler is the only one that can be reached from
outside; where it is not configured there is none.
"""

from rtopt.errors import UnavailableError
from rtopt.profile.events.routes import ProfilerRoutes
from rtopt.types import Engine, Plane

NAME = "kineto"


def choose(engine: Engine, routes: ProfilerRoutes) -> Plane:
    """The server's own profiler, or "none" with why.

    Raises:
        EngineError: The server does not answer.
    """
    try:
        routes.check()
    except UnavailableError as error:
        return Plane(plane="event", name="none", reason=str(error))
    info = engine.state().info
    return Plane(plane="event", name=NAME, version=f"{info.name} {info.version}")
