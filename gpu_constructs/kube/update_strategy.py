"""How a DaemonSet replaces its pods when their template changes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from gpu_constructs.errors import GpuConstructsError, short_errors
from gpu_constructs.kube import fields

_PERCENT = re.compile(r"(100|[1-9]?[0-9])%\Z")


def check_amount(field: str, value: int | str) -> None:
    """Raise unless a value is a number of pods: a whole number from 0, or a percentage."""
    if not isinstance(value, str):
        fields.natural(field, value)
    elif not _PERCENT.match(value):
        raise GpuConstructsError(f"{field} must be a number or a percentage like '10%'; got {value!r}")


@dataclass(frozen=True, kw_only=True)
class UpdateStrategy(fields.Options):
    """``UpdateStrategy.rolling_update(...)`` or ``UpdateStrategy.on_delete()``; the words are those of Kubernetes.

    Attributes:
        type: ``RollingUpdate`` or ``OnDelete``.
        max_unavailable: Pods that may be missing during an update: a number or a percentage (``"10%"``).
        max_surge: Pods that may run beside the old one of their node; likewise.

    Raises:
        GpuConstructsError: A number below zero, text that is not a percentage, both zero, both above zero, or
            numbers beside ``OnDelete``.
    """

    type: Literal["RollingUpdate", "OnDelete"]
    max_unavailable: int | str | None = None
    max_surge: int | str | None = None

    _CHECKS: ClassVar[fields.Checks] = {"max_unavailable": check_amount, "max_surge": check_amount}

    def _conflicts(self) -> Iterable[fields.Conflict]:
        has_numbers = (self.max_unavailable, self.max_surge) != (None, None)
        yield (
            self.type == "OnDelete" and has_numbers,
            "update_strategy takes no numbers with OnDelete; use UpdateStrategy.on_delete()",
        )
        # Kubernetes' own defaults are 1 unavailable and no surge.
        is_missing = str(1 if self.max_unavailable is None else self.max_unavailable).rstrip("%") != "0"
        is_doubled = str(self.max_surge or 0).rstrip("%") != "0"
        yield (
            self.type == "RollingUpdate" and is_missing == is_doubled,
            "update_strategy must let pods either be missing (max_unavailable) or be doubled (max_surge); got "
            f"max_unavailable={self.max_unavailable!r}, max_surge={self.max_surge!r}",
        )

    @classmethod
    @short_errors
    def rolling_update(
        cls, *, max_unavailable: int | str | None = None, max_surge: int | str | None = None
    ) -> UpdateStrategy:
        """Replace pods node by node; without numbers one at a time.

        Args:
            max_unavailable: Nodes that may be without a pod meanwhile: a number or ``"10%"``. Kubernetes'
                default is 1.
            max_surge: Nodes that may run the new pod beside the old one; needs ``max_unavailable=0``. Not
                for pods that own something of their node, as device plugins do.
        """
        return cls(type="RollingUpdate", max_unavailable=max_unavailable, max_surge=max_surge)

    @classmethod
    @short_errors
    def on_delete(cls) -> UpdateStrategy:
        """Replace a pod only after it was deleted."""
        return cls(type="OnDelete")

    def to_manifest(self) -> dict[str, Any]:
        """Return the strategy as Kubernetes writes it."""
        numbers = {"maxUnavailable": self.max_unavailable, "maxSurge": self.max_surge}
        given = {name: value for name, value in numbers.items() if value is not None}
        return {"type": self.type, **({"rollingUpdate": given} if given else {})}
