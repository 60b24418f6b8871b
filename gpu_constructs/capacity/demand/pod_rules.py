"""The rules in pod specs about other pods: required affinity and anti-affinity, and topology spread constraints.

In this module, a consumer is a workload as the capacity plan sees it: all pods of one object that have the same spec. A
topology domain is a set of nodes with the same value of a label, the topology key. A condition is an assumption that
the plan cannot check. The report prints conditions after "fits, if".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from gpu_constructs.capacity.consumer import Condition, Consumer
from gpu_constructs.capacity.demand.app_objects import App
from gpu_constructs.capacity.demand.copies import pod_groups
from gpu_constructs.capacity.demand.present import present
from gpu_constructs.capacity.gathered import grouped
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.readable import at, members, name_of, namespace_of, number
from gpu_constructs.facts.selectors import selects
from gpu_constructs.records import dataclass, field

HOST = "kubernetes.io/hostname"
"""Label with a different value on each node, so that each topology domain is one node."""
# Labels that only controllers set, with a different value for each revision of the pods.
_OF_REVISIONS = frozenset({"controller-revision-hash", "pod-template-hash", "rollouts-pod-template-hash"})
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True)
class Affinity:
    """A required pod affinity or anti-affinity of one workload. It limits the nodes on which the pods can run.

    Attributes:
        owner: Index of the workload whose pod spec has the rule.
        keys: Topology keys of the rule; exactly one for an anti-affinity.
        others: Indices of the workloads whose pods the rule selects. They can include the index ``owner``.
    """

    owner: int
    keys: tuple[str, ...]
    others: frozenset[int]

    @property
    def key(self) -> str:
        """First topology key of the rule. An anti-affinity or a spread constraint has only one topology key."""
        return self.keys[0]


@dataclass(frozen=True)
class Spread(Affinity):
    """A topology spread constraint of one workload, which limits how unevenly its pods run in topology domains.

    Attributes:
        max_skew: Largest allowed difference between the numbers of pods in any domain and in the emptiest domain.
        min_domains: Smallest number of domains. If fewer exist, the scheduler assumes that the emptiest domain has no
            pods.
        honors_affinity: Whether the scheduler ignores nodes that the node affinity of the pods does not accept.
        honors_taints: Whether the scheduler ignores nodes whose taints the pods do not tolerate.
    """

    max_skew: int
    min_domains: int
    honors_affinity: bool
    honors_taints: bool


@dataclass
class Rules:
    """All rules in the pod specs of an app about other pods.

    Attributes:
        aways: Required anti-affinities. A pod with this rule never runs in the same topology domain as a selected pod.
        nears: Required affinities. A pod with this rule runs only in topology domains with selected pods.
        spreads: Topology spread constraints with ``DoNotSchedule``.
        conditions: Conditions for rules that the plan cannot check, each with the index of the workload that has the
            rule.
        of_revisions: Indices of the workloads with a rule that selects only pods of one revision of the workload.
    """

    aways: list[Affinity] = field(default_factory=list)
    nears: list[Affinity] = field(default_factory=list)
    spreads: list[Spread] = field(default_factory=list)
    conditions: list[tuple[int, Condition]] = field(default_factory=list)
    of_revisions: set[int] = field(default_factory=set)

    def labels(self) -> Iterator[tuple[int, str]]:
        """Yield a pair for each topology key of each rule: the index of the workload with the rule, and the key."""
        return ((one.owner, key) for one in (*self.aways, *self.spreads, *self.nears) for key in one.keys)

    def without(self, labels: Mapping[int, Collection[str]]) -> Rules:
        """Return a copy without the conditions of the plan, and without the rules that have a given topology key.

        Args:
            labels: Topology keys, such as ``kubernetes.io/hostname``, by the index of the workload that has the rules.
        """

        def is_kept(one: Affinity) -> bool:
            return set(one.keys).isdisjoint(labels.get(one.owner, ()))

        return Rules([*filter(is_kept, self.aways)], [*filter(is_kept, self.nears)], [*filter(is_kept, self.spreads)])

    def involved(self) -> frozenset[int]:
        """Return the indices of all workloads that have a rule or that a rule selects."""
        rules = (*self.aways, *self.nears, *self.spreads)
        return frozenset(index for one in rules for index in (one.owner, *one.others))


def bystanders(facts: Facts, consumers: Sequence[Consumer]) -> list[Consumer]:
    """Return the workloads of an app that request no GPU. An affinity of a GPU workload can select their pods.

    Args:
        facts: Manifests of the app, and data that the library derives from them.
        consumers: Workloads of the app that request GPUs.
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
    """Return the rules of the GPU workloads about other pods.

    Args:
        consumers: Workloads of the app that request GPUs.
        others: Workloads of the app that request no GPU. The plan does not place their pods.
    """
    everyone = _Everyone([*consumers, *others], len(consumers))
    for index, one in enumerate(consumers):
        # A pod that names its node bypasses the scheduler.
        if not one.pod_spec.get("nodeName") and not one.is_stopped:
            everyone.read(index)
    for other in others:
        for term in required_terms(other.pod_spec, "podAntiAffinity"):
            clause = (
                f"{other.kind} {other.title}, which requests no GPU and has an anti-affinity to the pods of this "
                "workload, leaves nodes to these pods"
            )
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
    """All workloads of an app, with an index that finds them by label. GPU workloads come first.

    Attributes:
        found: Rules of the workloads that the method ``read`` has processed, with the conditions for these rules.
    """

    def __init__(self, pods: Sequence[Consumer], consumers: int) -> None:
        self._pods = pods
        self._consumers = consumers
        labels = ((item, index) for index, one in enumerate(pods) for item in one.labels.items())
        self._labelled = grouped(each for each in labels if isinstance(each[0][1], str))
        self.found = Rules()

    def read(self, index: int) -> None:
        """Add the required pod affinity, pod anti-affinity and topology spread of a GPU workload to ``found``.

        Args:
            index: Index of the workload among all workloads of the app.
        """
        one, found = self._pods[index], self.found
        aways, spreads = len(found.aways), len(found.spreads)
        for term in required_terms(one.pod_spec, "podAntiAffinity"):
            who = self._meant(index, term, "podAntiAffinity")
            key = str(term.get("topologyKey"))
            # most_per_node already represents the anti-affinity of pods to their own kind on a node.
            who -= {index} if key == HOST else set()
            if who:
                found.aways.append(Affinity(index, (key,), frozenset(who)))
        is_near = self._read_near(index)
        constraints = members(one.pod_spec.get("topologySpreadConstraints"))
        for hard in (each for each in constraints if each.get("whenUnsatisfiable") != "ScheduleAnyway"):
            term = {**hard, "namespaces": None, "namespaceSelector": None}
            found.spreads.append(_spread(index, hard, self._meant(index, term, "topologySpreadConstraints")))
        has_rules = is_near or (aways, spreads) != (len(found.aways), len(found.spreads))
        # A ResourceClaim is not a pod.
        is_claim = one.kind == "ResourceClaim"
        if has_rules and (is_claim or one.is_for_each_node):
            what = "the pods that use the claim" if is_claim else "each of its pods"
            self._note(index, f"affinities and spread constraints let {what} run on the node of the GPU")

    def _read_near(self, index: int) -> bool:
        """Add the required pod affinity of one workload to the attribute ``found``.

        Return True if the affinity selects pods of workloads that request GPUs.
        """
        terms = required_terms(self._pods[index].pod_spec, "podAffinity")
        if not terms:
            return False
        who = frozenset.intersection(*(frozenset(self._meant(index, term, "podAffinity")) for term in terms))
        if who:
            self.found.nears.append(Affinity(index, tuple(str(term.get("topologyKey")) for term in terms), who))
        elif not any(noted == index for noted, _ in self.found.conditions):
            self._note(index, "a pod that the podAffinity selects, and that is not in this app, runs on the same nodes")
        return bool(who)

    def _note(self, index: int, clause: str) -> None:
        """Add a condition for the workload with this index: an assumption that the capacity plan cannot check.

        The report of the capacity plan prints ``clause`` after "fits, if".
        """
        self.found.conditions.append((index, Condition(clause)))

    def _meant(self, index: int, term: Mapping[str, Any], what: str) -> set[int]:
        """Return the indices of the GPU workloads whose pods a rule selects.

        The method adds a condition to ``found`` if the rule also selects pods that request no GPU, or if the plan
        cannot check the rule.

        Args:
            index: Index of the workload that has the rule.
            term: The rule: an affinity term or a topology spread constraint.
            what: Name of the rule in the text of the condition, such as ``podAffinity``.
        """
        selected = self._selected(term, self._pods[index])
        if is_of_revision(term):
            self.found.of_revisions.add(index)
        stranger = next((self._pods[other] for other in selected if other >= self._consumers), None)
        if stranger is not None:
            self._note(
                index,
                f"the {what} of the pods lets them run near {stranger.kind} {stranger.title}, which requests no GPU",
            )
        if term.get("mismatchLabelKeys") or term.get("namespaceSelector"):
            self._note(index, f"the {what} of the pods, which the plan cannot check, allows the placement")
        return {other for other in selected if other < self._consumers}

    def selected(self, term: Mapping[str, Any], owner: Consumer) -> list[int]:
        """Return the indices of the GPU workloads that an affinity term of the workload ``owner`` selects."""
        return [index for index in self._selected(term, owner) if index < self._consumers]

    def _selected(self, term: Mapping[str, Any], owner: Consumer) -> list[int]:
        """Return the indices of all workloads that an affinity term of the workload ``owner`` selects."""
        wanted = at(term, "labelSelector.matchLabels").items()
        near = [self._labelled.get((key, value), []) for key, value in wanted if isinstance(value, str)]
        candidates = min(near, key=len, default=range(len(self._pods)))
        return [
            index
            for index in candidates
            if self._pods[index].kind != "ResourceClaim" and meets(term, owner, self._pods[index])
        ]


