"""Checks over all objects of an app."""
