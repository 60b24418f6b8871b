"""Placement of GPU pods on nodes: taints, tolerations, node labels and affinities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields
from gpu_constructs.records import dataclass

GPU_PRESENT = "nvidia.com/gpu.present"
"""Node label that constructs of this library select. The GPU Operator, a node feature rule or the user sets it."""

GPU_PCI_PRESENT = "feature.node.kubernetes.io/pci-10de.present"
"""Node label for a PCI device of NVIDIA, from Node Feature Discovery with ``deviceLabelFields: [vendor]``."""

FOREIGN_PCI_PRESENT = (
    "feature.node.kubernetes.io/pci-0300_10de.present",
    "feature.node.kubernetes.io/pci-0302_10de.present",
)
"""Node labels for display and 3D controllers of NVIDIA, from Node Feature Discovery with its default settings."""

NVIDIA_CPU = "feature.node.kubernetes.io/cpu-model.vendor_id"
"""Node label for the vendor of the CPU; ``NVIDIA`` on Tegra systems."""

HOSTNAME = "kubernetes.io/hostname"
"""Node label that the kubelet sets to the hostname of the node."""

_AFFINITIES = ("nodeAffinity", "podAffinity", "podAntiAffinity")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, kw_only=True)
class Toleration(fields.Options):
    """A toleration of pods for a taint of a node, with the fields of Kubernetes.

    Pass the same tolerations to ``DevicePlugin``, ``DcgmExporter``, ``PowerLimit`` and the workloads of a cluster. If a
    DaemonSet does not tolerate the taint of a node, Kubernetes creates no pod on the node and reports no event.

    Attributes:
        key: Key of the taint. With None (the default) and ``operator="Exists"``, the toleration matches every taint.
        operator: Comparison with the taint: ``Equal`` (the default) compares the value, ``Exists`` matches any value.
        value: Value of the taint if the operator is ``Equal``; None (the default) for ``Exists``.
        effect: Effect of the taint: ``NoSchedule``, ``PreferNoSchedule`` or ``NoExecute``. With None, the toleration
            matches all three effects.
        toleration_seconds: Time until a ``NoExecute`` taint evicts the pod, in seconds. With None, the taint never
            evicts the pod.

    Raises:
        GpuConstructsError: Kubernetes does not have the operator or the effect, ``Exists`` has a value, ``Equal`` has
            no key, or ``toleration_seconds`` has a value but the effect is not ``NoExecute``.
    """

    key: str | None = None
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: int | None = None

    def _conflicts(self) -> Iterable[fields.Conflict]:
        has_value = self.operator == "Exists" and self.value is not None
        yield has_value, f"toleration.value must be None with operator 'Exists', got {self.value!r}"
        is_keyless = self.operator == "Equal" and self.key is None
        yield is_keyless, "toleration.key must not be None with operator 'Equal'"
        fields.labels("toleration.key", {} if self.key is None else {self.key: self.value or ""})
        is_timed = self.toleration_seconds is not None and self.effect != "NoExecute"
        yield is_timed, f"toleration.toleration_seconds needs effect 'NoExecute', got {self.effect!r}"

    def to_manifest(self) -> dict[str, Any]:
        """Return the toleration as it appears in a manifest."""
        entries = {
            "key": self.key,
            "operator": self.operator,
            "value": self.value,
            "effect": self.effect,
            "tolerationSeconds": self.toleration_seconds,
        }
        return {name: value for name, value in entries.items() if value is not None}


GPU_TAINT = Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule")
"""Toleration for the conventional taint of GPU nodes. Every GPU pod of this library has it."""

CRITICAL_ADDONS = Toleration(key="CriticalAddonsOnly", operator="Exists")
"""Toleration for the taint ``CriticalAddonsOnly``, as in the Helm chart of the NVIDIA device plugin."""


def tolerations(*groups: Iterable[Toleration]) -> list[dict[str, Any]]:
    """Join lists of tolerations into one list of manifests, in the same order and without duplicates."""
    unique = dict.fromkeys(toleration for group in groups for toleration in group)
    return [toleration.to_manifest() for toleration in unique]


def required_node_affinity(terms: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Return a required node affinity as in a manifest. A node must match all expressions of at least one term."""
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [dict(e) for e in term]} for term in terms]
            }
        }
    }


def label_is(key: str, *values: str) -> dict[str, Any]:
    """Return a match expression, as in a manifest, for nodes whose label ``key`` has one of the given values."""
    return {"key": key, "operator": "In", "values": list(values)}


def label_exists(key: str) -> dict[str, Any]:
    """Return a match expression, as in a manifest, for nodes that have the label ``key`` with any value."""
    return {"key": key, "operator": "Exists"}


def label_is_above(key: str, number: int) -> dict[str, Any]:
    """Return a match expression, as in a manifest, for nodes whose label ``key`` is a whole number above ``number``."""
    return {"key": key, "operator": "Gt", "values": [str(number)]}


def check_affinity(affinity: Mapping[str, Any]) -> None:
    """Raise unless an affinity has the structure of the Kubernetes API. The check covers the outer levels only.

    Raises:
        GpuConstructsError: A key is not part of the Kubernetes API, or a required node affinity has no terms.
    """
    for key, rules in affinity.items():
        fields.one_of("affinity key", key, _AFFINITIES)
        fields.of_type(f"affinity[{key!r}]", rules, Mapping[str, Any] | None)
    required = (affinity.get("nodeAffinity") or {}).get(_REQUIRED)
    if required is None:
        return
    # `with_node_alternatives` adds expressions to these terms.
    fields.of_type(f"affinity['nodeAffinity'][{_REQUIRED!r}]", required, Mapping[str, Sequence[Mapping[str, Any]]])
    if not required.get("nodeSelectorTerms"):
        raise GpuConstructsError(
            f"affinity['nodeAffinity'][{_REQUIRED!r}] must have 'nodeSelectorTerms' with at least one term, "
            f"got {dict(required)!r}"
        )


