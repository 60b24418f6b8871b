"""Where GPU pods may run: taints, tolerations, labels selected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields

GPU_PRESENT = "nvidia.com/gpu.present"
"""The node label our constructs select on; who publishes it is checked at synth."""

GPU_PCI_PRESENT = "feature.node.kubernetes.io/pci-10de.present"
"""Published by Node Feature Discovery for a PCI device of vendor NVIDIA, told to label vendors only."""

FOREIGN_PCI_PRESENT = (
    "feature.node.kubernetes.io/pci-0300_10de.present",
    "feature.node.kubernetes.io/pci-0302_10de.present",
)
"""Published by a Node Feature Discovery with its own defaults: display and 3D controllers of vendor NVIDIA."""

NVIDIA_CPU = "feature.node.kubernetes.io/cpu-model.vendor_id"
"""``NVIDIA`` on Tegra systems."""

HOSTNAME = "kubernetes.io/hostname"
"""The label of a node's own name, set by the kubelet."""

_AFFINITIES = ("nodeAffinity", "podAffinity", "podAntiAffinity")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, kw_only=True)
class Toleration(fields.Options):
    """A taint that pods put up with; the words are those of Kubernetes.

    Give one list to the plugin, the exporter, the power limit and the workloads of a cluster: a taint that
    one of them does not tolerate leaves it at zero pods without any event.

    Attributes:
        key: The taint's key; None, with ``operator="Exists"``, tolerates every taint.
        operator: ``Equal`` compares the value, ``Exists`` takes any.
        value: The taint's value, for ``Equal``.
        effect: ``NoSchedule``, ``PreferNoSchedule`` or ``NoExecute``; None matches all three.
        toleration_seconds: How long a ``NoExecute`` taint is put up with; None is without end.

    Raises:
        GpuConstructsError: An operator or effect that Kubernetes does not have, a value beside ``Exists``,
            no key beside ``Equal``.
    """

    key: str | None = None
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: int | None = None

    def _conflicts(self) -> Iterable[fields.Conflict]:
        has_value = self.operator == "Exists" and self.value is not None
        yield has_value, f"toleration.value must be left out with operator 'Exists'; got {self.value!r}"
        is_keyless = self.operator == "Equal" and self.key is None
        yield is_keyless, "toleration.key is required with operator 'Equal'; got None"
        fields.labels("toleration.key", {} if self.key is None else {self.key: self.value or ""})
        is_timed = self.toleration_seconds is not None and self.effect != "NoExecute"
        yield is_timed, f"toleration.toleration_seconds needs effect 'NoExecute'; got {self.effect!r}"

    def to_manifest(self) -> dict[str, Any]:
        """Return the toleration as Kubernetes writes it."""
        entries = {
            "key": self.key,
            "operator": self.operator,
            "value": self.value,
            "effect": self.effect,
            "tolerationSeconds": self.toleration_seconds,
        }
        return {name: value for name, value in entries.items() if value is not None}


GPU_TAINT = Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule")
"""The taint that GPU nodes carry by convention; every GPU pod of ours tolerates it."""

CRITICAL_ADDONS = Toleration(key="CriticalAddonsOnly", operator="Exists")
"""Tolerated by node agents, as in NVIDIA's chart."""


def tolerations(*groups: Iterable[Toleration]) -> list[dict[str, Any]]:
    """Join lists of tolerations in order, without repeats."""
    unique = dict.fromkeys(toleration for group in groups for toleration in group)
    return [toleration.to_manifest() for toleration in unique]


