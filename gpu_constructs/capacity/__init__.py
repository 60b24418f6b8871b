"""The capacity plan: whether the pods of an app fit the GPUs of its cluster, computed from plain data."""
