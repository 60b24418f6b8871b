"""Talos Linux nodes with NVIDIA GPUs: their machine configuration, and the contents of their installer image."""
