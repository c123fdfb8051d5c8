"""The engine's own scheduler on a virtual clock.

Importing this room does not import vLLM; making a `Simulator` does (seconds, once).
"""

from rtopt.sim.knobs import KNOBS, LIVE, check_live, live_limits
from rtopt.sim.simulator import Simulator, installed_version

__all__ = ["KNOBS", "LIVE", "Simulator", "check_live", "installed_version", "live_limits"]
