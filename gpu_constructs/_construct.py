"""How a construct of ours is called: arguments checked first, errors short and with the construct's path."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import cdk8s
import jsii
from constructs import Construct

from gpu_constructs import _fields
from gpu_constructs.errors import (
    GpuConstructsError,
    ShortErrors,
    refuse_endless,
    refuse_other_arguments,
    warnings_kept_in,
)
from gpu_constructs.held_apps import hold

_Init = TypeVar("_Init", bound=Callable[..., None])


class _ShortErrors(ShortErrors, jsii.JSIIMeta):
    """Keeps the frames of jsii out of a refused construct's traceback too."""


def checked(init: _Init) -> _Init:
    """Check the keywords of a construct's ``__init__`` before anything reaches the construct tree.

    Errors raised inside get the path of the construct that is being made.
    """
    signature = inspect.signature(init)
    keywords = [name for name, parameter in signature.parameters.items() if parameter.kind is parameter.KEYWORD_ONLY]

    @wraps(init)
    def wrapper(self: Construct, scope: Construct, id: str, *positional: object, **given: object) -> None:
        try:
            if not isinstance(scope, Construct):
                raise GpuConstructsError(f"scope must be a construct; got {type(scope).__name__}")
            if not isinstance(id, str) or not id:
                raise GpuConstructsError(f"id must be a non-empty str; got {id!r}")
            if not id.isprintable():
                raise GpuConstructsError(f"id must be a printable str; got {id!r}")
            if isinstance(scope, cdk8s.App) and isinstance(self, GpuObject):
                raise GpuConstructsError("scope must be a Chart or a construct in one, got an App")
            if positional:
                raise GpuConstructsError(
                    f"everything after scope and id must be given by keyword; got {positional[0]!r} without one"
                )
            refuse_endless(given)
            for name in given:
                if name not in keywords:
                    raise GpuConstructsError(
                        f"{name} is no keyword of {type(self).__name__}{_fields.did_you_mean(name, keywords)}"
                    )
            for name in keywords:
                if signature.parameters[name].default is inspect.Parameter.empty and name not in given:
                    raise GpuConstructsError(f"{name} is required")
            _fields.arguments(init, given)
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

    return wrapper  # type: ignore[return-value]


_Method = TypeVar("_Method", bound=Callable[..., object])


def at_own_path(method: _Method) -> _Method:
    """Check the arguments of a construct's method; errors get the construct's path and no frames of ours."""

    @wraps(method)
    def wrapper(self: Construct, *given: object, **named: object) -> object:
        try:
            signature = inspect.signature(method)
            refuse_other_arguments(method, signature, (self, *given), named)
            bound = signature.bind(self, *given, **named)
            _fields.arguments(method, {k: v for k, v in bound.arguments.items() if k != "self"})
            return method(self, *given, **named)
        except GpuConstructsError as error:
            problem = error.at(self.node.path)
        raise problem.with_traceback(None) from None

    return wrapper  # type: ignore[return-value]


def _path(scope: object, id: object) -> str:
    """Give the path of a construct that could not be made; asked for only then, since the tree is across a bridge."""
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
