"""Traffic: workloads read from traces, and the bundled load generator."""

from rtopt.traffic.workload import workload_of

__all__ = ["workload_of"]
