"""Helpers that group or sum the values in pairs of a key and a value. Keys keep the order in which they first occur."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def grouped(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    """Return a dictionary that maps each key of the pairs to the list of its values.

    For example, ``[("a", 1), ("b", 5), ("a", 2)]`` becomes ``{"a": [1, 2], "b": [5]}``.
    """
    found: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def summed(pairs: Iterable[tuple[_Key, int]]) -> dict[_Key, int]:
    """Return a dictionary that maps each key of the pairs to the sum of its numbers.

    For example, ``[("a", 1), ("b", 5), ("a", 2)]`` becomes ``{"a": 3, "b": 5}``.
    """
    found: dict[_Key, int] = {}
    for key, value in pairs:
        found[key] = found.get(key, 0) + value
    return found
