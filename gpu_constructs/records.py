"""The decorator ``dataclass``, which generates the methods of a class when the program first needs them.

The decorator of the standard library generates and compiles them at the import. For all classes of this library, this
takes about a fifth of the import time. A program uses only a part of the classes.
"""

from __future__ import annotations

import dataclasses
from dataclasses import field as field
from dataclasses import fields as fields
from dataclasses import replace as replace
from typing import TYPE_CHECKING, Any

_LATE = ("__init__", "__dataclass_fields__", "__dataclass_params__", "__setstate__")
"""Members that a program reads before it uses any generated member. ``pickle`` reads ``__setstate__``."""

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """Decorate a class like ``dataclasses.dataclass``, with the same options.

        The class generates its methods at first use.
        """
        if cls is None:
            return lambda decorated: dataclass(decorated, **options)
        if options.get("slots"):
            return dataclasses.dataclass(cls, **options)
        for name in _LATE:
            setattr(cls, name, _Late(cls, name, options))
        return cls


class _Late:
    """A placeholder for a generated method of a dataclass.

    The first access to it replaces all placeholders of the class by real methods.
    """

    def __init__(self, cls: type, name: str, options: dict[str, Any]) -> None:
        self._class, self._name, self._options = cls, name, options

    def __get__(self, instance: object, owner: type) -> Any:
        if self._class.__dict__[self._name] is self:
            for name in _LATE:
                delattr(self._class, name)
            dataclasses.dataclass(**self._options)(self._class)
        if self._name not in self._class.__dict__:
            raise AttributeError(self._name)
        made = self._class.__dict__[self._name]
        return made.__get__(instance, owner) if hasattr(made, "__get__") else made
