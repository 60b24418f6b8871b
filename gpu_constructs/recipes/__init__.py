"""Workloads that are known by name, ready to run."""
