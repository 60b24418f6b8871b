"""How a construct of ours is called: arguments checked first, errors short and with the construct's path."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from functools import cache, wraps
from typing import Any, TypeVar, get_args, get_type_hints, is_typeddict

import cdk8s
import jsii
from constructs import Construct

from gpu_constructs.errors import GpuConstructsError, ShortErrors, refuse_other_arguments, warnings_kept_in
from gpu_constructs.kube import fields
from gpu_constructs.tree.held_apps import hold

_ATTRIBUTES = re.compile(r"Attributes:\n(.*)", re.DOTALL)
_SECTION_AFTER_ARGUMENTS = re.compile(r"\n *(?=\n *(?:Raises|Returns|Source):)|(?=\s*\Z)")


@cache
def option_types(function: Callable[..., Any]) -> type | None:
    """Return the TypedDict of the options that a function takes by ``**options``, or None without one."""
    parameters = inspect.signature(function).parameters.values()
    name = next((one.name for one in parameters if one.kind is one.VAR_KEYWORD), None)
    return get_args(fields.hint(function, name))[0] if name else None


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function, in which each option is a keyword of its own.

    The default of an option is ``...``: what it is depends on the construct, and its documentation says it.
    """
    signature, options = inspect.signature(function), option_types(function)
    if options is None:
        return signature
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=...,
            annotation=getattr(annotation, "__forward_arg__", annotation),
        )
        for name, annotation in options.__annotations__.items()
    ]
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    return signature.replace(parameters=[*own, *added])


def documentation_of(function: Callable[..., Any]) -> str | None:
    """Return the docstring of a function, with the options that it takes among its arguments."""
    options = option_types(function)
    if options is None or function.__doc__ is None:
        return function.__doc__
    described = "\n".join(_descriptions(one) for one in reversed(_bases(options)))
    return _SECTION_AFTER_ARGUMENTS.sub(lambda _: f"\n{described}\n", function.__doc__, count=1)


def _check_keywords(function: Callable[..., Any], given: Mapping[str, object]) -> None:
    """Check the type of each keyword that a function is called with."""
    fields.arguments(function, given)
    for name, value in given.items():
        if name not in function.__annotations__:
            fields.of_type(name, value, _hints(option_types(function))[name])


@cache
def _hints(options: Any) -> dict[str, Any]:
    return get_type_hints(options)


def _bases(options: type) -> list[type]:
    """Return a TypedDict and those that it extends, which its module imports or defines."""
    keys = options.__annotations__.keys()
    others = [one for one in vars(sys.modules[options.__module__]).values() if is_typeddict(one) and one is not options]
    bases = [one for one in others if one.__annotations__.keys() < keys]
    return list(dict.fromkeys([options, *(further for base in bases for further in _bases(base))]))


def _descriptions(options: type) -> str:
    """Return the lines that document the keys of one TypedDict, indented as arguments of a method."""
    found = _ATTRIBUTES.search(inspect.cleandoc(options.__doc__ or ""))
    return "\n".join(f"        {line}".rstrip() for line in (found[1] if found else "").rstrip().splitlines())


_Init = TypeVar("_Init", bound=Callable[..., None])


class _ShortErrors(ShortErrors, jsii.JSIIMeta):
    """Keeps the frames of jsii out of a refused construct's traceback too."""


def checked(init: _Init) -> _Init:
    """Check the keywords of a construct's ``__init__`` before anything reaches the construct tree.

    Errors raised inside get the path of the construct that is being made.
    """
    signature = signature_of(init)

    @wraps(init)
    def wrapper(self: Construct, scope: Construct, id: str, *positional: object, **given: object) -> None:
        try:
            _check_place(self, scope, id)
            refuse_other_arguments(type(self).__name__, signature, (self, scope, id, *positional), given)
            _check_keywords(init, given)
            with warnings_kept_in(hold(scope, self)):
                init(self, scope, id, **given)
        except GpuConstructsError as error:
            raise error.at(_path(scope, id)) from None
        except RuntimeError as error:
            if "There is already a Construct with name" not in str(error):
                raise
            raise GpuConstructsError(
                "id is already taken; give this construct another", path=_path(scope, id)
            ) from None

    wrapper.__signature__ = signature  # type: ignore[attr-defined]
    wrapper.__doc__ = documentation_of(init)
    return wrapper  # type: ignore[return-value]


