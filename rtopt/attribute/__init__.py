"""Stage 3: name a cause with its evidence, or abstain."""

from rtopt.attribute.checks import CHECKS
from rtopt.attribute.description import describe
from rtopt.attribute.ranking import rank

__all__ = ["CHECKS", "describe", "rank"]
