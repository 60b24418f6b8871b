"""What labels nodes: Node Feature Discovery for the hardware, GPU Feature Discovery for the GPUs."""
