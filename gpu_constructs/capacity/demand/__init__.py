"""The GPU demand of an app: which workloads request GPUs, and how many of their pods run at the same time."""
