"""Taints of nodes: what keeps pods off them that do not tolerate it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpu_constructs import _fields
from gpu_constructs.errors import ShortErrors
from gpu_constructs.placement import Toleration


@dataclass(frozen=True, kw_only=True)
class Taint(metaclass=ShortErrors):
    """A taint of a node; the words are those of Kubernetes.

    Attributes:
        key: The taint's key, ``nvidia.com/gpu`` by convention.
        value: The taint's value; empty by default.
        effect: ``NoSchedule``, ``PreferNoSchedule`` or ``NoExecute``.

    Raises:
        GpuConstructsError: A key or value that is no label's, or another effect.
    """

    key: str = "nvidia.com/gpu"
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"

    def __post_init__(self) -> None:
        _fields.members(self, "taint")
        _fields.labels("taint.key", {self.key: ""})
        _fields.label_value("taint.value", self.value)

    @property
    def toleration(self) -> Toleration:
        """What a pod must tolerate to run on a node with the taint."""
        return Toleration(key=self.key, value=self.value, effect=self.effect)

    def to_manifest(self) -> dict[str, str]:
        """Give the taint as Kubernetes writes it."""
        value = {"value": self.value} if self.value else {}
        return {"key": self.key, **value, "effect": self.effect}

    def to_text(self) -> str:
        """Give value and effect as Talos writes them behind the key."""
        return f"{self.value}:{self.effect}"


def taint_of_text(key: str, text: str) -> Taint:
    """Give the taint that Talos writes as a key with ``value:effect``.

    Raises:
        GpuConstructsError: It is none.
    """
    value, colon, effect = text.partition(":")
    value, effect = (value, effect) if colon else ("", value)
    return Taint(key=key, value=value, effect=effect)  # type: ignore[arg-type]
