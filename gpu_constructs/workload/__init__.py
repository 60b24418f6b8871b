"""Workloads whose pods use GPUs."""
