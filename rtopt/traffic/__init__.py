"""Traffic: workloads read from traces, and the bundled load generator."""

from rtopt.traffic.closed_loop import ClosedLoop, Tally
from rtopt.traffic.load_process import LoadProcess
from rtopt.traffic.workload import workload_of

__all__ = ["ClosedLoop", "LoadProcess", "Tally", "workload_of"]
