"""Data about releases, platforms, GPU boards and MIG profiles, and the inventory of the GPU nodes in a cluster."""
