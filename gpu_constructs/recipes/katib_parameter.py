"""What a Katib experiment varies, and within which bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite, prod
from typing import Any, Literal

from gpu_constructs.errors import GpuConstructsError, ShortErrors, short_errors
from gpu_constructs.kube import fields

Number = int | float
Whole = int
ParameterType = Literal["double", "int", "discrete", "categorical"]
Distribution = Literal["uniform", "logUniform", "normal", "logNormal"]


@dataclass(frozen=True, kw_only=True)
class KatibParameter(metaclass=ShortErrors):
    """A parameter of an experiment; made by the factories below.

    Attributes:
        parameter_type: ``double``, ``int``, ``discrete`` (numbers) or ``categorical`` (text).
        min: Lowest value, of a double or int.
        max: Highest value.
        step: Distance of the values that ``grid`` tries; for an int 1 without one.
        distribution: How values are drawn: ``uniform`` by default, ``logUniform`` for what varies over powers of ten.
        values: All values, of a discrete or categorical one.

    Raises:
        GpuConstructsError: Bounds that contain nothing, values given twice, or a number that is not finite.

    Source:
        kubeflow/katib@v0.19.0:pkg/webhook/v1beta1/experiment/validator/validator.go
    """

    parameter_type: ParameterType
    min: Number | None = None
    max: Number | None = None
    step: Number | None = None
    distribution: Distribution | None = None
    values: Sequence[Number | str] = ()

    def __post_init__(self) -> None:
        fields.members(self, "parameter")
        for name in ("min", "max", "step"):
            require_finite(f"parameter.{name}", getattr(self, name))
        if self.parameter_type in ("double", "int"):
            _check_bounds(self)
        else:
            _check_values(self)

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
        """Vary a real number between two bounds."""
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
        """Vary a whole number between two bounds, both included."""
        return cls(parameter_type="int", min=min, max=max, step=step, distribution=distribution)

    @classmethod
    @short_errors
    def discrete(cls, *values: Number) -> KatibParameter:
        """Try these numbers."""
        return cls(parameter_type="discrete", values=values)

    @classmethod
    @short_errors
    def categorical(cls, *values: str) -> KatibParameter:
        """Try these words."""
        return cls(parameter_type="categorical", values=values)

    @property
    def is_ordered(self) -> bool:
        """Whether it has bounds rather than a list."""
        return self.parameter_type in ("double", "int")

    @property
    def choices(self) -> Whole | None:
        """How many values ``grid`` can try; None where it cannot, as of a double without a step."""
        if not self.is_ordered:
            return len(self.values)
        step = 1 if self.step is None and self.parameter_type == "int" else self.step
        if step is None or self.min is None or self.max is None:
            return None
        low, high, distance = (Decimal(str(number)) for number in (self.min, self.max, step))
        return int((high - low) // distance) + 1

    def to_manifest(self, name: str) -> dict[str, Any]:
        """Return the parameter as Katib writes it: all numbers are text."""
        space: Mapping[str, Any] = {
            "min": _text(self.min),
            "max": _text(self.max),
            "step": _text(self.step),
            "distribution": self.distribution,
            "list": [_text(value) for value in self.values] or None,
        }
        return {"name": name, "parameterType": self.parameter_type, "feasibleSpace": space}


def _check_bounds(parameter: KatibParameter) -> None:
    if parameter.values:
        raise GpuConstructsError(
            f"parameter.values must be left out for a {parameter.parameter_type} one; give min and max, or use discrete"
        )
    low, high, step = parameter.min, parameter.max, parameter.step
    if low is None or high is None or not low < high:
        raise GpuConstructsError(f"parameter.min must be less than parameter.max; got {low} and {high}")
    if parameter.parameter_type == "int" and not all(isinstance(n, int) for n in (low, high, step or 1)):
        raise GpuConstructsError("parameter.min, max and step must be an int for an int one; use double for others")
    if step is not None and not 0 < step <= high - low:
        raise GpuConstructsError(f"parameter.step must be above 0 and at most max - min = {high - low}; got {step}")
    if (parameter.distribution or "").startswith("log") and low <= 0:
        raise GpuConstructsError(
            f"parameter.min must be above 0 for distribution {parameter.distribution!r}; got {low}"
        )


def _check_values(parameter: KatibParameter) -> None:
    if any(one is not None for one in (parameter.min, parameter.max, parameter.step, parameter.distribution)):
        raise GpuConstructsError(
            f"parameter.values must stand alone for a {parameter.parameter_type} one, without min, max, step and "
            "distribution"
        )
    if parameter.parameter_type == "discrete":
        for index, value in enumerate(parameter.values):
            require_finite(f"parameter.values[{index}]", value)
    texts = [_text(value) for value in parameter.values]
    if not texts or "" in texts or len(set(texts)) < len(texts):
        raise GpuConstructsError(
            f"parameter.values must hold at least one value, and none empty or twice; got {list(parameter.values)!r}"
        )


def combinations(parameters: Mapping[str, KatibParameter]) -> int | None:
    """Return how many trials ``grid`` can make of all parameters; None where one of them has no step."""
    choices = [parameter.choices for parameter in parameters.values()]
    return None if None in choices else prod(one for one in choices if one is not None)


def require_finite(field: str, value: object) -> None:
    """Raise unless a value is a finite number, which Katib can compute with.

    Raises:
        GpuConstructsError: It is one of these.
    """
    if isinstance(value, str) or (isinstance(value, float) and not isfinite(value)):
        raise GpuConstructsError(f"{field} must be a finite number; got {value!r}")


def _text(value: Number | str | None) -> str | None:
    return None if value is None else str(value)
