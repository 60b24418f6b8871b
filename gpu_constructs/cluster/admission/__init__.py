"""Policies that the API server applies to pods as they are created."""
