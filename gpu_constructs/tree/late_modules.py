"""Changes to jsii that make its import faster: Python imports some modules of jsii only at their first use."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any, Union

_MODULES = ("cattr", "dateutil.parser")
_MOCK = "unittest.mock"


def import_late() -> None:
    """Put placeholders in place of modules that jsii imports. A placeholder imports its module at its first use."""
    for name in _MODULES:
        if name not in sys.modules:
            late = sys.modules[name] = _LateModule(name)
            parent, _, child = name.rpartition(".")
            if parent:
                setattr(import_module(parent), child, late)


class _LateModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


class _MockType(type):
    def __instancecheck__(cls, value: object) -> bool:
        return _MOCK in sys.modules and isinstance(value, sys.modules[_MOCK].Mock)


def import_typeguard_alone() -> None:
    """Import typeguard, but not the module ``unittest.mock``, which imports a hundred other modules.

    typeguard needs ``unittest.mock`` only to check whether a value is a ``Mock``. No value is a ``Mock`` until another
    module imports ``unittest.mock``.
    """
    if "typeguard" in sys.modules or _MOCK in sys.modules:
        return
    stand_in: Any = ModuleType(_MOCK)
    stand_in.Mock = _MockType("Mock", (), {})
    sys.modules[_MOCK] = stand_in
    try:
        import_module("typeguard")
    finally:
        del sys.modules[_MOCK]


def check_plain_types_first() -> None:
    """Make jsii check the types of most arguments without typeguard, which is slow.

    jsii still uses typeguard for arguments that need more than a comparison of classes, such as lists.
    """
    from jsii import JSIIMeta, _type_checking

    typeguard: Any = import_module("typeguard")

    def check(argname: str, value: object, expected_type: Any) -> None:
        got, allowed = type(value), getattr(expected_type, "__args__", ())
        is_union = getattr(expected_type, "__origin__", None) is Union
        if got is not expected_type and not (is_union and got in allowed):
            is_construct = type(expected_type) is JSIIMeta and isinstance(value, expected_type)
            if not is_construct:
                typeguard.check_type(argname=argname, value=value, expected_type=expected_type)

    _type_checking._resolved_check = check
