"""Workload files: who wrote them is told by their content, never by their name."""

from rtopt.traffic.formats.own import write_workload
from rtopt.traffic.formats.reading import FORMATS, read_workload
from rtopt.traffic.formats.timed_trace import write_timed_trace

WRITERS = {"rtopt": write_workload, "timed_trace": write_timed_trace}

__all__ = ["FORMATS", "WRITERS", "read_workload", "write_timed_trace", "write_workload"]