def gpu_node_affinity(*, tegra: bool = False, foreign: bool = False) -> dict[str, Any]:
    """Return a required node affinity, as in a manifest, for nodes with a label that indicates an NVIDIA GPU.

    The labels are ``feature.node.kubernetes.io/pci-10de.present`` and ``nvidia.com/gpu.present``.

    Args:
        tegra: Whether to also select nodes with an NVIDIA CPU (Tegra systems), because their GPU is not a PCI device.
        foreign: Whether to also select nodes by labels such as ``feature.node.kubernetes.io/pci-0302_10de.present``.
            Node Feature Discovery sets these labels with its default settings.
    """
    terms = [[label_is(GPU_PCI_PRESENT, "true")], [label_is(GPU_PRESENT, "true")]]
    if tegra:
        terms.append([label_is(NVIDIA_CPU, "NVIDIA")])
    if foreign:
        terms += [[label_is(label, "true")] for label in FOREIGN_PCI_PRESENT]
    return required_node_affinity(terms)


def with_node_expressions(
    affinity: Mapping[str, Any] | None, expressions: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Return an affinity whose required node affinity also has the given match expressions in each term.

    The result is None if ``affinity`` is None and there are no expressions.
    """
    return with_node_alternatives(affinity, [expressions]) if expressions else affinity


def with_node_alternatives(
    affinity: Mapping[str, Any] | None, alternatives: Sequence[Sequence[Mapping[str, Any]]]
) -> Mapping[str, Any]:
    """Return an affinity that also requires nodes to match at least one of several lists of match expressions.

    If ``affinity`` already requires this, the function returns ``affinity`` unchanged.
    """
    affinity = affinity or {}
    node = affinity.get("nodeAffinity") or {}
    required = node.get(_REQUIRED) or {}
    terms = required.get("nodeSelectorTerms") or [{}]
    if all(any(_holds(term, expressions) for expressions in alternatives) for term in terms):
        return affinity
    widened = [
        {**term, "matchExpressions": [*term.get("matchExpressions", ()), *expressions]}
        for term in terms
        for expressions in alternatives
    ]
    return {**affinity, "nodeAffinity": {**node, _REQUIRED: {"nodeSelectorTerms": widened}}}


def apart_on_nodes(affinity: Mapping[str, Any] | None, selector: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an affinity with an added pod anti-affinity: the pod must not run on nodes with certain other pods.

    Args:
        affinity: Affinity of the pod, as in a manifest; None if the pod has none.
        selector: Label selector of the other pods, as in a manifest.
    """
    affinity = affinity or {}
    apart = affinity.get("podAntiAffinity") or {}
    term = {"labelSelector": selector, "topologyKey": HOSTNAME}
    return {**affinity, "podAntiAffinity": {**apart, _REQUIRED: [*(apart.get(_REQUIRED) or ()), term]}}


def clash_of_terms(affinity: Mapping[str, Any]) -> str | None:
    """Return a node label for which the affinity has contradictory expressions, so that no node matches the affinity.

    Return None if a node can match the affinity.
    """
    terms = affinity["nodeAffinity"][_REQUIRED]["nodeSelectorTerms"]
    clashes = [_clash(term) for term in terms]
    return clashes[0] if all(clashes) else None


def _clash(term: Mapping[str, Any]) -> str | None:
    allowed: dict[str, set[str]] = {}
    for rule in term.get("matchExpressions") or ():
        if rule.get("operator") == "In":
            values = {*(rule.get("values") or ())}
            allowed[rule["key"]] = allowed.get(rule["key"], values) & values
    return next((key for key, values in allowed.items() if not values), None)


def _holds(term: Mapping[str, Any], expressions: Sequence[Mapping[str, Any]]) -> bool:
    there = term.get("matchExpressions") or ()
    return all(expression in there for expression in expressions)


@dataclass(frozen=True, kw_only=True)
class Taint(fields.Options):
    """A taint of a node, with the fields of Kubernetes.

    Attributes:
        key: Key of the taint; ``nvidia.com/gpu`` by default, which is the convention.
        value: Value of the taint; empty by default.
        effect: Effect of the taint: ``NoSchedule`` (the default), ``PreferNoSchedule`` or ``NoExecute``.

    Raises:
        GpuConstructsError: The key or value is not valid for a label, or the effect is unknown.
    """

    key: str = "nvidia.com/gpu"
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"

    _CHECKS: ClassVar[fields.Checks] = {"key": fields.label_key, "value": fields.label_value}

    @property
    def toleration(self) -> Toleration:
        """Toleration that a pod needs to run on a node with this taint."""
        return Toleration(key=self.key, value=self.value, effect=self.effect)

    def to_manifest(self) -> dict[str, str]:
        """Return the taint as it appears in a manifest."""
        value = {"value": self.value} if self.value else {}
        return {"key": self.key, **value, "effect": self.effect}

    def to_text(self) -> str:
        """Return the value and the effect as ``value:effect``, the format of the Talos machine configuration."""
        return f"{self.value}:{self.effect}"


def taint_of_text(key: str, text: str) -> Taint:
    """Return the taint with a key, and with the value and effect in a text ``value:effect``, the format of Talos.

    Raises:
        GpuConstructsError: The text is not a valid taint.
    """
    value, colon, effect = text.partition(":")
    value, effect = (value, effect) if colon else ("", value)
    return Taint(key=key, value=value, effect=effect)  # type: ignore[arg-type]
