"""What the work inside a step belongs to: ops, layers, classes, and what stays unmatched."""

from rtopt.profile.ops.account import Account, account, check_matched
from rtopt.profile.ops.correlation import by_correlation
from rtopt.profile.ops.coverage import MAX_UNMATCHED_FRAC, check_known, unknown_frac
from rtopt.profile.ops.description import describe
from rtopt.profile.ops.naming import name_ops
from rtopt.profile.ops.period import Period, find_period
from rtopt.profile.ops.reference import by_reference, dictionary
from rtopt.profile.ops.sequence import by_node, by_sequence
from rtopt.profile.ops.steps import StepOps, split

__all__ = [
    "MAX_UNMATCHED_FRAC",
    "Account",
    "Period",
    "StepOps",
    "account",
    "by_correlation",
    "by_node",
    "by_reference",
    "by_sequence",
    "check_known",
    "check_matched",
    "describe",
    "dictionary",
    "find_period",
    "name_ops",
    "split",
    "unknown_frac",
]
