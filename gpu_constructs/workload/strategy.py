"""How a workload replaces its pods when their template changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError, ShortErrors, short_errors
from gpu_constructs.update_strategy import check_amount


@dataclass(frozen=True, kw_only=True)
class Strategy(metaclass=ShortErrors):
    """``Strategy.recreate()``, ``Strategy.rolling_update(...)`` or ``Strategy.on_delete()``; words of Kubernetes.

    Attributes:
        type: ``Recreate`` (of a Deployment), ``RollingUpdate`` or ``OnDelete`` (of a StatefulSet).
        max_surge: Pods beside those that are replaced, each with GPUs of its own: a number or a percentage.
        max_unavailable: Pods that may be missing meanwhile; likewise.
        partition: Of a StatefulSet: pods with a lower number stay as they are.

    Raises:
        GpuConstructsError: A number below zero, text that is no percentage, numbers beside another type, or neither
            missing nor additional pods.
    """

    type: Literal["Recreate", "RollingUpdate", "OnDelete"]
    max_surge: int | str | None = None
    max_unavailable: int | str | None = None
    partition: int | None = None

    def __post_init__(self) -> None:
        _fields.members(self, "strategy")
        check_amount("strategy.max_surge", self.max_surge)
        check_amount("strategy.max_unavailable", self.max_unavailable)
        if self.partition is not None:
            _fields.whole_number("strategy.partition", self.partition, minimum=0)
        given = (self.max_surge, self.max_unavailable, self.partition)
        if self.type != "RollingUpdate" and given != (None, None, None):
            raise GpuConstructsError(f"strategy takes no numbers with {self.type}; use Strategy.rolling_update(...)")
        if all(str(amount).rstrip("%") == "0" for amount in (self.max_surge, self.max_unavailable)):
            raise GpuConstructsError(
                "strategy must let pods either be missing (max_unavailable) or be doubled (max_surge); got 0 of both"
            )

    @classmethod
    @short_errors
    def recreate(cls) -> Strategy:
        """Stop all pods, then start the new ones.

        A GPU is free before it is asked for again. A pod that waits may take it in between, unless the new pod has a
        PriorityClass of a higher value.
        """
        return cls(type="Recreate")

    @classmethod
    @short_errors
    def rolling_update(
        cls,
        *,
        max_surge: int | str | None = 0,
        max_unavailable: int | str | None = 1,
        partition: int | None = None,
    ) -> Strategy:
        """Replace pods a few at a time; by default one that is stopped before its successor starts.

        Args:
            max_surge: Additional pods meanwhile, a number or ``"25%"``: each waits for a GPU that nobody holds, for
                ever where there is none. Only of a Deployment.
            max_unavailable: Pods that may be missing, a number or ``"25%"``. Of a StatefulSet only where the cluster
                has the feature ``MaxUnavailableStatefulSet``; 1 is its own way anyway.
            partition: Of a StatefulSet: pods with a lower number stay as they are.
        """
        return cls(type="RollingUpdate", max_surge=max_surge, max_unavailable=max_unavailable, partition=partition)

    @classmethod
    @short_errors
    def on_delete(cls) -> Strategy:
        """Replace a pod only after somebody deleted it; of a StatefulSet."""
        return cls(type="OnDelete")

    def to_manifest(self, kind: str) -> dict[str, Any]:
        """Give the strategy as the kind writes it.

        Raises:
            GpuConstructsError: The kind has no such strategy.
        """
        if self.type == ("OnDelete" if kind == "Deployment" else "Recreate"):
            factories = "recreate() or rolling_update()" if kind == "Deployment" else "rolling_update() or on_delete()"
            raise GpuConstructsError(f"strategy of a {kind} must be {factories}; got {self.type!r}")
        if kind == "Deployment":
            if self.partition is not None:
                raise GpuConstructsError(f"strategy.partition needs kind 'StatefulSet'; got {kind!r}")
            numbers = {"maxSurge": self.max_surge, "maxUnavailable": self.max_unavailable}
        else:
            if self.max_surge not in (None, 0):
                raise GpuConstructsError(f"strategy.max_surge needs kind 'Deployment'; got {kind!r}")
            several = None if self.max_unavailable == 1 else self.max_unavailable
            numbers = {"maxUnavailable": several, "partition": self.partition}
        given = {name: value for name, value in numbers.items() if value is not None}
        return {"type": self.type, **({"rollingUpdate": given} if given and self.type == "RollingUpdate" else {})}
