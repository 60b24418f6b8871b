"""Constructs for the NVIDIA device plugin, which advertises the GPUs of a node to the kubelet."""
