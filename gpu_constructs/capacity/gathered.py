"""Values gathered by key, in the order in which the keys come first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def grouped(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    """Return the values of each key."""
    found: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def summed(pairs: Iterable[tuple[_Key, int]]) -> dict[_Key, int]:
    """Return the sum of the values of each key."""
    found: dict[_Key, int] = {}
    for key, value in pairs:
        found[key] = found.get(key, 0) + value
    return found
