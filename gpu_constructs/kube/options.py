"""Option structs, whose values and combinations are checked by tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from gpu_constructs.errors import GpuConstructsError, ShortErrors
from gpu_constructs.kube import fields

Check = Callable[[str, Any], None]
"""Raises for a value that is not allowed; the first argument is the name of the option."""

Conflict = tuple[object, str]
"""A condition, and what is wrong if it holds."""


def refuse_first(conflicts: Iterable[Conflict]) -> None:
    """Raise the message of the first condition that holds.

    Raises:
        GpuConstructsError: A condition holds.
    """
    for holds, message in conflicts:
        if holds:
            raise GpuConstructsError(message)


@dataclass(frozen=True, kw_only=True)
class Options(metaclass=ShortErrors):
    """Options that are checked when they are made: types, values, then combinations.

    Attributes:
        _NAME: Name of the struct in messages.
        _CHECKS: Check of each option whose type alone does not say what is allowed; None is not checked.
    """

    _NAME: ClassVar[str] = ""
    _CHECKS: ClassVar[Mapping[str, Check]] = {}

    def __post_init__(self) -> None:
        fields.members(self, self._NAME)
        for member in dataclasses.fields(self):
            value = getattr(self, member.name)
            check = self._CHECKS.get(f"{self._NAME}.{member.name}") or self._CHECKS.get(member.name)
            if check is not None and value is not None:
                check(f"{self._NAME}.{member.name}", value)
        refuse_first(self._conflicts())

    def _conflicts(self) -> Iterable[Conflict]:
        """Return what options that are allowed one by one get wrong together."""
        return ()
