"""Policies that the API server applies to new pods."""
