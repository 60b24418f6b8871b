"""Helpers that group or sum values by key. Keys keep the order in which they first occur."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def grouped(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    """Return a dictionary from each key to the list of its values."""
    found: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def summed(pairs: Iterable[tuple[_Key, int]]) -> dict[_Key, int]:
    """Return a dictionary from each key to the sum of its values."""
    found: dict[_Key, int] = {}
    for key, value in pairs:
        found[key] = found.get(key, 0) + value
    return found
