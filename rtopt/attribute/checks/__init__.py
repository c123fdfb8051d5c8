"""The rules: one file each, one line each in the table."""

from rtopt.attribute.check import Check
from rtopt.attribute.checks.budget import BUDGET
from rtopt.attribute.checks.compute import COMPUTE
from rtopt.attribute.checks.gap import GAP
from rtopt.attribute.checks.kv import KV
from rtopt.attribute.checks.load import LOAD
from rtopt.attribute.checks.preemption import PREEMPTION
from rtopt.attribute.checks.prefill import PREFILL
from rtopt.attribute.checks.queue import QUEUE
from rtopt.attribute.checks.slots import SLOTS

CHECKS: tuple[Check, ...] = (
    SLOTS,
    BUDGET,
    KV,
    PREEMPTION,
    QUEUE,
    PREFILL,
    COMPUTE,
    GAP,
    LOAD,
)

__all__ = ["CHECKS"]
