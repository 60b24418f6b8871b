"""Which nodes take which pods, by the rules of the scheduler; labels that nobody can know beforehand are let pass."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from gpu_constructs.annotations import VRAM
from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.node_labels import HOSTNAME
from gpu_constructs.capacity.node_offer import NodeOffer

NODE_NAME = "field metadata.name"
"""Stands among labels for the name of the node itself; no label has a blank in its key."""

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

# Set by discoveries, operating systems and clouds once a node runs.
_UNKNOWN_DOMAINS = (
    *("nvidia.com", "feature.node.kubernetes.io", "extensions.talos.dev"),
    *("topology.kubernetes.io", "failure-domain.beta.kubernetes.io", "beta.kubernetes.io"),
    *("amazonaws.com", "k8s.aws", "karpenter.sh", "cloud.google.com", "gke.io", "kubernetes.azure.com"),
    *("oraclecloud.com", "digitalocean.com", "scaleway.com", "hetzner.cloud"),
)
_UNKNOWN_LABELS = frozenset(("kubernetes.io/arch", "node.kubernetes.io/instance-type"))

_INTEGER = re.compile(r"[+-]?[0-9]+\Z", re.ASCII)
_INT64 = range(-(2**63), 2**63)
# No label has such a value: a node of a pool has a name, but none that is declared.
_NAME_IN_POOL = "\0"
_MOST_TERMS_IN_WORDS = 3


@dataclass(frozen=True)
class _Rule:
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


_Term = tuple[_Rule, ...]


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


@dataclass(frozen=True)
class Demands:
    """All of a consumer that decides which nodes take its pods: consumers with equal demands go to the same ones.

    Attributes:
        asks: What a pod takes of each resource.
        node_name: The node it names itself, past the scheduler; empty where it does not.
        selector: Labels that nodes must have.
        terms: The alternatives of its node affinity; None where it has none, empty where nothing matches.
        tolerations: What it puts up with.
        runtime_class: Whose demands come on top; empty for none.
    """

    asks: tuple[tuple[str, int], ...]
    node_name: str
    selector: tuple[tuple[str, str], ...]
    terms: tuple[_Term, ...] | None
    tolerations: tuple[_Toleration, ...]
    runtime_class: str


@dataclass(frozen=True)
class Offered:
    """All of a node that decides which pods it takes: nodes that are equal in this take the same.

    Attributes:
        name: Of the node; empty for a pool, and where nobody asks for it.
        labels: Its labels.
        taints: Key, value and effect of each taint.
        allocatable: How many of each resource it has.
        is_pool: Whether it stands for several nodes, whose names are not declared.
    """

    name: str
    labels: frozenset[tuple[str, str]]
    taints: tuple[tuple[str, str, str], ...]
    allocatable: frozenset[tuple[str, int]]
    is_pool: bool

    @cached_property
    def values(self) -> Mapping[str, str]:
        """Its labels by key, and its name."""
        if self.is_pool:
            return {HOSTNAME: _NAME_IN_POOL, NODE_NAME: _NAME_IN_POOL, **dict(self.labels)}
        return {NODE_NAME: self.name, **dict(self.labels)}

    @cached_property
    def amounts(self) -> Mapping[str, int]:
        """What it has of each resource."""
        return dict(self.allocatable)

    def judge(self, rule: _Rule) -> bool | None:
        """Tell whether a rule holds; None where nobody can know."""
        value = self.values.get(rule.key)
        if value is None and _is_unknowable(rule.key):
            return None
        if value == _NAME_IN_POOL and rule.operator == "NotIn":
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
    )


def labels_read(
    demands: Iterable[Demands], runtime_classes: Mapping[str, Mapping[str, Any]] | None = None
) -> frozenset[str]:
    """Give the labels that pods with these demands look at, ``NODE_NAME`` among them."""
    found: set[str] = set()
    for one in (_completed(each, runtime_classes) for each in demands):
        found |= {key for key, _ in one.selector} | {rule.key for term in one.terms or () for rule in term}
        found |= {NODE_NAME} if one.node_name else set()
    return frozenset(found)


def _completed(demands: Demands, runtime_classes: Mapping[str, Mapping[str, Any]] | None) -> Demands:
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


def _terms(spec: Mapping[str, Any]) -> tuple[_Term, ...] | None:
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


def _rules(given: object, *, is_field: bool = False) -> Iterator[_Rule]:
    for each in _listed(given):
        key, operator, values = _text(each.get("key")), _text(each.get("operator")), each.get("values")
        listed = tuple(map(_text, values)) if isinstance(values, list | tuple) else ()
        yield _Rule(f"field {key}" if is_field else key, operator, listed)


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


def _is_unknowable(label: str) -> bool:
    domain = label.rpartition("/")[0]
    return label in _UNKNOWN_LABELS or any(domain == one or domain.endswith(f".{one}") for one in _UNKNOWN_DOMAINS)


# Judging


def refusal(
    consumer: Consumer, offer: NodeOffer, runtime_classes: Mapping[str, Mapping[str, Any]] | None = None
) -> str | None:
    """Give why a node takes no pod of a consumer, even when it is empty; None where it does.

    Memory is another matter: see ``vram_refusal``. For many of both, ``Eligibility`` is quicker.

    Args:
        consumer: The consumer.
        offer: The node, or a pool.
        runtime_classes: The member ``scheduling`` of the RuntimeClasses that are known, by name.
    """
    return refusal_of(placement_key(consumer), offer_key(offer), runtime_classes)


def unknown_labels(
    consumer: Consumer, offer: NodeOffer, runtime_classes: Mapping[str, Mapping[str, Any]] | None = None
) -> tuple[str, ...]:
    """Give the labels that were taken as matching because nobody declares them; none where a node refuses anyway."""
    return unknown_labels_of(placement_key(consumer), offer_key(offer), runtime_classes)


def vram_refusal(consumer: Consumer, offer: NodeOffer) -> str | None:
    """Give why no GPU of a node has the memory that a pod states; None where one has, or where nobody says."""
    wanted = consumer.vram_mib
    if wanted is None:
        return None
    for resource in sorted(consumer.asks):
        devices = [device for device in offer.devices if device.resource == resource]
        known = [(device.vram_mib, device.vram_each_mib) for device in devices if device.vram_mib is not None]
        if not devices or len(known) < len(devices):
            continue
        mib, each = max(known, key=lambda one: min(one[0], one[0] if one[1] is None else one[1]))
        wants = f"a pod wants {wanted}Mi ({VRAM})"
        if each is not None and each < min(wanted, mib):
            return f"has GPU memory {mib}Mi, of which MPS gives each holder {each}Mi and {wants}"
        if mib < wanted:
            return f"has GPU memory {mib}Mi, of which {wants}"
    return None


def refusal_of(
    demands: Demands, offered: Offered, runtime_classes: Mapping[str, Mapping[str, Any]] | None = None
) -> str | None:
    """Give the same as ``refusal`` for what both come down to."""
    demands = _completed(demands, runtime_classes)
    return next(_reasons(demands, offered), None)


def unknown_labels_of(
    demands: Demands, offered: Offered, runtime_classes: Mapping[str, Mapping[str, Any]] | None = None
) -> tuple[str, ...]:
    """Give the same as ``unknown_labels`` for what both come down to."""
    demands = _completed(demands, runtime_classes)
    if next(_reasons(demands, offered), None) is not None:
        return ()
    selected = _selected(demands)
    terms = [term for term in demands.terms or () if _judge(term, selected, offered) is not False]
    is_open = not any(all(offered.judge(rule) for rule in term) for term in terms)
    rules = [*selected, *(rule for term in terms for rule in term if is_open)]
    return tuple(dict.fromkeys(rule.key.removeprefix("field ") for rule in rules if offered.judge(rule) is None))


def _reasons(demands: Demands, offered: Offered) -> Iterator[str]:
    if demands.node_name and demands.node_name != offered.name:
        yield _of_other_name(demands.node_name, offered)
    for taint in offered.taints:
        if _repels(taint, demands):
            yield f"has the taint {taint_text(*taint)}, which its pods do not tolerate"
    selected = _selected(demands)
    if _judge(selected, (), offered) is False:
        yield _of_term(selected, offered)
    if demands.terms is not None and all(_judge(term, selected, offered) is False for term in demands.terms):
        yield _of_no_term(demands.terms, offered)
    for resource, count in demands.asks:
        has = offered.amounts.get(resource, 0)
        if has < count:
            yield f"offers {has} {resource}, of which a pod wants {count}" if has else f"offers no {resource}"


def _repels(taint: tuple[str, str, str], demands: Demands) -> bool:
    # A pod that names its node is looked at by the kubelet only: kubernetes/kubernetes:pkg/kubelet/lifecycle.
    counted = ("NoExecute",) if demands.node_name else ("NoSchedule", "NoExecute")
    return taint[2] in counted and not any(one.tolerates(*taint) for one in demands.tolerations)


def _selected(demands: Demands) -> _Term:
    return tuple(_Rule(key, "In", (value,)) for key, value in demands.selector)


def _judge(term: _Term, besides: _Term, offered: Offered) -> bool | None:
    """Tell whether a node has all that a term wants; None where that hangs on labels nobody can know.

    Args:
        term: What it is judged by.
        besides: What must hold too, which may leave no value for such a label.
        offered: The node.
    """
    if not all(rule.is_valid for rule in term):
        return False
    verdicts = [offered.judge(rule) for rule in term]
    if False in verdicts:
        return False
    if None not in verdicts:
        return True
    unknown = {rule.key for rule, verdict in zip(term, verdicts, strict=True) if verdict is None}
    return None if all(_is_possible([r for r in (*besides, *term) if r.key == key]) for key in unknown) else False


def _is_possible(rules: Sequence[_Rule]) -> bool:
    """Tell whether a label can have a value, or be missing, so that all rules for it hold."""
    named = [rule.values for rule in rules if rule.operator == "In"]
    if named:
        return any(all(rule.holds(value) for rule in rules) for value in named[0])
    bounds = {op: [int(rule.values[0]) for rule in rules if rule.operator == op] for op in ("Gt", "Lt")}
    # Rules name so many values at most that one more is free.
    steps = range(1, sum(len(rule.values) for rule in rules) + 2)
    numbers = (
        [max(bounds["Gt"]) + n for n in steps] if bounds["Gt"] else [min(bounds["Lt"], default=0) - n for n in steps]
    )
    return any(all(rule.holds(value) for rule in rules) for value in (None, "any", *map(str, numbers)))


# Saying why


def taint_text(key: str, value: str, effect: str) -> str:
    """Give a taint as ``kubectl`` writes it."""
    return f"{key}{f'={value}' if value else ''}:{effect}"


def _of_other_name(wanted: str, offered: Offered) -> str:
    if offered.is_pool:
        return _of_pool(f"the node {wanted}")
    return f"is not the node {wanted}, which its pods name"


def _of_pool(wanted: str) -> str:
    return f"is a pool whose nodes have no names here, where its pods want {wanted}; declare that node by itself"


def _of_no_term(terms: Sequence[_Term], offered: Offered) -> str:
    reasons = list(dict.fromkeys(_of_term(term, offered) for term in terms))
    if len(reasons) <= 1:
        return reasons[0] if reasons else "is matched by nothing: the node affinity of its pods has no term"
    more = len(reasons) - _MOST_TERMS_IN_WORDS
    listed = "; ".join(reasons[:_MOST_TERMS_IN_WORDS]) + (f"; and {more} more" if more > 0 else "")
    return f"matches no term of its pods' node affinity: {listed}"


def _of_term(term: _Term, offered: Offered) -> str:
    for rule in term:
        if not rule.is_valid:
            written = " ".join((rule.key, rule.operator, ",".join(rule.values))).strip()
            return f"cannot match {written!r}, which is no rule that Kubernetes can read"
    refused = next((rule for rule in term if offered.judge(rule) is False), None)
    if refused is not None:
        return _in_words(refused, offered)
    keys = dict.fromkeys(rule.key for rule in term if offered.judge(rule) is None)
    return f"has no {' or '.join(keys)} that would do: its pods want of it what no node has at once"


def _in_words(rule: _Rule, offered: Offered) -> str:
    value = offered.values.get(rule.key)
    wanted = " or ".join(rule.values)
    if value == _NAME_IN_POOL:
        return _of_pool(f"{'the node' if rule.key == NODE_NAME else rule.key} {wanted}".strip())
    if rule.key == NODE_NAME:
        other = "not be" if rule.operator == "NotIn" else "be"
        return f"is {value}, where its pods want the node to {other} {wanted}"
    has = f"has no label {rule.key}" if value is None else f"has {rule.key}={value}"
    wants = {
        "In": f"where its pods want {wanted or 'it empty'}",
        "NotIn": "where its pods want another",
        "Exists": "which its pods want",
        "DoesNotExist": "where its pods want no such label",
        "Gt": f"where its pods want more than {wanted}",
        "Lt": f"where its pods want less than {wanted}",
    }
    return f"{has}, {wants[rule.operator]}"


# Many of both


class Eligibility:
    """Which of many nodes take which of many consumers' pods: each pair that differs is judged once.

    Attributes:
        consumer_groups: A number for each consumer; those with the same one go to the same nodes.
        offer_groups: A number for each node; those with the same one take the same pods.
    """

    def __init__(
        self,
        consumers: Sequence[Consumer],
        offers: Sequence[NodeOffer],
        runtime_classes: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        demands: dict[Demands, int] = {}
        self.consumer_groups = [
            demands.setdefault(_completed(placement_key(one), runtime_classes), len(demands)) for one in consumers
        ]
        read = labels_read(demands)
        resources = {resource for one in demands for resource, _ in one.asks}
        offered: dict[Offered, int] = {}
        self.offer_groups = [offered.setdefault(offer_key(one, read, resources), len(offered)) for one in offers]
        self._demands, self._offered = list(demands), list(offered)
        # What is asked for apart from resources, of which there are fewer that differ.
        places: dict[Demands, int] = {}
        self._places = [places.setdefault(replace(one, asks=()), len(places)) for one in self._demands]
        self._bare = list(places)
        self._values = [one.values for one in self._offered]
        self._amounts = [one.amounts for one in self._offered]
        self._accepted: dict[tuple[int, int], bool] = {}
        self._refusals: dict[tuple[int, int], str | None] = {}
        self._unknown: dict[tuple[int, int], tuple[str, ...]] = {}

    def accepts(self, consumer: int, offer: int) -> bool:
        """Tell whether a node takes pods of a consumer, by their places in the lists, without saying why not."""
        group, other = self.consumer_groups[consumer], self.offer_groups[offer]
        amounts = self._amounts[other]
        for resource, count in self._demands[group].asks:
            if amounts.get(resource, 0) < count:
                return False
        pair = self._places[group], other
        if pair not in self._accepted:
            self._accepted[pair] = self._is_place(*pair)
        return self._accepted[pair]

    def _is_place(self, place: int, offer: int) -> bool:
        demands, values = self._bare[place], self._values[offer]
        for key, wanted in demands.selector:
            if values.get(key, wanted) != wanted:
                return False
        return next(_reasons(demands, self._offered[offer]), None) is None

    def refusal(self, consumer: int, offer: int) -> str | None:
        """Give why a node takes no pod of a consumer, by their places in the lists; None where it does."""
        pair = self.consumer_groups[consumer], self.offer_groups[offer]
        if pair not in self._refusals:
            self._refusals[pair] = refusal_of(self._demands[pair[0]], self._offered[pair[1]])
        return self._refusals[pair]

    def unknown_labels(self, consumer: int, offer: int) -> tuple[str, ...]:
        """Give the labels that were taken as matching, by the places of both in the lists."""
        pair = self.consumer_groups[consumer], self.offer_groups[offer]
        if pair not in self._unknown:
            self._unknown[pair] = unknown_labels_of(self._demands[pair[0]], self._offered[pair[1]])
        return self._unknown[pair]
