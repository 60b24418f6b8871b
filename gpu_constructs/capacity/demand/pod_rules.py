"""What pods demand of one another: rules between consumers, read from their pod specs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpu_constructs.capacity.consumer import Condition, Consumer
from gpu_constructs.capacity.demand.app_objects import App
from gpu_constructs.capacity.demand.copies import pod_groups
from gpu_constructs.capacity.demand.present import present
from gpu_constructs.capacity.gathered import grouped
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.readable import at, members, name_of, namespace_of, number
from gpu_constructs.facts.selectors import selects

HOST = "kubernetes.io/hostname"
"""The label whose domains are nodes."""
# Labels that only a controller writes, another value for each revision of the pods.
_OF_REVISIONS = frozenset({"controller-revision-hash", "pod-template-hash", "rollouts-pod-template-hash"})
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True)
class Affinity:
    """A consumer's pods go only where pods of others are in the domain of each key, or keep out of their domains.

    Attributes:
        owner: The consumer.
        keys: The labels whose values are the domains; one of those that keep out.
        others: Consumers whose pods it means; it may be one of them.
    """

    owner: int
    keys: tuple[str, ...]
    others: frozenset[int]

    @property
    def key(self) -> str:
        """The only label, or the first."""
        return self.keys[0]


@dataclass(frozen=True)
class Spread(Affinity):
    """A consumer's pods are spread evenly over domains.

    Attributes:
        max_skew: How many pods a domain may have more than the emptiest one.
        min_domains: With fewer domains the emptiest one counts as empty.
        honors_affinity: Whether only nodes that its node affinity admits are domains.
        honors_taints: Whether only nodes whose taints it tolerates are.
    """

    max_skew: int
    min_domains: int
    honors_affinity: bool
    honors_taints: bool


@dataclass
class Rules:
    """Rules between consumers.

    Attributes:
        aways: Required anti-affinities.
        nears: Required affinities.
        spreads: Spread constraints with ``DoNotSchedule``.
        conditions: By consumer what cannot be modelled.
        of_revisions: Consumers with a rule about pods of one revision only.
    """

    aways: list[Affinity] = field(default_factory=list)
    nears: list[Affinity] = field(default_factory=list)
    spreads: list[Spread] = field(default_factory=list)
    conditions: list[tuple[int, Condition]] = field(default_factory=list)
    of_revisions: set[int] = field(default_factory=set)

    def labels(self) -> Iterator[tuple[int, str]]:
        """Return the labels that rules need, each with the consumer whose rule it is."""
        return ((one.owner, key) for one in (*self.aways, *self.spreads, *self.nears) for key in one.keys)

    def without(self, labels: Mapping[int, Collection[str]]) -> Rules:
        """Return the rules that need none of some labels."""

        def is_kept(one: Affinity) -> bool:
            return set(one.keys).isdisjoint(labels.get(one.owner, ()))

        return Rules([*filter(is_kept, self.aways)], [*filter(is_kept, self.nears)], [*filter(is_kept, self.spreads)])

    def involved(self) -> frozenset[int]:
        """Return the consumers that rules are about."""
        rules = (*self.aways, *self.nears, *self.spreads)
        return frozenset(index for one in rules for index in (one.owner, *one.others))


def bystanders(facts: Facts, consumers: Sequence[Consumer]) -> list[Consumer]:
    """Return the pods of an app that hold no GPU.

    Args:
        facts: The app.
        consumers: Those that hold some.
    """
    app = App(facts)
    known = {(one.subject, one.part) for one in consumers}
    each = ((index, facts.objects[index]) for index in present(app))
    return [
        Consumer(
            subject=index,
            kind=str(manifest["kind"]),
            namespace=namespace_of(manifest),
            name=name_of(manifest),
            part=group.part,
            asks={},
            pod_spec=group.spec,
            labels=group.labels,
        )
        for index, manifest in each
        for group in pod_groups(manifest, app)
        if group.makes_pods and not group.is_stopped and (index, group.part) not in known
    ]


def rules_between(consumers: Sequence[Consumer], others: Sequence[Consumer]) -> Rules:
    """Return the rules between the pods of consumers.

    Args:
        consumers: Those that hold GPUs.
        others: Pods of the app that hold none, which are not placed.
    """
    everyone = _Everyone([*consumers, *others], len(consumers))
    for index, one in enumerate(consumers):
        # A pod that names its node bypasses the scheduler.
        if not one.pod_spec.get("nodeName") and not one.is_stopped:
            everyone.read(index)
    for other in others:
        for term in required_terms(other.pod_spec, "podAntiAffinity"):
            clause = f"{other.kind} {other.title}, which holds no GPU and keeps off its pods, leaves nodes to it"
            everyone.found.conditions += ((index, Condition(clause)) for index in everyone.selected(term, other))
    return everyone.found


def _spread(index: int, constraint: Mapping[str, Any], others: set[int]) -> Spread:
    return Spread(
        owner=index,
        keys=(str(constraint.get("topologyKey")),),
        others=frozenset(others),
        max_skew=number(constraint.get("maxSkew"), 1),
        min_domains=number(constraint.get("minDomains"), 1),
        honors_affinity=constraint.get("nodeAffinityPolicy") != "Ignore",
        honors_taints=constraint.get("nodeTaintsPolicy") == "Honor",
    )


class _Everyone:
    """All pods of an app, those first that hold GPUs, by their labels.

    Attributes:
        found: Rules of those that were read.
    """

    def __init__(self, pods: Sequence[Consumer], consumers: int) -> None:
        self._pods = pods
        self._consumers = consumers
        labels = ((item, index) for index, one in enumerate(pods) for item in one.labels.items())
        self._labelled = grouped(each for each in labels if isinstance(each[0][1], str))
        self.found = Rules()

    def read(self, index: int) -> None:
        """Read the rules of a consumer's pods."""
        one, found = self._pods[index], self.found
        aways, spreads = len(found.aways), len(found.spreads)
        for term in required_terms(one.pod_spec, "podAntiAffinity"):
            who = self._meant(index, term, "podAntiAffinity")
            key = str(term.get("topologyKey"))
            # That it keeps off its own kind on a node is a limit of its own.
            who -= {index} if key == HOST else set()
            if who:
                found.aways.append(Affinity(index, (key,), frozenset(who)))
        is_near = self._read_near(index)
        constraints = members(one.pod_spec.get("topologySpreadConstraints"))
        for hard in (each for each in constraints if each.get("whenUnsatisfiable") != "ScheduleAnyway"):
            term = {**hard, "namespaces": None, "namespaceSelector": None}
            found.spreads.append(_spread(index, hard, self._meant(index, term, "topologySpreadConstraints")))
        has_rules = is_near or (aways, spreads) != (len(found.aways), len(found.spreads))
        # A claim is not a pod.
        is_claim = one.kind == "ResourceClaim"
        if has_rules and (is_claim or one.is_for_each_node):
            what = "the pods that hold it" if is_claim else "each of its pods"
            self._note(index, f"their rules for other pods let {what} go where the GPU is")

    def _read_near(self, index: int) -> bool:
        terms = required_terms(self._pods[index].pod_spec, "podAffinity")
        if not terms:
            return False
        who = frozenset.intersection(*(frozenset(self._meant(index, term, "podAffinity")) for term in terms))
        if who:
            self.found.nears.append(Affinity(index, tuple(str(term.get("topologyKey")) for term in terms), who))
        elif not any(noted == index for noted, _ in self.found.conditions):
            self._note(index, "a pod that its podAffinity selects, of which this app has none, runs there")
        return bool(who)

    def _note(self, index: int, clause: str) -> None:
        self.found.conditions.append((index, Condition(clause)))

    def _meant(self, index: int, term: Mapping[str, Any], what: str) -> set[int]:
        """Return the consumers that a term means; note what of it cannot be modelled."""
        selected = self._selected(term, self._pods[index])
        if is_of_revision(term):
            self.found.of_revisions.add(index)
        stranger = next((self._pods[other] for other in selected if other >= self._consumers), None)
        if stranger is not None:
            self._note(index, f"its {what} lets it go beside {stranger.kind} {stranger.title}, which holds no GPU")
        if term.get("mismatchLabelKeys") or term.get("namespaceSelector"):
            self._note(index, f"its {what} allows such a placement, which is not looked at")
        return {other for other in selected if other < self._consumers}

    def selected(self, term: Mapping[str, Any], owner: Consumer) -> list[int]:
        """Return the consumers that a term of another pod means."""
        return [index for index in self._selected(term, owner) if index < self._consumers]

    def _selected(self, term: Mapping[str, Any], owner: Consumer) -> list[int]:
        wanted = at(term, "labelSelector.matchLabels").items()
        near = [self._labelled.get((key, value), []) for key, value in wanted if isinstance(value, str)]
        candidates = min(near, key=len, default=range(len(self._pods)))
        return [
            index
            for index in candidates
            if self._pods[index].kind != "ResourceClaim" and meets(term, owner, self._pods[index])
        ]


