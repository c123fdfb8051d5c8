"""Stage 2: what the engine should do, and how far it is from that."""

from rtopt.predict.description import describe
from rtopt.predict.deviation import compare
from rtopt.predict.replay import by_replay, prepare, run
from rtopt.predict.step_fit import fit_step_time

__all__ = ["by_replay", "compare", "describe", "fit_step_time", "prepare", "run"]
