"""The properties of pods and nodes that decide which nodes accept which pods.

Two classes contain these properties: ``Demands`` for the pods of a workload, and ``Offered`` for a node. Instances of
both classes are hashable, so that the capacity plan checks equal pods and equal nodes only once. A *consumer* is a
workload as the plan sees it: equal pods of one object that request GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, TypeVar

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.gathered import grouped
from gpu_constructs.capacity.planned import NodeOffer
from gpu_constructs.facts.readable import mapping, members
from gpu_constructs.kube.labels import is_known_once_a_node_runs
from gpu_constructs.kube.placement import HOSTNAME
from gpu_constructs.records import dataclass, regex

NODE_NAME = "field metadata.name"
"""Key of a rule that checks the name of the node instead of a label. No label has this key, because it has a space."""

NAME_IN_POOL = "\0"
"""Substitute for the unknown name of a node in a pool. No label has this value, because it is not valid."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

# kubernetes/kubernetes:pkg/controller/daemon/util/daemonset_util.go. The last taint is for pods with host network only.
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

_INTEGER = regex(r"[+-]?[0-9]+\Z", re.ASCII)
_INT64 = range(-(2**63), 2**63)
_Value = TypeVar("_Value", str, int)


@dataclass(frozen=True)
class Rule:
    """A rule for the value of one node label, or for the node's name, as in a node affinity.

    Attributes:
        key: Key of the label; ``NODE_NAME`` for a rule for the node's name.
        operator: Operator of the rule, such as ``In``.
        values: Values of the rule; empty for ``Exists`` and ``DoesNotExist``.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()

    @cached_property
    def is_valid(self) -> bool:
        """Whether Kubernetes accepts the rule. A node selector term with an invalid rule matches no node."""
        if self.key.startswith("field "):
            return self.key == NODE_NAME and self.operator in ("In", "NotIn") and len(self.values) == 1
        if self.operator in ("In", "NotIn"):
            return bool(self.values)
        if self.operator in ("Exists", "DoesNotExist"):
            return not self.values
        return self.operator in ("Gt", "Lt") and len(self.values) == 1 and _integer(self.values[0]) is not None

    def holds(self, value: str | None) -> bool:
        """Check whether a node whose label has this value meets the rule. None stands for a missing label."""
        if self.operator in ("In", "NotIn"):
            return (value in self.values) is (self.operator == "In")
        if self.operator in ("Exists", "DoesNotExist"):
            return (value is not None) is (self.operator == "Exists")
        return _compares(self.operator, value or "", self.values[0])


Term = tuple[Rule, ...]
"""Rules of a node selector term. A node must meet every rule."""


@dataclass(frozen=True)
class _Toleration:
    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, key: str, value: str, effect: str) -> bool:
        """Check whether pods with this toleration tolerate a taint.

        Source:
            kubernetes/kubernetes:staging/src/k8s.io/api/core/v1/toleration.go
        """
        if self.effect not in ("", effect) or self.key not in ("", key):
            return False
        is_equal = self.operator in ("", "Equal") and self.value == value
        # ``Gt`` and ``Lt`` need a feature gate (Kubernetes 1.35 and later). Otherwise the API server rejects the pod.
        does_for_key = self.key != "" and (is_equal or _compares(self.operator, value, self.value))
        return self.operator == "Exists" or does_for_key


ANY_TAINT = _Toleration("", "Exists", "", "")
"""Toleration for every taint."""


@dataclass(frozen=True)
class Demands:
    """The properties of a workload that decide which nodes accept its pods.

    Two workloads with equal properties can run on the same nodes.

    Attributes:
        asks: Amount of each resource that a pod requests.
        node_name: Field ``nodeName``, which bypasses the scheduler; empty if the pod spec does not set it.
        selected: Rules of the node selector. A node must meet every rule.
        terms: Alternative terms of the required node affinity. None: the pod has no node affinity. Empty: the node
            affinity matches no node.
        tolerations: Tolerations of the pods.
        most_asked: Largest amount of each resource that one container of the pod requests.
    """

    asks: tuple[tuple[str, int], ...]
    node_name: str
    selected: Term
    terms: tuple[Term, ...] | None
    tolerations: tuple[_Toleration, ...]
    most_asked: tuple[tuple[str, int], ...] = ()

    @property
    def alternatives(self) -> tuple[Term, ...]:
        """Alternative terms of the node affinity. If the pods have no node affinity, one term that every node meets."""
        return ((),) if self.terms is None else self.terms


@dataclass(frozen=True)
class Offered:
    """The properties of a node that decide which pods it accepts. Nodes with equal properties accept the same pods.

    Attributes:
        name: Name of the node; empty for a pool, and for every node if no pod selects nodes by name.
        labels: Labels of the node.
        taints: Key, value and effect of each taint.
        allocatable: Number of slots of each resource.
        is_pool: Whether the node belongs to a pool, whose nodes have no declared names. False if no pod selects nodes
            by name or hostname.
        most_each: Largest amount of each resource that a container can request, if the device plugin sets a limit.
        why_nothing: Reason why the node advertises no GPU; empty if it advertises one, or if the reason is not known.
        absent: Labels that no component of the cluster publishes on the node. The node has such a label only if
            ``labels`` contains it.
        published: Labels that components of the cluster publish on some nodes only. The plan does not know whether this
            node has them.
    """

    name: str
    labels: frozenset[tuple[str, str]]
    taints: tuple[tuple[str, str, str], ...]
    allocatable: frozenset[tuple[str, int]]
    is_pool: bool
    most_each: tuple[tuple[str, int], ...] = ()
    why_nothing: str = ""
    absent: frozenset[str] = frozenset()
    published: frozenset[str] = frozenset()

    @cached_property
    def values(self) -> Mapping[str, str]:
        """Values of the node's labels by label key. The value for the key ``NODE_NAME`` is the name of the node.

        For a pool, the value is ``NAME_IN_POOL``, because the names of its nodes are not known.
        """
        if self.is_pool:
            return {HOSTNAME: NAME_IN_POOL, NODE_NAME: NAME_IN_POOL, **dict(self.labels)}
        return {NODE_NAME: self.name, **dict(self.labels)}

    @cached_property
    def amounts(self) -> Mapping[str, int]:
        """Number of slots of the node by resource, for example ``{"nvidia.com/gpu": 4}``."""
        return dict(self.allocatable)

    @cached_property
    def limits(self) -> Mapping[str, int]:
        """Largest amount that a container can request, by resource, if the device plugin sets a limit."""
        return dict(self.most_each)

    def judge(self, rule: Rule) -> bool | None:
        """Check whether the node meets a rule. Return None if the value of the label is not known."""
        value = self.values.get(rule.key)
        is_open = value is None and rule.key not in self.absent
        if is_open and (rule.key in self.published or is_known_once_a_node_runs(rule.key)):
            return None
        if value == NAME_IN_POOL and rule.operator == "NotIn":
            # At most one node of the pool does not meet the rule.
            return None
        return rule.holds(value)


# Reading manifests


def placement_key(consumer: Consumer, runtime_classes: Mapping[str, Mapping[str, Any]] | None = None) -> Demands:
    """Return the properties of a workload that decide which nodes accept its pods.

    If the results are equal for two workloads, the same nodes accept their pods. The result does not contain GPU
    memory, which the function ``vram_refusal`` checks.

    Args:
        consumer: Workload.
        runtime_classes: Field ``scheduling`` of each known RuntimeClass, by name. The API server adds the node selector
            and the tolerations in this field to the pods. Default: None, for no RuntimeClass.
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
    """Return the properties that decide which nodes accept the pods of a DaemonSet with the given pod spec."""
    return placement_key(
        Consumer(subject=0, kind="DaemonSet", namespace="", name="", asks={}, pod_spec=pod_spec, is_for_each_node=True)
    )


