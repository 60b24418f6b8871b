"""Talos Linux nodes with NVIDIA GPUs: what their installer holds and how they are configured."""
