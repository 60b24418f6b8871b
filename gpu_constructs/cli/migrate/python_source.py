"""A writer of Python source for values. It omits arguments with a default value, and uses factory methods."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from importlib import import_module
from typing import Any

from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.catalog.sharing import GPU, Sharing
from gpu_constructs.catalog.versions import Unverified
from gpu_constructs.device_plugin.configs import Configs
from gpu_constructs.kube.env import EnvValue
from gpu_constructs.records import dataclass, replace

WIDTH = 100
_PLAIN_LINES = re.compile(r"(?:[^\x00-\x1f\\]*\n)+(?:[^\x00-\x1f\\]*[^\x00-\x1f\\\"])?")
_ONE_DEFAULT = {"fail_requests_greater_than_one": True, "rename_by_default": False}
_NFD = "gpu_constructs.feature_discovery.node_feature_discovery"


@dataclass(frozen=True)
class Call:
    """A call, a list, a tuple or a mapping in Python source.

    Attributes:
        opening: Text before the members, which ends with the opening bracket, such as ``Sharing.mps(``.
        members: Pairs: the text before a member, such as ``replicas=``, and the member as source text or as a ``Call``.
        closing: Closing bracket.
    """

    opening: str
    members: Sequence[tuple[str, str | Call]]
    closing: str

    def __str__(self) -> str:
        return f"{self.opening}{', '.join(f'{prefix}{member}' for prefix, member in self.members)}{self.closing}"

    def after(self, *first: str) -> Call:
        """Return a copy of the call with more positional arguments before its members.

        Args:
            first: Source text of each positional argument.
        """
        return replace(self, members=[*(("", one) for one in first), *self.members])

    def laid_out(self, indent: int = 0, taken: int = 0) -> str:
        """Return the source: one line if it has at most ``WIDTH`` characters; otherwise, one line for each member.

        Args:
            indent: Number of spaces at the start of the line.
            taken: Number of further characters on this line, such as those of ``sharing=`` and a comma.
        """
        line = str(self)
        if "\n" not in line and indent + taken + len(line) <= WIDTH:
            return line
        inner = " " * (indent + 4)
        lines = [
            f"{inner}{prefix}{member.laid_out(indent + 4, len(prefix) + 1) if isinstance(member, Call) else member},"
            for prefix, member in self.members
        ]
        return "\n".join([self.opening, *lines, f"{' ' * indent}{self.closing}"])


class Writer:
    """A writer of Python source that collects the necessary imports.

    Attributes:
        imports: Names to import, by the module that exports them.
    """

    def __init__(self) -> None:
        self.imports: dict[str, set[str]] = {}

    def name(self, cls: type) -> str:
        """Return the name of a class of this library, and add it to ``imports``."""
        module = "gpu_constructs" if cls.__name__ in import_module("gpu_constructs").__all__ else cls.__module__
        if cls.__name__.startswith("Nfd"):
            module = _NFD
        self.imports.setdefault(module, set()).add(cls.__name__)
        return cls.__name__

    def source(self, value: Any) -> str | Call:
        """Return a Python expression that evaluates to a value. Add the classes in the expression to ``imports``.

        The result is a ``Call`` for a list, a mapping or a dataclass, and source text for a plain value.
        """
        for kind, write in _WRITERS:
            if isinstance(value, kind):
                return write(self, value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self.call(self.name(type(value)), changed(value))
        return _text(value) if isinstance(value, str) else repr(value)

    def call(self, function: str, keywords: Mapping[str, Any], *, first: Sequence[Any] = ()) -> Call:
        """Return the source of a function call.

        Args:
            function: Name of the function.
            keywords: Values of the keyword arguments, by name.
            first: Values of the positional arguments; none by default.
        """
        members = [("", self.source(one)) for one in first]
        return Call(f"{function}(", [*members, *((f"{key}=", self.source(one)) for key, one in keywords.items())], ")")

    def program(self, docstring: str, body: Iterable[str]) -> str:
        """Return the text of a Python module: its docstring, the import statements for ``imports``, and its body.

        Args:
            docstring: Text of the docstring of the module.
            body: Statements and comments after the imports, as source text.
        """
        lines = [
            Call(f"from {module} import (", [("", name) for name in sorted(names)], ")")
            for module, names in sorted(self.imports.items())
        ]
        imports = [str(one).replace("(", "").replace(")", "") for one in lines]
        wide = [
            one.laid_out(taken=WIDTH) if len(text) > WIDTH else text for one, text in zip(lines, imports, strict=True)
        ]
        return "\n".join([f'"""{docstring}"""', "", *wide, "", *body]) + "\n"


def changed(value: Any) -> dict[str, Any]:
    """Return the attributes of a dataclass instance that differ from their defaults, by name."""
    return {
        field.name: getattr(value, field.name) for field in dataclasses.fields(value) if not _is_default(field, value)
    }


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    made = field.default_factory
    default = field.default if made is dataclasses.MISSING else made()
    return bool(getattr(value, field.name) == default)


def _text(value: str) -> str:
    """Return a Python string literal in double quotes. For a text with several lines, use triple quotes if possible."""
    if "\n" in value and _PLAIN_LINES.fullmatch(value) and '"""' not in value:
        return f'"""\\\n{value}"""'
    return json.dumps(value, ensure_ascii=False)


def _sharing(writer: Writer, value: Sharing) -> Call:
    function = f"{writer.name(Sharing)}.{value.strategy.replace('-', '_')}"
    if value.strategy == "none":
        return writer.call(function, {})
    slots = {"replicas": value.resources[GPU]} if set(value.resources) == {GPU} else {"resources": value.resources}
    flags = {key: getattr(value, key) for key, default in _ONE_DEFAULT.items() if getattr(value, key) != default}
    return writer.call(function, {**slots, **flags})


_FACTORIES = {"daemonsets": "named", "config-manager": "managed", "external": "external"}


def _configs(writer: Writer, value: Configs) -> Call:
    members = changed(value)
    function = f"{writer.name(Configs)}.{_FACTORIES[members.pop('delivery')]}"
    first = members.pop("config_map") if "config_map" in members else members.pop("configs")
    return writer.call(function, members, first=[first])


def _env_value(writer: Writer, value: EnvValue) -> Call:
    ((source, given),) = value.value_from.items()
    name = writer.name(EnvValue)
    if source == "fieldRef":
        return writer.call(f"{name}.field", {}, first=[given["fieldPath"]])
    function = "secret" if source == "secretKeyRef" else "config_map"
    return writer.call(f"{name}.{function}", {"key": given["key"]}, first=[given["name"]])


def _platform(writer: Writer, value: Platform) -> Call:
    version = changed(value).get("version")
    return writer.call(writer.name(type(value)), {}, first=[version] if version else [])


def _mapping(writer: Writer, value: Mapping[Any, Any]) -> Call:
    return Call("{", [(f"{writer.source(key)}: ", writer.source(one)) for key, one in value.items()], "}")


def _list(writer: Writer, value: Sequence[Any]) -> Call:
    return Call("[", [("", writer.source(one)) for one in value], "]")


def _duration(writer: Writer, value: timedelta) -> str:
    writer.imports.setdefault("datetime", set()).add("timedelta")
    return f"timedelta(seconds={value.total_seconds():g})"


_WRITERS: Sequence[tuple[Any, Callable[[Writer, Any], str | Call]]] = (
    (Sharing, _sharing),
    (Configs, _configs),
    (EnvValue, _env_value),
    (Platform, _platform),
    (Unverified, lambda writer, value: writer.call(writer.name(Unverified), changed(value))),
    (Mapping, _mapping),
    (list, _list),
    (tuple, _list),
    (timedelta, _duration),
)
"""Pairs: a type, and the function that returns the source of its values. ``Writer`` uses the first type that fits."""
