"""Pods that use GPUs."""
