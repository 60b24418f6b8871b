"""Fleets: many clusters for which one Python program writes the manifest files."""
