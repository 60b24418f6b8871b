"""A decorator ``dataclass`` and a function ``regex`` that postpone compilation until the first use.

With the standard library, the import of a module compiles its regular expressions and the methods of its dataclasses.
For this library, that would take more than a fourth of the import time, although most apps use only a few classes.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field as field
from dataclasses import fields as fields
from dataclasses import replace as replace
from functools import cache
from typing import TYPE_CHECKING, Any

_LATE = ("__init__", "__dataclass_fields__", "__dataclass_params__", "__setstate__")
"""Members of a dataclass that Python code reads before any other generated member. ``pickle`` reads ``__setstate__``.
"""

_RARE = ("__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__")
"""Methods of a dataclass whose compilation waits for their first call, because most classes do not need the methods."""

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from re import compile as _compile

    regex = _compile
else:

    class regex:
        """A replacement for ``re.compile`` that compiles the regular expression at its first use."""

        def __init__(self, pattern: str, flags: int = 0) -> None:
            self.pattern, self._flags = pattern, flags

        def __getattr__(self, name: str) -> Any:
            made = getattr(re.compile(self.pattern, self._flags), name)
            setattr(self, name, made)
            return made

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """Decorate a class like ``dataclasses.dataclass``, with the same options.

        Python generates the methods of the class only at the first use of the class.
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

    The first access to one of the placeholders replaces all placeholders of the class with real methods.
    """

    def __init__(self, cls: type, name: str, options: dict[str, Any]) -> None:
        self._class, self._name, self._options = cls, name, options

    def __get__(self, instance: object, owner: type) -> Any:
        if self._class.__dict__[self._name] is self:
            for name in _LATE:
                delattr(self._class, name)
            with _rare_methods_late():
                dataclasses.dataclass(**self._options)(self._class)
        if self._name not in self._class.__dict__:
            raise AttributeError(self._name)
        made = self._class.__dict__[self._name]
        return made.__get__(instance, owner) if hasattr(made, "__get__") else made


@contextmanager
def _rare_methods_late() -> Iterator[None]:
    """Postpone the compilation of rarely used methods of the dataclasses that the ``with`` block creates.

    The first call of such a method, for example ``__repr__``, compiles the method. ``_RARE`` lists the methods. In
    Python 3.13 and later, this function has no effect, because the standard library compiles all methods of a dataclass
    together.
    """
    library: Any = dataclasses
    create = getattr(library, "_create_fn", None)
    if create is None:
        yield
        return
    library._create_fn = lambda name, *given, **more: (
        _late_method(name, lambda: create(name, *given, **more)) if name in _RARE else create(name, *given, **more)
    )
    try:
        yield
    finally:
        library._create_fn = create


def _late_method(name: str, create: Callable[[], Any]) -> Callable[..., Any]:
    create = cache(create)

    def method(self: object, *given: object) -> object:
        made = create()
        for owner in type(self).__mro__:
            if owner.__dict__.get(name) is method:
                made.__qualname__ = method.__qualname__
                setattr(owner, name, made)
        return made(self, *given)

    method.__name__ = name
    return method
