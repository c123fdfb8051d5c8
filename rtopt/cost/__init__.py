"""What a step costs."""

from rtopt.cost.load import StepLoad, load_of
from rtopt.cost.step_time import StepTime

__all__ = ["StepLoad", "StepTime", "load_of"]
