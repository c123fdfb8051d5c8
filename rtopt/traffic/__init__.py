"""Traffic: workloads from traces, files and statistics, and the bundled load generator."""

from rtopt.traffic.arrivals import Arrivals, workload_by_arrivals
from rtopt.traffic.closed_loop import ClosedLoop
from rtopt.traffic.fitting import Fit, fit
from rtopt.traffic.formats import WRITERS, read_workload
from rtopt.traffic.load_process import LoadProcess
from rtopt.traffic.portrait import Portrait, describe, portrait_rows
from rtopt.traffic.replay import Replay
from rtopt.traffic.report import tally_rows
from rtopt.traffic.running import run_clients, run_workload
from rtopt.traffic.tally import Tally
from rtopt.traffic.target import Target, find_target
from rtopt.traffic.words import parse_limits, parse_on_off, parse_span
from rtopt.traffic.workload import workload_of

__all__ = [
    "WRITERS",
    "Arrivals",
    "ClosedLoop",
    "Fit",
    "LoadProcess",
    "Portrait",
    "Replay",
    "Tally",
    "Target",
    "describe",
    "find_target",
    "fit",
    "parse_limits",
    "parse_on_off",
    "parse_span",
    "portrait_rows",
    "read_workload",
    "run_clients",
    "run_workload",
    "tally_rows",
    "workload_by_arrivals",
    "workload_of",
]
