"""Facts about releases, platforms, GPU boards and MIG profiles, with their sources, and the inventory of a cluster."""
