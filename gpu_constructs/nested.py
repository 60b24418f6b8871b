"""Limits on the size and the text of dicts and lists that users pass. The library checks these limits first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEEPEST = 100
_MOST = 100_000
"""Largest number of values in one argument. The largest custom resource definitions have a quarter of this number.

A value that occurs several times in the argument counts several times.
"""

_TEXT_OF_ONE_VALUE = 100
"""Number of UTF-8 bytes of a text that count as one additional value for the limit ``_MOST``."""


def problem_of(field: str, value: object) -> str | None:
    """Return an error message if an argument is too large, contains itself, or contains text that UTF-8 cannot encode.

    Return None if the argument is valid. "Too large" means too many values or nested levels.

    Args:
        field: Name of the argument in the message.
        value: Value of the argument. If the value is a list, the limits apply to each item, and not to the list.
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
        # The references keep objects alive, so that no later object has the same identity.
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
            raise ValueError("not contain itself, got a recursive mapping or list. Remove its reference to itself")
        if depth == _DEEPEST:
            raise ValueError(f"have at most {_DEEPEST} nested levels, got more. Flatten it")
        self._open.add(id(value))
        self._seen.append(value)
        size = 1
        for item in _members(value):
            size += self._size(item, depth + 1)
            if size > _MOST:
                raise ValueError(
                    f"contain at most {_MOST} values, got more (a value in two places counts twice). Remove some"
                )
        self._open.remove(id(value))
        self._sizes[id(value)] = size
        return size

    def _size_of_text(self, text: str) -> int:
        try:
            return 1 + len(text.encode()) // _TEXT_OF_ONE_VALUE
        except UnicodeEncodeError as error:
            raise ValueError(
                f"contain text that UTF-8 can encode, got half of a surrogate pair, {text[error.start]!r}, in "
                f"{text[:40]!r}. Remove it"
            ) from None


def _members(value: Mapping[Any, Any] | list[Any] | tuple[Any, ...]) -> Any:
    return (one for pair in value.items() for one in pair) if isinstance(value, Mapping) else value