def required_node_affinity(terms: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Require that a node matches one of the terms, each a list of expressions that all hold."""
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [dict(e) for e in term]} for term in terms]
            }
        }
    }


def label_is(key: str, *values: str) -> dict[str, Any]:
    """Return the expression that a label has one of the values."""
    return {"key": key, "operator": "In", "values": list(values)}


def label_exists(key: str) -> dict[str, Any]:
    """Return the expression that a label is there, whatever its value."""
    return {"key": key, "operator": "Exists"}


def label_is_above(key: str, number: int) -> dict[str, Any]:
    """Return the expression that a label is a whole number above another; one that is missing is not."""
    return {"key": key, "operator": "Gt", "values": [str(number)]}


def check_affinity(affinity: Mapping[str, Any]) -> None:
    """Check the first levels of an affinity for the form of Kubernetes.

    Raises:
        GpuConstructsError: An unknown rule, or a required one without terms.
    """
    for key, rules in affinity.items():
        fields.one_of("affinity key", key, _AFFINITIES)
        fields.of_type(f"affinity[{key!r}]", rules, Mapping[str, Any] | None)
    required = (affinity.get("nodeAffinity") or {}).get(_REQUIRED)
    if required is None:
        return
    # We add to these terms where there are several configurations.
    fields.of_type(f"affinity['nodeAffinity'][{_REQUIRED!r}]", required, Mapping[str, Sequence[Mapping[str, Any]]])
    if not required.get("nodeSelectorTerms"):
        raise GpuConstructsError(
            f"affinity['nodeAffinity'][{_REQUIRED!r}] must hold 'nodeSelectorTerms' with at least one term; "
            f"got {dict(required)!r}"
        )


def gpu_node_affinity(*, tegra: bool = False, foreign: bool = False) -> dict[str, Any]:
    """Require a node that Node Feature Discovery or an administrator marked as having an NVIDIA GPU.

    Args:
        tegra: Take a node with an NVIDIA CPU too: a Tegra's GPU is no PCI device.
        foreign: Take the labels of a Node Feature Discovery with its own defaults too, which name the class.
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
    """Return the affinity with expressions that must hold besides, in each of its alternatives."""
    return with_node_alternatives(affinity, [expressions]) if expressions else affinity


def with_node_alternatives(
    affinity: Mapping[str, Any] | None, alternatives: Sequence[Sequence[Mapping[str, Any]]]
) -> Mapping[str, Any]:
    """Return the affinity with one of several lists of expressions to hold besides, in each of its own alternatives.

    Kubernetes takes any of the terms, so what must hold in every case stands in each. What holds already is not
    written again.
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
    """Return the affinity with one more rule: never on a node together with the pods of a label selector."""
    affinity = affinity or {}
    apart = affinity.get("podAntiAffinity") or {}
    term = {"labelSelector": selector, "topologyKey": HOSTNAME}
    return {**affinity, "podAntiAffinity": {**apart, _REQUIRED: [*(apart.get(_REQUIRED) or ()), term]}}


def clash_of_terms(affinity: Mapping[str, Any]) -> str | None:
    """Return a label of which every term wants two things that no node has at once; None where a node may match."""
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
    """A taint of a node; the words are those of Kubernetes.

    Attributes:
        key: The taint's key, ``nvidia.com/gpu`` by convention.
        value: The taint's value; empty by default.
        effect: ``NoSchedule``, ``PreferNoSchedule`` or ``NoExecute``.

    Raises:
        GpuConstructsError: A key or value that a label cannot have, or another effect.
    """

    key: str = "nvidia.com/gpu"
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"

    _CHECKS: ClassVar[fields.Checks] = {"key": fields.label_key, "value": fields.label_value}

    @property
    def toleration(self) -> Toleration:
        """What a pod must tolerate to run on a node with the taint."""
        return Toleration(key=self.key, value=self.value, effect=self.effect)

    def to_manifest(self) -> dict[str, str]:
        """Return the taint as Kubernetes writes it."""
        value = {"value": self.value} if self.value else {}
        return {"key": self.key, **value, "effect": self.effect}

    def to_text(self) -> str:
        """Return value and effect as Talos writes them behind the key."""
        return f"{self.value}:{self.effect}"


def taint_of_text(key: str, text: str) -> Taint:
    """Return the taint that Talos writes as a key with ``value:effect``.

    Raises:
        GpuConstructsError: It is none.
    """
    value, colon, effect = text.partition(":")
    value, effect = (value, effect) if colon else ("", value)
    return Taint(key=key, value=value, effect=effect)  # type: ignore[arg-type]
