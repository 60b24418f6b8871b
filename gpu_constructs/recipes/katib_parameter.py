"""`KatibParameter`: a parameter of a Katib experiment, with its range or its list of values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import isfinite, prod
from typing import Any, ClassVar, Literal

from gpu_constructs.errors import GpuConstructsError, short_errors
from gpu_constructs.kube import fields
from gpu_constructs.records import dataclass

Number = int | float
Whole = int
ParameterType = Literal["double", "int", "discrete", "categorical"]
Distribution = Literal["uniform", "logUniform", "normal", "logNormal"]


def require_finite(field: str, value: object) -> None:
    """Raise an error if a value is not a finite number. ``field`` is the name of the value in the message.

    Raises:
        GpuConstructsError: The value is a text, is infinite, or is NaN.
    """
    if isinstance(value, str) or (isinstance(value, float) and not isfinite(value)):
        raise GpuConstructsError(f"{field} must be a finite number, got {value!r}")


@dataclass(frozen=True, kw_only=True)
class KatibParameter(fields.Options):
    """A parameter whose value a Katib experiment changes from trial to trial, such as a learning rate.

    Create an instance with ``KatibParameter.double``, ``int``, ``discrete`` or ``categorical``.

    Attributes:
        parameter_type: ``double``, ``int``, ``discrete`` (a list of numbers) or ``categorical`` (a list of words).
        min: Lowest value of a ``double`` or ``int`` parameter.
        max: Highest value of a ``double`` or ``int`` parameter.
        step: Difference between neighboring values that the algorithm ``grid`` tries. None: 1 for ``int``. For
            ``double``, there is no default.
        distribution: Distribution of random values. None: ``uniform``. Use ``logUniform`` for a range of several powers
            of ten.
        values: Values of a ``discrete`` or ``categorical`` parameter.

    Raises:
        GpuConstructsError: If ``min`` is not less than ``max``, if a value occurs twice, or if a number is not finite.

    Source:
        kubeflow/katib@v0.19.0:pkg/webhook/v1beta1/experiment/validator/validator.go
    """

    parameter_type: ParameterType
    min: Number | None = None
    max: Number | None = None
    step: Number | None = None
    distribution: Distribution | None = None
    values: Sequence[Number | str] = ()

    _NAME: ClassVar[str] = "parameter"
    _CHECKS: ClassVar[fields.Checks] = dict.fromkeys(("min", "max", "step"), require_finite)

    def _conflicts(self) -> Iterable[fields.Conflict]:
        return _conflicts_of_bounds(self) if self.is_ordered else _conflicts_of_values(self)

    @classmethod
    @short_errors
    def double(
        cls,
        *,
        min: Number,  # noqa: A002
        max: Number,  # noqa: A002
        step: Number | None = None,
        distribution: Distribution | None = None,
    ) -> KatibParameter:
        """Return a parameter that is a real number from ``min`` to ``max``, including both.

        The class ``KatibParameter`` describes the arguments.
        """
        return cls(parameter_type="double", min=min, max=max, step=step, distribution=distribution)

    @classmethod
    @short_errors
    def int(
        cls,
        *,
        min: Whole,  # noqa: A002
        max: Whole,  # noqa: A002
        step: Whole | None = None,
        distribution: Distribution | None = None,
    ) -> KatibParameter:
        """Return a parameter that is a whole number from ``min`` to ``max``, including both.

        The class ``KatibParameter`` describes the arguments.
        """
        return cls(parameter_type="int", min=min, max=max, step=step, distribution=distribution)

    @classmethod
    @short_errors
    def discrete(cls, *values: Number) -> KatibParameter:
        """Return a parameter whose value is one of the given numbers."""
        return cls(parameter_type="discrete", values=values)

    @classmethod
    @short_errors
    def categorical(cls, *values: str) -> KatibParameter:
        """Return a parameter whose value is one of the given words."""
        return cls(parameter_type="categorical", values=values)

    @property
    def is_ordered(self) -> bool:
        """Whether the parameter has a minimum and a maximum (``double`` and ``int``). Otherwise it has ``values``."""
        return self.parameter_type in ("double", "int")

    @property
    def choices(self) -> Whole | None:
        """Number of values that the algorithm ``grid`` tries for this parameter. None for ``double`` without a step."""
        if not self.is_ordered:
            return len(self.values)
        step = 1 if self.step is None and self.parameter_type == "int" else self.step
        if step is None or self.min is None or self.max is None:
            return None
        low, high, distance = (Decimal(str(number)) for number in (self.min, self.max, step))
        return int((high - low) // distance) + 1

    def to_manifest(self, name: str) -> dict[str, Any]:
        """Return the parameter as an item of ``spec.parameters`` of an Experiment, in which all numbers are text.

        Args:
            name: Name of the parameter.
        """
        space: Mapping[str, Any] = {
            "min": _text(self.min),
            "max": _text(self.max),
            "step": _text(self.step),
            "distribution": self.distribution,
            "list": [_text(value) for value in self.values] or None,
        }
        return {"name": name, "parameterType": self.parameter_type, "feasibleSpace": space}


def _conflicts_of_bounds(parameter: KatibParameter) -> Iterable[fields.Conflict]:
    low, high, step = parameter.min, parameter.max, parameter.step
    is_whole = all(isinstance(number, int) for number in (low, high, step or 1))
    yield (
        parameter.values,
        f"parameter.values must be absent for a {parameter.parameter_type} parameter. Set min and max, or use discrete",
    )
    if low is None or high is None or not low < high:
        raise GpuConstructsError(f"parameter.min must be less than parameter.max, got {low} and {high}")
    yield (
        parameter.parameter_type == "int" and not is_whole,
        "parameter.min, max and step must be ints for an int parameter. Use double for other numbers",
    )
    yield (
        step is not None and not 0 < step <= high - low,
        f"parameter.step must be above 0 and at most max - min = {high - low}, got {step}",
    )
    yield (
        (parameter.distribution or "").startswith("log") and low <= 0,
        f"parameter.min must be above 0 for distribution {parameter.distribution!r}, got {low}",
    )


def _conflicts_of_values(parameter: KatibParameter) -> Iterable[fields.Conflict]:
    bounds = (parameter.min, parameter.max, parameter.step, parameter.distribution)
    yield (
        bounds != (None, None, None, None),
        f"parameter.values must be the only member of a {parameter.parameter_type} parameter. Remove min, max, step "
        "and distribution",
    )
    if parameter.parameter_type == "discrete":
        fields.each(require_finite, "parameter.values", parameter.values)
    texts = [_text(value) for value in parameter.values]
    yield (
        not texts or "" in texts or len(set(texts)) < len(texts),
        "parameter.values must contain at least one value, and no empty or duplicate one, got "
        f"{list(parameter.values)!r}",
    )


def combinations(parameters: Mapping[str, KatibParameter]) -> int | None:
    """Return the number of combinations of values that the algorithm ``grid`` tries for all parameters.

    Return None if a parameter of the type ``double`` has no step.

    Args:
        parameters: Parameters of the experiment by name.
    """
    choices = [parameter.choices for parameter in parameters.values()]
    return None if None in choices else prod(one for one in choices if one is not None)


def _text(value: Number | str | None) -> str | None:
    return None if value is None else str(value)
