"""What of pods and nodes decides which nodes take which pods, read from manifests in a form that can be compared."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.node_offer import NodeOffer
from gpu_constructs.node_label_domains import is_known_once_a_node_runs
from gpu_constructs.placement import HOSTNAME

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
        """Tell whether it holds for a value; None where there is no such label."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        number, bound = _integer(value or ""), _integer(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "Gt" else number < bound


Term = tuple[Rule, ...]
"""Rules that must all hold."""


@dataclass(frozen=True)
class _Toleration:
    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, key: str, value: str, effect: str) -> bool:
        """Tell whether pods with it put up with a taint.

        Source:
            kubernetes/kubernetes:staging/src/k8s.io/api/core/v1/toleration.go
        """
        if self.effect not in ("", effect) or self.key not in ("", key):
            return False
        if self.operator == "Exists":
            return True
        if not self.key:
            return False
        if self.operator in ("", "Equal"):
            return self.value == value
        # Behind a feature gate from Kubernetes 1.35 on; the apiserver refuses such pods without it.
        number, bound = _integer(value), _integer(self.value)
        if number is None or bound is None:
            return False
        return (self.operator == "Lt" and number < bound) or (self.operator == "Gt" and number > bound)


ANY_TAINT = _Toleration("", "Exists", "", "")
"""Puts up with every taint."""


