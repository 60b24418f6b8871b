"""Fleets: many clusters that one program synthesizes from one file."""
