"""Rules for the GPU workloads in manifests. Each rule has a code, such as ``R01``, and a check that finds violations.

A finding is a problem that a check reports: its message contains a reason and a solution.
"""
