"""What of pods and nodes decides which nodes take which pods, read from manifests in a form that can be compared."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.gathered import grouped
from gpu_constructs.capacity.planned import NodeOffer
from gpu_constructs.facts.readable import mapping, members
from gpu_constructs.kube.labels import is_known_once_a_node_runs
from gpu_constructs.kube.placement import HOSTNAME

NODE_NAME = "field metadata.name"
"""Stands among labels for the name of the node itself; no label has a blank in its key."""

NAME_IN_POOL = "\0"
"""Stands for the name of a node of a pool, which has one but none that is declared; no label has such a value."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

# kubernetes/kubernetes:pkg/controller/daemon/util/daemonset_util.go; the last one for pods in the host's network.
_TOLERATED_BY_DAEMONS = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
    ("node.kubernetes.io/network-unavailable", "NoSchedule"),
)

_PLAIN_NODE = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}

_INTEGER = re.compile(r"[+-]?[0-9]+\Z", re.ASCII)
_INT64 = range(-(2**63), 2**63)
_Value = TypeVar("_Value", str, int)


@dataclass(frozen=True)
class Rule:
    """A rule for one label, or for the node's name, as an affinity writes it."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    @cached_property
    def is_valid(self) -> bool:
        """Whether Kubernetes can read it; a term with one that it cannot matches nothing."""
        if self.key.startswith("field "):
            return self.key == NODE_NAME and self.operator in ("In", "NotIn") and len(self.values) == 1
        if self.operator in ("In", "NotIn"):
            return bool(self.values)
        if self.operator in ("Exists", "DoesNotExist"):
            return not self.values
        return self.operator in ("Gt", "Lt") and len(self.values) == 1 and _integer(self.values[0]) is not None

    def holds(self, value: str | None) -> bool:
        """Check whether it holds for a value; None where there is no such label."""
        if self.operator in ("In", "NotIn"):
            return (value in self.values) is (self.operator == "In")
        if self.operator in ("Exists", "DoesNotExist"):
            return (value is not None) is (self.operator == "Exists")
        return _compares(self.operator, value or "", self.values[0])


Term = tuple[Rule, ...]
"""Rules that must all hold."""


@dataclass(frozen=True)
class _Toleration:
    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, key: str, value: str, effect: str) -> bool:
        """Check whether pods with it put up with a taint.

        Source:
            kubernetes/kubernetes:staging/src/k8s.io/api/core/v1/toleration.go
        """
        if self.effect not in ("", effect) or self.key not in ("", key):
            return False
        is_equal = self.operator in ("", "Equal") and self.value == value
        # Comparisons are behind a feature gate from Kubernetes 1.35 on; the apiserver refuses such pods without it.
        does_for_key = self.key != "" and (is_equal or _compares(self.operator, value, self.value))
        return self.operator == "Exists" or does_for_key


ANY_TAINT = _Toleration("", "Exists", "", "")
"""Puts up with every taint."""


@dataclass(frozen=True)
class Demands:
    """All of a consumer that decides which nodes take its pods: consumers with equal demands go to the same ones.

    Attributes:
        asks: Amount of each resource that a pod takes.
        most_asked: The most of each that one of its containers asks for.
        node_name: The node it names itself, past the scheduler; empty where it does not.
        selected: Labels that nodes must have, as rules.
        terms: The alternatives of its node affinity; None where it has none, empty where nothing matches.
        tolerations: Tolerations of the pods.
    """

    asks: tuple[tuple[str, int], ...]
    node_name: str
    selected: Term
    terms: tuple[Term, ...] | None
    tolerations: tuple[_Toleration, ...]
    most_asked: tuple[tuple[str, int], ...] = ()

    @property
    def alternatives(self) -> tuple[Term, ...]:
        """The alternatives of its node affinity; one that always holds if it has none."""
        return ((),) if self.terms is None else self.terms


@dataclass(frozen=True)
class Offered:
    """All of a node that decides which pods it takes: nodes that are equal in this take the same.

    Attributes:
        name: Name of the node; empty for a pool, and if no pod asks for it.
        labels: Its labels.
        taints: Key, value and effect of each taint.
        allocatable: Number of each resource that it has.
        is_pool: Whether it stands for several nodes, whose names are not declared.
        most_each: The most of each resource that a container may ask for, where more is refused.
        why_nothing: Reason why it offers nothing at all, if that is known.
        absent: Labels that it does not have unless they are declared, though others like them may appear later.
    """

    name: str
    labels: frozenset[tuple[str, str]]
    taints: tuple[tuple[str, str, str], ...]
    allocatable: frozenset[tuple[str, int]]
    is_pool: bool
    most_each: tuple[tuple[str, int], ...] = ()
    why_nothing: str = ""
    absent: frozenset[str] = frozenset()

    @cached_property
    def values(self) -> Mapping[str, str]:
        """Its labels by key, and its name."""
        if self.is_pool:
            return {HOSTNAME: NAME_IN_POOL, NODE_NAME: NAME_IN_POOL, **dict(self.labels)}
        return {NODE_NAME: self.name, **dict(self.labels)}

    @cached_property
    def amounts(self) -> Mapping[str, int]:
        """What it has of each resource."""
        return dict(self.allocatable)

    @cached_property
    def limits(self) -> Mapping[str, int]:
        """The most of each resource that a container may ask for."""
        return dict(self.most_each)

    def judge(self, rule: Rule) -> bool | None:
        """Check whether a rule holds; None if it is not known."""
        value = self.values.get(rule.key)
        if value is None and rule.key not in self.absent and is_known_once_a_node_runs(rule.key):
            return None
        if value == NAME_IN_POOL and rule.operator == "NotIn":
            # For all nodes of the pool but, it may be, one.
            return None
        return rule.holds(value)


# Reading manifests


def placement_key(consumer: Consumer, runtime_classes: Mapping[str, Mapping[str, Any]] | None = None) -> Demands:
    """Return what decides which nodes take a consumer's pods; equal keys get equal answers of every function here.

    ``vram_refusal`` alone also looks at ``vram_mib``.

    Args:
        consumer: The consumer.
        runtime_classes: The member ``scheduling`` of the RuntimeClasses that are known, by name: admission adds what
            the class of the pods demands.
    """
    spec = consumer.pod_spec
    scheduling = (runtime_classes or {}).get(_text(spec.get("runtimeClassName"))) or {}
    tolerations = [*_tolerations(spec.get("tolerations"))]
    if consumer.is_for_each_node:
        tolerated = _TOLERATED_BY_DAEMONS if spec.get("hostNetwork") is True else _TOLERATED_BY_DAEMONS[:-1]
        tolerations += [_Toleration(key, "Exists", "", effect) for key, effect in tolerated]
    tolerations += _tolerations(scheduling.get("tolerations"))
    selector = {*_selector(spec.get("nodeSelector")), *_selector(scheduling.get("nodeSelector"))}
    return Demands(
        asks=tuple(sorted(consumer.asks.items())),
        node_name=_text(spec.get("nodeName")),
        selected=tuple(Rule(key, "In", (value,)) for key, value in sorted(selector)),
        terms=_terms(spec),
        tolerations=tuple(dict.fromkeys(tolerations)),
        most_asked=tuple(sorted((name, consumer.most_asked.get(name, count)) for name, count in consumer.asks.items())),
    )


def daemon_key(pod_spec: Mapping[str, Any]) -> Demands:
    """Return what decides which nodes take the pods of a DaemonSet with this pod spec."""
    return placement_key(
        Consumer(subject=0, kind="DaemonSet", namespace="", name="", asks={}, pod_spec=pod_spec, is_for_each_node=True)
    )


def offer_key(
    offer: NodeOffer, read: Collection[str] | None = None, resources: Collection[str] | None = None
) -> Offered:
    """Return what decides which pods a node takes; equal keys get equal answers of every function but ``vram_refusal``.

    Args:
        offer: The node.
        read: Labels that pods look at, as ``labels_read`` gives them. Nodes that differ in others only get equal keys.
        resources: Resources that pods ask for.
    """
    is_pool = offer.count > 1
    has_name = read is None or NODE_NAME in read
    return Offered(
        name=offer.name if has_name and not is_pool else "",
        labels=frozenset(_asked_for(offer.labels, read)),
        taints=tuple((_text(t.get("key")), _text(t.get("value")), _text(t.get("effect"))) for t in offer.taints),
        allocatable=frozenset(_asked_for(offer.allocatable, resources)),
        is_pool=is_pool and (has_name or HOSTNAME in (read or ())),
        why_nothing=offer.notes[-1] if offer.notes and not offer.devices else "",
        most_each=tuple(sorted(_asked_for(_limits(offer), resources))),
        absent=offer.absent,
    )


def _asked_for(given: Mapping[str, _Value], names: Collection[str] | None) -> Iterator[tuple[str, _Value]]:
    """Return the members that are asked for; all of them if it is not known which are."""
    return ((name, value) for name, value in given.items() if names is None or name in names)


def _limits(offer: NodeOffer) -> dict[str, int]:
    limits = grouped((device.resource, device.most_each) for device in offer.devices)
    return {name: max(filter(None, each)) for name, each in limits.items() if None not in each}


def admits_plain_nodes(demands: Demands) -> bool:
    """Check whether a Linux node without taints and without further labels is one that pods may go to."""
    return not demands.node_name and any(
        all(rule.is_valid and rule.holds(_PLAIN_NODE.get(rule.key)) for rule in (*demands.selected, *term))
        for term in demands.alternatives
    )


def labels_read(demands: Iterable[Demands]) -> frozenset[str]:
    """Return the labels that pods with these demands look at, ``NODE_NAME`` among them."""
    names = (Rule(NODE_NAME, "Exists"),)
    terms = ((one.selected, *(one.terms or ()), names if one.node_name else ()) for one in demands)
    return frozenset(rule.key for each in terms for term in each for rule in term)


def _selector(given: object) -> set[tuple[str, str]]:
    return {(str(key), _text(value)) for key, value in mapping(given).items()}


def _tolerations(given: object) -> Iterator[_Toleration]:
    for each in members(given):
        yield _Toleration(*(_text(each.get(name)) for name in ("key", "operator", "value", "effect")))


def _terms(spec: Mapping[str, Any]) -> tuple[Term, ...] | None:
    node_affinity = mapping(mapping(spec.get("affinity")).get("nodeAffinity"))
    required = node_affinity.get(_REQUIRED)
    if not isinstance(required, Mapping):
        return None
    terms = [
        (*_rules(term.get("matchExpressions")), *_rules(term.get("matchFields"), is_field=True))
        for term in members(required.get("nodeSelectorTerms"))
    ]
    # An empty term matches nothing.
    return tuple(term for term in terms if term)


def _rules(given: object, *, is_field: bool = False) -> Iterator[Rule]:
    for each in members(given):
        key, operator, values = _text(each.get("key")), _text(each.get("operator")), each.get("values")
        listed = tuple(map(_text, values)) if isinstance(values, list | tuple) else ()
        yield Rule(f"field {key}" if is_field else key, operator, listed)


def _text(given: object) -> str:
    if isinstance(given, bool):
        return str(given).lower()
    return "" if given is None else str(given)


def _integer(text: str) -> int | None:
    if len(text) > 40 or not _INTEGER.match(text):
        return None
    number = int(text)
    return number if number in _INT64 else None


def _compares(operator: str, text: str, bound: str) -> bool:
    """Check whether two whole numbers compare as ``Gt`` or ``Lt`` wants."""
    number, limit = _integer(text), _integer(bound)
    if number is None or limit is None:
        return False
    return (operator == "Lt" and number < limit) or (operator == "Gt" and number > limit)