def _check_place(made: Construct, scope: object, id: object) -> None:
    if not isinstance(scope, Construct):
        raise GpuConstructsError(f"scope must be a construct; got {type(scope).__name__}")
    if not isinstance(id, str) or not id or not id.isprintable():
        raise GpuConstructsError(f"id must be a printable str that is not empty; got {id!r}")
    if isinstance(scope, cdk8s.App) and isinstance(made, GpuObject):
        raise GpuConstructsError("scope must be a Chart or a construct in one, got an App")


_Method = TypeVar("_Method", bound=Callable[..., object])


def at_own_path(method: _Method) -> _Method:
    """Check the arguments of a construct's method; errors get the construct's path and no frames of ours."""
    signature = inspect.signature(method)

    @wraps(method)
    def wrapper(self: Construct, *given: object, **named: object) -> object:
        try:
            bound = refuse_other_arguments(method.__qualname__, signature, (self, *given), named)
            fields.arguments(method, {k: v for k, v in bound.arguments.items() if k != "self"})
            return method(self, *given, **named)
        except GpuConstructsError as error:
            problem = error.at(self.node.path)
        raise problem.with_traceback(None) from None

    return wrapper  # type: ignore[return-value]


def _path(scope: object, id: object) -> str:
    """Return the path of a construct that raised an error. Only errors need it: reading it crosses the jsii bridge."""
    is_named = isinstance(id, str) and id and id.isprintable()
    return f"{scope.node.path}/{id}".lstrip("/") if isinstance(scope, Construct) and is_named else ""


class GpuConstruct(Construct, metaclass=_ShortErrors):
    """A construct of this library that emits no object of its own."""


class GpuObject(GpuConstruct):
    """A construct of this library inside a chart.

    Attributes:
        api_object: The main object it emits, for ``add_json_patch``; ``cdk8s.ApiObject.of(x)`` gives the same.
    """

    @property
    def api_object(self) -> cdk8s.ApiObject:
        """The main object this construct emits: the place for ``add_json_patch``."""
        return cdk8s.ApiObject.of(self)


class GpuChart(cdk8s.Chart, metaclass=_ShortErrors):
    """A chart of this library: one file in dist/.

    Attributes:
        api_object: The main object it emits, for ``add_json_patch``; ``cdk8s.ApiObject.of(x)`` gives the same.
    """

    @property
    def api_object(self) -> cdk8s.ApiObject:
        """The main object this chart emits: the place for ``add_json_patch``."""
        return cdk8s.ApiObject.of(self)


_Made = TypeVar("_Made")


def from_values(
    make: Callable[..., _Made],
    options_of: Callable[..., Mapping[str, Any]],
    scope: Construct,
    id: str,
    values: Mapping[str, Any],
    *,
    version: object,
    platform: object,
    **installation: object,
) -> _Made:
    """Return a construct with the options that values become; what is refused names the construct.

    Args:
        make: The construct's class.
        options_of: What turns values into keywords of the class.
        scope: Parent of the construct.
        id: Id of the construct.
        values: Values of the chart.
        version: Release of the program.
        platform: Platform of the cluster.
        installation: What Helm knows besides, for ``options_of``.
    """
    path = f"{scope.node.path}/{id}".lstrip("/") if isinstance(scope, Construct) else ""
    try:
        options = options_of(values, version=version, platform=platform, **installation)
    except GpuConstructsError as error:
        raise error.at(path) from None
    return make(scope, id, version=version, platform=platform, **options)