def most_per_node(pod_spec: Mapping[str, Any], labels: Mapping[str, Any], namespace: str) -> int | None:
    """Return 1 where pods keep one another off their nodes, by their own required anti-affinity."""
    return (
        1 if any(_keeps_off(term, labels, namespace) for term in required_terms(pod_spec, "podAntiAffinity")) else None
    )


def is_apart_by_revision(pod_spec: Mapping[str, Any], labels: Mapping[str, Any], namespace: str) -> bool:
    """Check whether pods keep off only those of their own revision, so that an update may go beside the old ones."""
    terms = [one for one in required_terms(pod_spec, "podAntiAffinity") if _keeps_off(one, labels, namespace)]
    return bool(terms) and all(is_of_revision(term) for term in terms)


def is_of_revision(term: Mapping[str, Any]) -> bool:
    """Check whether a term is about pods of one revision only."""
    return bool(_OF_REVISIONS.intersection(_texts(term.get("matchLabelKeys"))))


def meets(term: Mapping[str, Any], one: Consumer, other: Consumer) -> bool:
    """Check whether a term of a consumer's pods is about the pods of another one, or about its own."""
    keys = [key for key in _texts(term.get("matchLabelKeys")) if key in one.labels]
    return (
        (other is one or not is_of_revision(term))
        and all(one.labels[key] == other.labels.get(key) for key in keys)
        and _is_about(term, one.namespace, other.labels, other.namespace)
    )


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def required_terms(pod_spec: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    """Return the terms that must hold of an affinity, as ``podAntiAffinity``."""
    return members(at(pod_spec, f"affinity.{kind}").get(_REQUIRED))


def _keeps_off(term: Mapping[str, Any], labels: Mapping[str, Any], namespace: str) -> bool:
    is_known = term.get("topologyKey") == HOST and not term.get("mismatchLabelKeys")
    return is_known and _is_about(term, namespace, labels, namespace)


def _is_about(term: Mapping[str, Any], own: str, labels: Mapping[str, Any], namespace: str) -> bool:
    """Check whether a term of pods of one namespace is about pods of another."""
    namespaces, selected = term.get("namespaces"), term.get("namespaceSelector")
    listed = _texts(namespaces) if namespaces or selected is not None else [own]
    # An empty selector takes every namespace; what another one takes is not known here.
    return (namespace in listed or selected == {}) and selects(term.get("labelSelector"), labels)


def placement_notes(pod_spec: Mapping[str, Any]) -> Iterator[Condition]:
    """Return what else decides where its pods go, which a plan does not look at."""
    scheduler = pod_spec.get("schedulerName")
    if scheduler not in (None, "", "default-scheduler"):
        yield Condition(f"its scheduler {scheduler} places its pods where kube-scheduler would")