@dataclass(frozen=True)
class Demands:
    """All of a consumer that decides which nodes take its pods: consumers with equal demands go to the same ones.

    Attributes:
        asks: What a pod takes of each resource.
        most_asked: The most of each that one of its containers asks for.
        node_name: The node it names itself, past the scheduler; empty where it does not.
        selector: Labels that nodes must have.
        terms: The alternatives of its node affinity; None where it has none, empty where nothing matches.
        tolerations: What it puts up with.
        runtime_class: Whose demands come on top; empty for none.
    """

    asks: tuple[tuple[str, int], ...]
    node_name: str
    selector: tuple[tuple[str, str], ...]
    terms: tuple[Term, ...] | None
    tolerations: tuple[_Toleration, ...]
    runtime_class: str
    most_asked: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Offered:
    """All of a node that decides which pods it takes: nodes that are equal in this take the same.

    Attributes:
        name: Of the node; empty for a pool, and where nobody asks for it.
        labels: Its labels.
        taints: Key, value and effect of each taint.
        allocatable: How many of each resource it has.
        is_pool: Whether it stands for several nodes, whose names are not declared.
        most_each: The most of each resource that a container may ask for, where more is refused.
        why_nothing: Why it offers nothing at all, where that is known.
        absent: Labels that it has not where they are not declared, though nobody can know of others like them.
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
        """Tell whether a rule holds; None where nobody can know."""
        value = self.values.get(rule.key)
        if value is None and rule.key not in self.absent and is_known_once_a_node_runs(rule.key):
            return None
        if value == NAME_IN_POOL and rule.operator == "NotIn":
            # For all nodes of the pool but, it may be, one.
            return None
        return rule.holds(value)


# Reading manifests


def placement_key(consumer: Consumer) -> Demands:
    """Give what decides which nodes take a consumer's pods; equal keys get equal answers of every function here.

    ``vram_refusal`` alone also looks at ``vram_mib``.
    """
    spec = consumer.pod_spec
    tolerations = [*_tolerations(spec.get("tolerations"))]
    if consumer.is_for_each_node:
        tolerated = _TOLERATED_BY_DAEMONS if spec.get("hostNetwork") is True else _TOLERATED_BY_DAEMONS[:-1]
        tolerations += [_Toleration(key, "Exists", "", effect) for key, effect in tolerated]
    return Demands(
        asks=tuple(sorted(consumer.asks.items())),
        node_name=_text(spec.get("nodeName")),
        selector=_selector(spec.get("nodeSelector")),
        terms=_terms(spec),
        tolerations=tuple(dict.fromkeys(tolerations)),
        runtime_class=_text(spec.get("runtimeClassName")),
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
    """Give what decides which pods a node takes; equal keys get equal answers of every function but ``vram_refusal``.

    Args:
        offer: The node.
        read: Labels that pods look at, as ``labels_read`` gives them. Nodes that differ in others only get equal keys.
        resources: Resources that pods ask for.
    """
    looks_at_names = read is None or NODE_NAME in read
    looks_at_pool = looks_at_names or (read is not None and HOSTNAME in read)
    is_pool = offer.count > 1
    return Offered(
        name=offer.name if looks_at_names and not is_pool else "",
        labels=frozenset((key, value) for key, value in offer.labels.items() if read is None or key in read),
        taints=tuple((_text(t.get("key")), _text(t.get("value")), _text(t.get("effect"))) for t in offer.taints),
        allocatable=frozenset(one for one in offer.allocatable.items() if resources is None or one[0] in resources),
        is_pool=is_pool and looks_at_pool,
        why_nothing=offer.notes[-1] if offer.notes and not offer.devices else "",
        most_each=tuple(sorted(one for one in _limits(offer) if resources is None or one[0] in resources)),
        absent=offer.absent,
    )


def _limits(offer: NodeOffer) -> Iterator[tuple[str, int]]:
    limits: dict[str, list[int | None]] = {}
    for device in offer.devices:
        limits.setdefault(device.resource, []).append(device.most_each)
    for resource, each in limits.items():
        known = [most for most in each if most is not None]
        if len(known) == len(each):
            yield resource, max(known)


def admits_plain_nodes(demands: Demands) -> bool:
    """Check whether a Linux node without taints and without further labels is one that pods may go to."""
    rules = [Rule(key, "In", (value,)) for key, value in demands.selector]
    terms = demands.terms if demands.terms is not None else ((),)
    return not demands.node_name and any(
        all(rule.is_valid and rule.holds(_PLAIN_NODE.get(rule.key)) for rule in (*rules, *term)) for term in terms
    )


def labels_read(
    demands: Iterable[Demands], runtime_classes: Mapping[str, Mapping[str, Any]] | None = None
) -> frozenset[str]:
    """Give the labels that pods with these demands look at, ``NODE_NAME`` among them."""
    found: set[str] = set()
    for one in (completed(each, runtime_classes) for each in demands):
        found |= {key for key, _ in one.selector} | {rule.key for term in one.terms or () for rule in term}
        found |= {NODE_NAME} if one.node_name else set()
    return frozenset(found)


def completed(demands: Demands, runtime_classes: Mapping[str, Mapping[str, Any]] | None) -> Demands:
    """Add what the RuntimeClass demands, as its admission plugin does."""
    scheduling = (runtime_classes or {}).get(demands.runtime_class) if demands.runtime_class else None
    if not scheduling:
        return demands
    return replace(
        demands,
        selector=tuple(sorted({*demands.selector, *_selector(scheduling.get("nodeSelector"))})),
        tolerations=(*demands.tolerations, *_tolerations(scheduling.get("tolerations"))),
    )


def _selector(given: object) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((str(key), _text(value)) for key, value in _mapping(given).items()))


def _tolerations(given: object) -> Iterator[_Toleration]:
    for each in _listed(given):
        yield _Toleration(*(_text(each.get(name)) for name in ("key", "operator", "value", "effect")))


def _terms(spec: Mapping[str, Any]) -> tuple[Term, ...] | None:
    node_affinity = _mapping(_mapping(spec.get("affinity")).get("nodeAffinity"))
    required = node_affinity.get(_REQUIRED)
    if not isinstance(required, Mapping):
        return None
    terms = [
        (*_rules(term.get("matchExpressions")), *_rules(term.get("matchFields"), is_field=True))
        for term in _listed(required.get("nodeSelectorTerms"))
    ]
    # An empty term matches nothing.
    return tuple(term for term in terms if term)


def _rules(given: object, *, is_field: bool = False) -> Iterator[Rule]:
    for each in _listed(given):
        key, operator, values = _text(each.get("key")), _text(each.get("operator")), each.get("values")
        listed = tuple(map(_text, values)) if isinstance(values, list | tuple) else ()
        yield Rule(f"field {key}" if is_field else key, operator, listed)


def _mapping(given: object) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}


def _listed(given: object) -> list[Mapping[str, Any]]:
    return [each for each in given if isinstance(each, Mapping)] if isinstance(given, list | tuple) else []


def _text(given: object) -> str:
    if isinstance(given, bool):
        return str(given).lower()
    return "" if given is None else str(given)


def _integer(text: str) -> int | None:
    if len(text) > 40 or not _INTEGER.match(text):
        return None
    number = int(text)
    return number if number in _INT64 else None
