"""Base classes of constructs, and decorators that check arguments and add the construct's path to errors."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from functools import cache, wraps
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    Self,
    TypeVar,
    get_args,
    get_type_hints,
    is_typeddict,
)

import cdk8s
import jsii
from constructs import Construct

from gpu_constructs.errors import (
    GpuConstructsError,
    ShortErrors,
    refuse_other_arguments,
    short_errors,
    warnings_kept_in,
)
from gpu_constructs.kube import fields
from gpu_constructs.migration.problems import ValuesFile
from gpu_constructs.tree.held_apps import hold

_ATTRIBUTES = fields.regex(r"Attributes:\n(.*)", re.DOTALL)
_SECTION_AFTER_ARGUMENTS = fields.regex(r"\n *(?=\n *(?:Raises|Returns|Source):)|(?=\s*\Z)")


@cache
def option_types(function: Callable[..., Any]) -> type | None:
    """Return the TypedDict that describes the ``**options`` of a function.

    Return None if the function has no ``**options``.
    """
    parameters = inspect.signature(function).parameters.values()
    name = next((one.name for one in parameters if one.kind is one.VAR_KEYWORD), None)
    return get_args(fields.hint(function, name))[0] if name else None


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function, with each key of its ``**options`` as a separate keyword.

    The default of such a keyword is ``...``, because the real default depends on the construct. The docstring of the
    construct states the real default.
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
    """Return the docstring of a function. Its section ``Args`` also describes the keys of ``**options``."""
    options = option_types(function)
    if options is None or function.__doc__ is None:
        return function.__doc__
    described = "\n".join(_descriptions(one) for one in reversed(_bases(options)))
    return _SECTION_AFTER_ARGUMENTS.sub(lambda _: f"\n{described}\n", function.__doc__, count=1)


def _check_keywords(function: Callable[..., Any], given: Mapping[str, object]) -> None:
    """Raise unless each keyword argument of a call has the type that the function declares for it."""
    fields.arguments(function, given)
    for name, value in given.items():
        if name not in function.__annotations__:
            fields.of_type(name, value, _hints(option_types(function))[name])


@cache
def _hints(options: Any) -> dict[str, Any]:
    return get_type_hints(options)


def _bases(options: type) -> list[type]:
    """Return a list of a TypedDict and all TypedDicts that it extends.

    Python does not record the TypedDicts that a TypedDict extends. So the function takes those TypedDicts of the same
    module whose keys are a subset of the keys of ``options``.
    """
    keys = options.__annotations__.keys()
    others = [one for one in vars(sys.modules[options.__module__]).values() if is_typeddict(one) and one is not options]
    bases = [one for one in others if one.__annotations__.keys() < keys]
    return list(dict.fromkeys([options, *(further for base in bases for further in _bases(base))]))


def _descriptions(options: type) -> str:
    """Return docstring lines for the keys of one TypedDict, with the indentation of the section ``Args``."""
    found = _ATTRIBUTES.search(inspect.cleandoc(options.__doc__ or ""))
    return "\n".join(f"        {line}".rstrip() for line in (found[1] if found else "").rstrip().splitlines())


_Init = TypeVar("_Init", bound=Callable[..., None])


class _ShortErrors(ShortErrors, jsii.JSIIMeta):
    """A metaclass that shortens tracebacks of errors in constructs: it removes most frames of this library and jsii."""


def checked(init: _Init) -> _Init:
    """Decorate the ``__init__`` of a construct, so that it checks the types of its keyword arguments before it runs.

    If a keyword is invalid, the construct tree does not change. Each error message begins with the path of the new
    construct.
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
                "id must be unique, but another construct has it. Choose another ID", path=_path(scope, id)
            ) from None

    wrapper.__signature__ = signature  # type: ignore[attr-defined]
    wrapper.__doc__ = documentation_of(init)
    return wrapper  # type: ignore[return-value]


