"""The update strategy of a DaemonSet, which replaces pods after a change of their template."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Literal

from gpu_constructs.errors import GpuConstructsError, short_errors
from gpu_constructs.kube import fields
from gpu_constructs.records import dataclass, regex

_PERCENT = regex(r"(100|[1-9]?[0-9])%\Z")


def check_amount(field: str, value: int | str) -> None:
    """Raise unless a value is a whole number of at least 0, or a percentage such as ``10%``."""
    if not isinstance(value, str):
        fields.natural(field, value)
    elif not _PERCENT.match(value):
        raise GpuConstructsError(f"{field} must be a number or a percentage like '10%', got {value!r}")


@dataclass(frozen=True, kw_only=True)
class UpdateStrategy(fields.Options):
    """The update strategy of a DaemonSet, with the fields of Kubernetes.

    Create one with ``UpdateStrategy.rolling_update(...)`` or ``UpdateStrategy.on_delete()``.

    Attributes:
        type: Strategy: ``RollingUpdate`` or ``OnDelete``.
        max_unavailable: Largest number or percentage (``"10%"``) of nodes without a pod during an update. With None,
            Kubernetes uses 1.
        max_surge: Largest number or percentage of nodes that run the old pod and the new pod during an update. With
            None, Kubernetes uses 0.

    Raises:
        GpuConstructsError: A number is negative, a text is not a percentage, both values are zero, both are above
            zero, or ``OnDelete`` has a value.
    """

    type: Literal["RollingUpdate", "OnDelete"]
    max_unavailable: int | str | None = None
    max_surge: int | str | None = None

    _CHECKS: ClassVar[fields.Checks] = {"max_unavailable": check_amount, "max_surge": check_amount}

    def _conflicts(self) -> Iterable[fields.Conflict]:
        has_numbers = (self.max_unavailable, self.max_surge) != (None, None)
        yield (
            self.type == "OnDelete" and has_numbers,
            "update_strategy must not have max_unavailable or max_surge with OnDelete. Use UpdateStrategy.on_delete()",
        )
        # The defaults of Kubernetes are max_unavailable=1 and max_surge=0.
        is_missing = str(1 if self.max_unavailable is None else self.max_unavailable).rstrip("%") != "0"
        is_doubled = str(self.max_surge or 0).rstrip("%") != "0"
        yield (
            self.type == "RollingUpdate" and is_missing == is_doubled,
            "update_strategy must have either max_unavailable or max_surge above 0, got "
            f"max_unavailable={self.max_unavailable!r}, max_surge={self.max_surge!r}",
        )

    @classmethod
    @short_errors
    def rolling_update(
        cls, *, max_unavailable: int | str | None = None, max_surge: int | str | None = None
    ) -> UpdateStrategy:
        """Create a strategy that replaces pods node by node, by default one node at a time.

        Args:
            max_unavailable: Largest number or percentage (``"10%"``) of nodes without a pod during an update. With
                None, Kubernetes uses 1.
            max_surge: Largest number or percentage of nodes that run the old pod and the new pod during an update. It
                requires ``max_unavailable=0``. Do not use it for pods that need exclusive access to the node, such as
                device plugins.
        """
        return cls(type="RollingUpdate", max_unavailable=max_unavailable, max_surge=max_surge)

    @classmethod
    @short_errors
    def on_delete(cls) -> UpdateStrategy:
        """Create a strategy that replaces a pod only after a user deletes it."""
        return cls(type="OnDelete")

    def to_manifest(self) -> dict[str, Any]:
        """Return the strategy as it appears in a manifest."""
        numbers = {"maxUnavailable": self.max_unavailable, "maxSurge": self.max_surge}
        given = {name: value for name, value in numbers.items() if value is not None}
        return {"type": self.type, **({"rollingUpdate": given} if given else {})}
