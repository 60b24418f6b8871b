"""What pods demand of one another: rules between consumers, read from their pod specs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpu_constructs.capacity.condition import Condition
from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.demand.apart import HOST as HOST
from gpu_constructs.capacity.demand.apart import is_of_revision, meets, required_terms
from gpu_constructs.capacity.demand.app_objects import App
from gpu_constructs.capacity.demand.copies import pod_groups
from gpu_constructs.capacity.demand.pod_group import mapping, members, number
from gpu_constructs.capacity.demand.present import present
from gpu_constructs.rules.facts import Facts, namespace_of


@dataclass(frozen=True)
class Away:
    """A consumer's pods keep out of domains with pods of others, and those out of theirs.

    Attributes:
        owner: The consumer.
        key: The label whose values are the domains.
        others: Consumers whose pods it means; it may be one of them.
    """

    owner: int
    key: str
    others: frozenset[int]


@dataclass(frozen=True)
class Near:
    """A consumer's pods go only where there is a pod of others in the domain of each key.

    Attributes:
        owner: The consumer.
        keys: The labels.
        others: Consumers whose pods all terms mean; it may be one of them.
    """

    owner: int
    keys: tuple[str, ...]
    others: frozenset[int]


@dataclass(frozen=True)
class Spread:
    """A consumer's pods are spread evenly over domains.

    Attributes:
        owner: The consumer.
        key: The label whose values are the domains.
        others: Consumers whose pods count; it may be one of them.
        max_skew: How many pods a domain may have more than the emptiest one.
        min_domains: With fewer domains the emptiest one counts as empty.
        honors_affinity: Whether only nodes that its node affinity admits are domains.
        honors_taints: Whether only nodes whose taints it tolerates are.
    """

    owner: int
    key: str
    others: frozenset[int]
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

    aways: list[Away] = field(default_factory=list)
    nears: list[Near] = field(default_factory=list)
    spreads: list[Spread] = field(default_factory=list)
    conditions: list[tuple[int, Condition]] = field(default_factory=list)
    of_revisions: set[int] = field(default_factory=set)

    def labels(self) -> Iterator[tuple[int, str]]:
        """Return the labels that rules need, each with the consumer whose rule it is."""
        yield from ((one.owner, one.key) for one in self.aways)
        yield from ((one.owner, one.key) for one in self.spreads)
        yield from ((one.owner, key) for one in self.nears for key in one.keys)

    def without(self, labels: Mapping[int, Collection[str]]) -> Rules:
        """Return the rules that need none of some labels."""
        return Rules(
            [one for one in self.aways if one.key not in labels.get(one.owner, ())],
            [one for one in self.nears if not set(one.keys) & set(labels.get(one.owner, ()))],
            [one for one in self.spreads if one.key not in labels.get(one.owner, ())],
        )

    def involved(self) -> frozenset[int]:
        """Return the consumers that rules are about."""
        rules: list[Away | Near | Spread] = [*self.aways, *self.nears, *self.spreads]
        return frozenset(index for one in rules for index in (one.owner, *one.others))


def bystanders(facts: Facts, consumers: Sequence[Consumer]) -> list[Consumer]:
    """Return the pods of an app that hold no GPU.

    Args:
        facts: The app.
        consumers: Those that hold some.
    """
    app = App(facts)
    known = {(one.subject, one.part) for one in consumers}
    found = []
    for index in present(app).indexes:
        manifest = facts.objects[index]
        for group in pod_groups(manifest, app):
            has_pods = not group.is_stopped and (group.is_for_each_node or group.copies * group.pods_each > 0)
            if has_pods and (index, group.part) not in known:
                found.append(
                    Consumer(
                        subject=index,
                        kind=str(manifest["kind"]),
                        namespace=namespace_of(manifest),
                        name=str(mapping(manifest.get("metadata")).get("name")),
                        part=group.part,
                        asks={},
                        pod_spec=group.spec,
                        labels=group.labels,
                    )
                )
    return found


def rules_between(consumers: Sequence[Consumer], others: Sequence[Consumer]) -> Rules:
    """Return the rules between the pods of consumers.

    Args:
        consumers: Those that hold GPUs.
        others: Pods of the app that hold none, which are not placed.
    """
    found = Rules()
    everyone = _Everyone([*consumers, *others], len(consumers))
    for index, one in enumerate(consumers):
        spec = one.pod_spec
        # A pod that names its node bypasses the scheduler; a claim is not a pod.
        if spec.get("nodeName") or one.is_stopped:
            continue
        is_claim = one.kind == "ResourceClaim"
        for term in required_terms(spec, "podAntiAffinity"):
            who = everyone.meant(index, term, "podAntiAffinity", found)
            key = str(term.get("topologyKey"))
            # That it keeps off its own kind on a node is a limit of its own.
            who -= {index} if key == HOST else set()
            if who:
                found.aways.append(Away(index, key, frozenset(who)))
        near = required_terms(spec, "podAffinity")
        if near:
            selected = [everyone.meant(index, term, "podAffinity", found) for term in near]
            all_of = frozenset(set.intersection(*selected))
            if all_of:
                found.nears.append(Near(index, tuple(str(term.get("topologyKey")) for term in near), all_of))
            elif not any(at == index for at, _ in found.conditions):
                found.conditions.append(
                    (index, Condition("a pod that its podAffinity selects, of which this app has none, runs there"))
                )
        for constraint in members(spec.get("topologySpreadConstraints")):
            if constraint.get("whenUnsatisfiable") != "ScheduleAnyway":
                term = {**constraint, "namespaces": None, "namespaceSelector": None}
                who = everyone.meant(index, term, "topologySpreadConstraints", found)
                found.spreads.append(_spread(index, constraint, frozenset(who)))
        if (is_claim or one.is_for_each_node) and any(at == index for at, _ in found.labels()):
            what = "the pods that hold it" if is_claim else "each of its pods"
            found.conditions.append((index, Condition(f"their rules for other pods let {what} go where the GPU is")))
    for other in others:
        for term in required_terms(other.pod_spec, "podAntiAffinity"):
            for index in everyone.selected(term, other):
                clause = f"{other.kind} {other.title}, which holds no GPU and keeps off its pods, leaves nodes to it"
                found.conditions.append((index, Condition(clause)))
    return found


def _spread(index: int, constraint: Mapping[str, Any], others: frozenset[int]) -> Spread:
    return Spread(
        owner=index,
        key=str(constraint.get("topologyKey")),
        others=others,
        max_skew=number(constraint.get("maxSkew"), 1),
        min_domains=number(constraint.get("minDomains"), 1),
        honors_affinity=constraint.get("nodeAffinityPolicy") != "Ignore",
        honors_taints=constraint.get("nodeTaintsPolicy") == "Honor",
    )


class _Everyone:
    """All pods of an app, those first that hold GPUs, by their labels."""

    def __init__(self, pods: Sequence[Consumer], consumers: int) -> None:
        self._pods = pods
        self._consumers = consumers
        self._labelled: dict[tuple[str, str], list[int]] = {}
        for index, one in enumerate(pods):
            for key, value in one.labels.items():
                if isinstance(value, str):
                    self._labelled.setdefault((key, value), []).append(index)

    def meant(self, index: int, term: Mapping[str, Any], what: str, found: Rules) -> set[int]:
        """Return the consumers that a term means; note what of it cannot be modelled."""
        selected = self._selected(term, self._pods[index])
        if is_of_revision(term):
            found.of_revisions.add(index)
        stranger = next((self._pods[at] for at in selected if at >= self._consumers), None)
        if stranger is not None:
            clause = f"its {what} lets it go beside {stranger.kind} {stranger.title}, which holds no GPU"
            found.conditions.append((index, Condition(clause)))
        if term.get("mismatchLabelKeys") or term.get("namespaceSelector"):
            found.conditions.append((index, Condition(f"its {what} allows such a placement, which is not looked at")))
        return {at for at in selected if at < self._consumers}

    def selected(self, term: Mapping[str, Any], owner: Consumer) -> list[int]:
        """Return the consumers that a term of another pod means."""
        return [at for at in self._selected(term, owner) if at < self._consumers]

    def _selected(self, term: Mapping[str, Any], owner: Consumer) -> list[int]:
        wanted = mapping(mapping(term.get("labelSelector")).get("matchLabels"))
        near = [self._labelled.get((key, value), []) for key, value in wanted.items() if isinstance(value, str)]
        candidates = min(near, key=len, default=range(len(self._pods)))
        return [
            at for at in candidates if self._pods[at].kind != "ResourceClaim" and meets(term, owner, self._pods[at])
        ]