def _check_place(made: Construct, scope: object, id: object) -> None:
    if not isinstance(scope, Construct):
        raise GpuConstructsError(f"scope must be a construct, got {type(scope).__name__}")
    if not isinstance(id, str) or not id or not id.isprintable():
        raise GpuConstructsError(f"id must be a printable str that is not empty, got {id!r}")
    if isinstance(scope, cdk8s.App) and isinstance(made, GpuObject):
        raise GpuConstructsError("scope must be a Chart or a construct in a Chart, got an App")


_Method = TypeVar("_Method", bound=Callable[..., object])


def at_own_path(method: _Method) -> _Method:
    """Decorate a method of a construct so that it checks the types of its arguments.

    Each error has a short traceback, and its message begins with the path of the construct.
    """
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
    """Return the path of a construct for an error message.

    The function is slow, because it calls JavaScript. So only errors use it.
    """
    is_named = isinstance(id, str) and id and id.isprintable()
    return f"{scope.node.path}/{id}".lstrip("/") if isinstance(scope, Construct) and is_named else ""


class GpuConstruct(Construct, metaclass=_ShortErrors):
    """Base class of all constructs of this library, except charts."""


class GpuObject(GpuConstruct):
    """Base class of the constructs that emit Kubernetes objects into a chart.

    Attributes:
        api_object: Main object that the construct emits. Use it, for example, to call ``add_json_patch``.
            ``cdk8s.ApiObject.of(construct)`` returns the same object.
    """

    @property
    def api_object(self) -> cdk8s.ApiObject:
        """Main object that this construct emits. Use it, for example, to call ``add_json_patch``."""
        return cdk8s.ApiObject.of(self)


class GpuChart(cdk8s.Chart, metaclass=_ShortErrors):
    """Base class of the cdk8s charts of this library.

    Attributes:
        api_object: Main object that the chart emits. Use it, for example, to call ``add_json_patch``.
            ``cdk8s.ApiObject.of(chart)`` returns the same object.
    """

    @property
    def api_object(self) -> cdk8s.ApiObject:
        """Main object that this chart emits. Use it, for example, to call ``add_json_patch``."""
        return cdk8s.ApiObject.of(self)


class ReadsHelmValues:
    """A construct that users can create from the values of a Helm chart."""

    from_helm_values: ClassVar[Callable[..., Any]]

    @classmethod
    @short_errors
    def from_helm_values_file(cls, scope: Construct, id: str, path: str | Path, **installation: Any) -> Self:
        """Create the construct from a values file.

        An error or warning about a key contains the number of its line in the file.

        Args:
            scope: Parent of the construct.
            id: ID of the construct.
            path: Path of the values file. The file can be empty.
            installation: Other keywords of ``from_helm_values``, such as ``version``.

        Raises:
            GpuConstructsError: The file does not exist or is not YAML, or ``from_helm_values`` rejects a value.
        """
        made: Self = cls.from_helm_values(scope, id, ValuesFile.read(path), **installation)
        return made


_Made = TypeVar("_Made")


def from_values(
    make: Callable[..., _Made],
    options_of: Callable[..., Mapping[str, Any]],
    scope: Construct,
    id: str,
    values: Mapping[str, Any],
    *,
    version: object,
    **installation: object,
) -> _Made:
    """Create a construct from the values of a Helm chart. Error messages begin with the path of the construct.

    Args:
        make: Class of the construct.
        options_of: Function that converts Helm values to keywords of the class.
        scope: Parent of the construct.
        id: ID of the construct.
        values: Values of the Helm chart.
        version: Release of the software that the construct installs, such as the NVIDIA device plugin.
        installation: Other arguments for ``options_of``, such as the name of the Helm release. If ``platform`` is among
            them, ``make`` also gets ``platform``.
    """
    path = f"{scope.node.path}/{id}".lstrip("/") if isinstance(scope, Construct) else ""
    # Helm also accepts a version with a leading v.
    version = version.removeprefix("v") if isinstance(version, str) else version
    try:
        options = options_of(values, version=version, **installation)
    except GpuConstructsError as error:
        raise error.at(path) from None
    platform = {key: value for key, value in installation.items() if key == "platform"}
    return make(scope, id, version=version, **platform, **options)
