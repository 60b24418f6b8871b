"""An extension of Griffe: the reference shows keywords and defaults as a running program has them.

The source of a constructor takes the options of pods as ``**pods: Unpack[AgentOptions]``, and names many defaults by
constants. The reference lists each option as a keyword, and shows values instead of constants.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import griffe

import gpu_constructs

_STANDARD = "dataclasses.dataclass"


class Keywords(griffe.Extension):
    """Completes the signatures and the docstrings of public classes and functions."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Read the docstrings of cdk8s in the form that they have."""
        if obj.docstring is not None and obj.package.path == "cdk8s":
            obj.docstring.parser, obj.docstring.parser_options = "sphinx", {"warnings": False}

    def on_package(self, *, pkg: griffe.Module, **_: object) -> None:
        """Complete all public names of the package."""
        _use_dataclasses(pkg)
        names = gpu_constructs.__all__ if pkg.path == "gpu_constructs" else ()
        found: dict[str, tuple[griffe.Object | griffe.Alias, Any]] = {}
        for name in names:
            made = getattr(gpu_constructs, name)
            if not made.__module__.startswith("gpu_constructs"):
                continue
            shown = pkg[f"{made.__module__}.{made.__qualname__}".removeprefix("gpu_constructs.")]
            if shown.is_function:
                found[shown.canonical_path] = (shown, made)
                continue
            for member, function in shown.all_members.items():
                is_shown = function.is_function and (member == "__init__" or not member.startswith("_"))
                if is_shown and function.canonical_path.startswith("gpu_constructs."):
                    # Several public classes can inherit one function, such as ``Jellyfin`` and ``Plex``.
                    found[function.canonical_path] = (function, getattr(made, member))
        for shown, made in found.values():
            _complete(shown.final_target if shown.is_alias else shown, made)


def _use_dataclasses(module: griffe.Module) -> None:
    """Treat the late ``dataclass`` of this library like that of the standard library."""
    for name in ("dataclass", "field"):
        if isinstance(imported := module.members.get(name), griffe.Alias):
            imported.target_path = f"dataclasses.{name}"
    for one in module.classes.values():
        if not one.is_alias and any(getattr(each.value, "canonical_path", "") == _STANDARD for each in one.decorators):
            one.labels.add("dataclass")
    for inner in module.modules.values():
        if isinstance(inner, griffe.Module):
            _use_dataclasses(inner)


def _complete(shown: griffe.Function, function: Any) -> None:
    """Add the options of a function to its parameters, and show the values of its defaults."""
    runtime = inspect.signature(function).parameters
    for parameter in shown.parameters:
        if parameter.default is not None and parameter.name in runtime:
            parameter.default = _default(str(parameter.default), runtime[parameter.name].default)
    options = _options(shown)
    if options:
        own, unpacked = list(shown.parameters)[:-1], list(shown.parameters)[-1]
        shown.parameters = griffe.Parameters(*own, *map(_keyword, options.values()), unpacked)
    if shown.docstring is not None and options:
        shown.docstring.value = inspect.getdoc(function) or ""


def _keyword(option: Any) -> griffe.Parameter:
    """Return the parameter of an option. Its default depends on the construct, and its description states it."""
    return griffe.Parameter(
        option.name, annotation=option.annotation, kind=griffe.ParameterKind.keyword_only, default="..."
    )


def _options(shown: griffe.Function) -> dict[str, Any]:
    """Return the keys of the TypedDict that a function unpacks."""
    unpacked = [one.annotation for one in shown.parameters if one.kind is griffe.ParameterKind.var_keyword]
    if not unpacked or not isinstance(unpacked[0], griffe.ExprSubscript):
        return {}
    package = shown.package
    struct = package[str(unpacked[0].slice.canonical_path).removeprefix(f"{package.name}.")]
    return {name: key for one in (*struct.mro(), struct) for name, key in one.attributes.items()}


def _default(source: str, value: Any) -> str:
    """Return a default as its value, or as in the source if the source is a call that a user can write."""
    is_call = source.endswith(")") and source[0].isalpha() and not source.startswith("field(")
    if value is inspect.Parameter.empty or is_call:
        return source
    return _shown(value)


def _shown(value: Any) -> str:
    """Return the expression of a value; an option struct has only those members that differ from its defaults."""
    if isinstance(value, tuple):
        inner = ", ".join(map(_shown, value))
        return f"({inner}{',' * (len(value) == 1)})"
    if not dataclasses.is_dataclass(value):
        return repr(value)
    members = [
        f"{one.name}={_shown(getattr(value, one.name))}"
        for one in dataclasses.fields(value)
        if one.init and getattr(value, one.name) != one.default
    ]
    return f"{type(value).__name__}({', '.join(members)})"
