"""Looks at the installation and at servers; every fault comes with what fixes it."""

from rtopt.doctor.check import Check
from rtopt.doctor.examination import examine, examine_servers

__all__ = ["Check", "examine", "examine_servers"]