def most_per_node(pod_spec: Mapping[str, Any], labels: Mapping[str, Any], namespace: str) -> int | None:
    """Return 1 if an anti-affinity of the pods allows only one of these pods on a node. Otherwise, return None."""
    return (
        1 if any(_keeps_off(term, labels, namespace) for term in required_terms(pod_spec, "podAntiAffinity")) else None
    )


def is_apart_by_revision(pod_spec: Mapping[str, Any], labels: Mapping[str, Any], namespace: str) -> bool:
    """Check whether each anti-affinity between the pods applies only to pods of the same revision.

    During an update, a new pod can then run on the same node as an old pod.
    """
    terms = [one for one in required_terms(pod_spec, "podAntiAffinity") if _keeps_off(one, labels, namespace)]
    return bool(terms) and all(is_of_revision(term) for term in terms)


def is_of_revision(term: Mapping[str, Any]) -> bool:
    """Check whether an affinity term selects only pods of the same revision of a workload."""
    return bool(_OF_REVISIONS.intersection(_texts(term.get("matchLabelKeys"))))


def meets(term: Mapping[str, Any], one: Consumer, other: Consumer) -> bool:
    """Check whether an affinity term of the workload ``one`` selects pods of the workload ``other``."""
    keys = [key for key in _texts(term.get("matchLabelKeys")) if key in one.labels]
    return (
        (other is one or not is_of_revision(term))
        and all(one.labels[key] == other.labels.get(key) for key in keys)
        and _is_about(term, one.namespace, other.labels, other.namespace)
    )


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def required_terms(pod_spec: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    """Return the required terms of one kind of affinity, for example of ``podAntiAffinity``."""
    return members(at(pod_spec, f"affinity.{kind}").get(_REQUIRED))


def _keeps_off(term: Mapping[str, Any], labels: Mapping[str, Any], namespace: str) -> bool:
    """Check whether an anti-affinity term prevents that two pods with these labels run on the same node."""
    is_known = term.get("topologyKey") == HOST and not term.get("mismatchLabelKeys")
    return is_known and _is_about(term, namespace, labels, namespace)


def _is_about(term: Mapping[str, Any], own: str, labels: Mapping[str, Any], namespace: str) -> bool:
    """Check whether an affinity term of one pod selects the pods with the given labels in the given namespace.

    Args:
        term: Affinity term of a pod.
        own: Namespace of the pod that has the term.
        labels: Labels of the pods that the term may select.
        namespace: Namespace of the pods that the term may select.
    """
    namespaces, selected = term.get("namespaces"), term.get("namespaceSelector")
    listed = _texts(namespaces) if namespaces or selected is not None else [own]
    # An empty selector selects every namespace. The plan does not know what other selectors select.
    return (namespace in listed or selected == {}) and selects(term.get("labelSelector"), labels)


def placement_notes(pod_spec: Mapping[str, Any]) -> Iterator[Condition]:
    """Yield a condition of the capacity plan if a scheduler other than kube-scheduler places the pods."""
    scheduler = pod_spec.get("schedulerName")
    if scheduler not in (None, "", "default-scheduler"):
        yield Condition(f"the scheduler {scheduler} places the pods where kube-scheduler would")
