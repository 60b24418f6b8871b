"""Limits of what users hand over as dicts and lists, checked before anything else looks into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEEPEST = 100
_MOST = 100_000
"""Values in one object, each place of a shared one counted: the largest custom resource definitions have a quarter."""

_TEXT_OF_ONE_VALUE = 100
"""Characters that count as one value more."""


def problem_of(field: str, value: object) -> str | None:
    """Return what is wrong with the size or the text of a value; None where nothing is.

    A dict that stands in several places is legitimate, and is looked into once.

    Args:
        field: Name of the argument, for the message.
        value: What the user gave; a list of objects is held to the limits object by object.
    """
    if not isinstance(value, list | tuple):
        return _Walk(field).problem_of(value)
    problems = (_Walk(f"{field}[{index}]").problem_of(one) for index, one in enumerate(value))
    return next((problem for problem in problems if problem), None)


class _Walk:
    def __init__(self, field: str) -> None:
        self._field = field
        self._sizes: dict[int, int] = {}
        self._open: set[int] = set()
        # What a mapping makes anew at each look must not give its identity to another.
        self._seen: list[Any] = []

    def problem_of(self, value: object) -> str | None:
        try:
            self._size(value, 0)
        except ValueError as error:
            return f"{self._field} must {error}"
        return None

    def _size(self, value: object, depth: int) -> int:
        if isinstance(value, str):
            return 1 + len(value) // _TEXT_OF_ONE_VALUE if value.isascii() else self._size_of_text(value)
        if not isinstance(value, Mapping | list | tuple):
            return 1
        if id(value) in self._sizes:
            return self._sizes[id(value)]
        if id(value) in self._open:
            raise ValueError("not hold itself; got a mapping or list that does; copy what is meant")
        if depth == _DEEPEST:
            raise ValueError(f"be nested at most {_DEEPEST} deep; got a mapping or list that is deeper; flatten it")
        self._open.add(id(value))
        self._seen.append(value)
        size = 1
        for item in _members(value):
            size += self._size(item, depth + 1)
            if size > _MOST:
                raise ValueError(
                    f"hold at most {_MOST} values; got more, each place of a shared one counted; leave some out"
                )
        self._open.remove(id(value))
        self._sizes[id(value)] = size
        return size

    def _size_of_text(self, text: str) -> int:
        try:
            return 1 + len(text.encode()) // _TEXT_OF_ONE_VALUE
        except UnicodeEncodeError as error:
            raise ValueError(
                f"hold text that UTF-8 can write; got half of a surrogate pair, {text[error.start]!r}, in "
                f"{text[:40]!r}; leave it out"
            ) from None


def _members(value: Mapping[Any, Any] | list[Any] | tuple[Any, ...]) -> Any:
    return (one for pair in value.items() for one in pair) if isinstance(value, Mapping) else value
