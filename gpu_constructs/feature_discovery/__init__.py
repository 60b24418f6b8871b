"""Constructs for Node Feature Discovery, which labels nodes with their hardware features."""
