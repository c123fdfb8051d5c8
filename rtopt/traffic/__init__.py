"""Load generators and workloads."""
