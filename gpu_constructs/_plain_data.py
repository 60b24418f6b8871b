"""The user's own mappings copied as plain data: what YAML and JSON hold alike, and nothing else."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from gpu_constructs.errors import GpuConstructsError

_LARGEST = 2**53
"""Up to here JSON's numbers, which are JavaScript's, are exact."""

_DEEPEST = 64
_UNREADABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufffe\uffff\ud800-\udfff]")
"""Manifests are written with these as they are, and readers of YAML take them for a new line, or for no text."""


def plain(field: str, value: object, *, may_be_none: bool = False, depth: int = 0) -> Any:
    """Copy dicts, lists, texts and numbers, of whatever class they are; what is given may change later.

    Args:
        field: For errors.
        value: What the user gave.
        may_be_none: Whether None means something where it goes.
        depth: How many mappings and lists hold it.

    Raises:
        GpuConstructsError: Anything else, named by its place; mappings and lists nested without an end.
    """
    if depth > _DEEPEST:
        whole = re.split(r"[.\[]", field, maxsplit=1)[0]
        raise GpuConstructsError(
            f"{whole} must be nested at most {_DEEPEST} deep; got one that is deeper, or holds itself, at "
            f"{field[:60]}...; flatten it"
        )
    deeper = partial(plain, may_be_none=may_be_none, depth=depth + 1)
    if isinstance(value, Mapping):
        return {_key(field, key): deeper(below(field, key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [deeper(f"{field}[{index}]", item) for index, item in enumerate(value)]
    if isinstance(value, str):
        if _UNREADABLE.search(value):
            raise GpuConstructsError(
                f"{field} must be text that every reader of YAML takes; got {value!r}; leave out the control character "
                "or line separator in it"
            )
        return str.__str__(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        if not math.isfinite(value) or abs(value) > _LARGEST:
            raise GpuConstructsError(f"{field} must be a number within 2**53; got {value!r}; write it as text")
        return int(value) if isinstance(value, int) else float(value)
    if value is None and may_be_none:
        return None
    if value is None:
        raise GpuConstructsError(f"{field} must have a value; got None; leave it out")
    raise GpuConstructsError(f"{field} must be what YAML can hold; got {value!r} ({type(value).__name__})")


def _key(field: str, key: object) -> str:
    if not isinstance(key, str):
        raise GpuConstructsError(f"{field} must have text for keys; got {key!r}")
    if not key.isprintable():
        raise GpuConstructsError(f"{field} must have printable text for keys; got {key!r}")
    return str.__str__(key)


def below(field: str, key: object) -> str:
    """Give the place of a key: behind a dot where it is a word, else in brackets."""
    return f"{field}.{key}" if isinstance(key, str) and re.fullmatch(r"[\w-]+", key) else f"{field}[{key!r}]"