def offer_key(
    offer: NodeOffer, read: Collection[str] | None = None, resources: Collection[str] | None = None
) -> Offered:
    """Return the properties of a node that decide which pods it accepts.

    If the results are equal for two nodes, both nodes accept the same pods. The result does not contain GPU memory,
    which the function ``vram_refusal`` checks.

    Args:
        offer: Node or node pool.
        read: Labels that pods select, from ``labels_read``. The result contains no other labels. None means all labels.
        resources: Resources that pods request. The result contains no other resources. None means all resources.
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
        published=offer.published,
    )


def _asked_for(given: Mapping[str, _Value], names: Collection[str] | None) -> Iterator[tuple[str, _Value]]:
    return ((name, value) for name, value in given.items() if names is None or name in names)


def _limits(offer: NodeOffer) -> dict[str, int]:
    limits = grouped((device.resource, device.most_each) for device in offer.devices)
    return {name: max(filter(None, each)) for name, each in limits.items() if None not in each}


def admits_plain_nodes(demands: Demands) -> bool:
    """Check whether pods can run on a Linux node without taints and without the labels that only GPU nodes have."""
    return not demands.node_name and any(
        all(rule.is_valid and rule.holds(_PLAIN_NODE.get(rule.key)) for rule in (*demands.selected, *term))
        for term in demands.alternatives
    )


def labels_read(demands: Iterable[Demands]) -> frozenset[str]:
    """Return the labels that the given pods select, and ``NODE_NAME`` if a pod selects a node by its name."""
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
    """Check whether a value of a label or taint is greater (``Gt``) or less (``Lt``) than a bound.

    Return False if the value or the bound is not a whole number.
    """
    number, limit = _integer(text), _integer(bound)
    if number is None or limit is None:
        return False
    return (operator == "Lt" and number < limit) or (operator == "Gt" and number > limit)
