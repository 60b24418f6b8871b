"""A search for a placement of pods that follows their required topology spread, affinity and anti-affinity rules.

The search accepts and rejects nodes as kube-scheduler does. A *consumer* is a workload as the capacity plan sees it:
equal pods of one object that request GPUs. A *domain* is the set of nodes that have the same value of the label in
``topologyKey``. The *owner* of a rule is the workload whose pod spec contains the rule. The *others* of a rule are the
workloads whose pods the label selector of the rule matches.

Sources:
    kubernetes/kubernetes@v1.36.2:pkg/scheduler/framework/plugins/podtopologyspread/filtering.go: A node must have the
    label in ``topologyKey``. With the new pod, the domain of this node may have at most ``maxSkew`` pods more than the
    domain with the fewest pods. By default, nodes that the node affinity rejects belong to no domain. Full nodes and
    tainted nodes do belong to one.

    kubernetes/kubernetes@v1.36.2:pkg/scheduler/framework/plugins/interpodaffinity/filtering.go: A running
    pod also keeps away new pods that its anti-affinity selects. For each affinity term of a new pod, the domain of the
    node must contain a pod that all terms select. If the cluster has no such pod, the terms must select the new pod.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

from gpu_constructs.capacity.demand.pod_rules import HOST, Affinity, Rules, Spread
from gpu_constructs.capacity.eligibility import refusal
from gpu_constructs.capacity.gathered import grouped, summed
from gpu_constructs.capacity.matching import Matching
from gpu_constructs.capacity.packing import Group
from gpu_constructs.capacity.placed_pods import PlacedPods
from gpu_constructs.capacity.placement_keys import (
    ANY_TAINT,
    Offered,
    Rule,
    admits_plain_nodes,
    offer_key,
    placement_key,
)
from gpu_constructs.records import dataclass, replace

_MOST_STATES = 4_000
"""Number of visited placements after which the search gives up."""
_MOST_HOPELESS = 300
"""Number of visited placements after which the search gives up if it is already certain that not all pods fit."""
_MOST_PAIRS = 100_000
"""Largest product of rules and nodes for which a search runs. A pool counts as one node."""
_MOST_WORK = 3_000_000
"""Largest product of nodes, workloads and pods for which a search runs."""

_Pods = tuple[int, ...]
"""Number of pods of each workload on a node, by the index of the workload."""
_State = tuple[tuple[_Pods, ...], ...]
"""Pods of each node. The outer tuple has one entry for each group of nodes."""


@dataclass(frozen=True)
class Found:
    """The result of a search for a placement.

    Attributes:
        answer: Whether all pods have room; ``undecided`` if the search gave up.
        placed: Best placement that the search found.
        is_alone: Whether the answer assumes that the cluster has no nodes besides those in the inventory.
    """

    answer: Literal["yes", "no", "undecided"]
    placed: PlacedPods
    is_alone: bool = False


@dataclass(frozen=True)
class _Group:
    """Equal nodes that are in the same topology domains, except for the domains of ``kubernetes.io/hostname``.

    Attributes:
        kind: Index of the larger group in ``Matching.kinds`` that contains these nodes.
        values: Value of each label that rules use as ``topologyKey``; None for a missing label.
        count: Number of nodes in the group.
    """

    kind: int
    values: Mapping[str, str | None]
    count: int
    domains_of: frozenset[Spread]
    """Spread constraints that count the nodes of this group as part of a topology domain."""


class BetweenPods:
    """The topology spread, affinity and anti-affinity rules of pods, and a search for placements that follow the rules.

    Attributes:
        undeclared: Labels with unknown values that rules use as ``topologyKey``, by the index of the workload that has
            the rule. The search ignores rules with such labels.
        involved: Indices of the workloads whose pods have a rule, or whose pods the label selector of a rule matches.
    """

    def __init__(self, matching: Matching, rules: Rules, runtime_classes: Mapping[str, Mapping[str, Any]]) -> None:
        self._matching = matching
        self._demands = {
            one.owner: placement_key(matching.consumers[one.owner], runtime_classes) for one in rules.spreads
        }
        self.undeclared: dict[int, list[str]] = {}
        self._groups: list[_Group] = []
        self._of_revisions = rules.of_revisions
        self._rules = rules
        self.involved = rules.involved()
        self._is_large = len([*rules.labels()]) * len(matching.offers) > _MOST_PAIRS
        if self.involved and not self._is_large:
            self._look(rules)

    def _look(self, rules: Rules) -> None:
        matching = self._matching
        offered = [offer_key(offer) for offer in matching.offers]
        self.undeclared = grouped(
            (owner, key) for owner, key in rules.labels() if key != HOST and self._is_open(offered, owner, key)
        )
        self._rules = known = rules.without(self.undeclared)
        self.involved = known.involved()
        keys = sorted({key for _, key in known.labels() if key != HOST})
        values = [tuple(one.values.get(key) for key in keys) for one in offered]
        domains = [frozenset(spread for spread in known.spreads if self._is_domain(spread, one)) for one in offered]
        counts = summed(
            ((kind, values[at], domains[at]), matching.offers[at].count)
            for kind, those in enumerate(matching.kinds)
            for at in those
        )
        self._groups = [
            _Group(kind, dict(zip(keys, values, strict=True)), count, domains)
            for (kind, values, domains), count in counts.items()
        ]

    def _is_open(self, offered: Sequence[Offered], owner: int, key: str) -> bool:
        """Check whether the label ``key`` is unknown for at least one node that accepts pods of workload ``owner``."""
        taking = (at for kind in self._matching.takers[owner] for at in self._matching.kinds[kind])
        return any(offered[at].judge(Rule(key, "Exists")) is None for at in taking)

    def _is_domain(self, spread: Spread, offered: Offered) -> bool:
        """Check whether a topology spread constraint counts the pods on a node.

        If ``nodeAffinityPolicy`` is ``Honor``, the constraint skips nodes that the node affinity rejects. If
        ``nodeTaintsPolicy`` is ``Honor``, it skips nodes with taints that the pods do not tolerate.
        """
        demands = replace(self._demands[spread.owner], asks=(), most_asked=())
        if not spread.honors_taints:
            demands = replace(demands, tolerations=(ANY_TAINT,))
        if not spread.honors_affinity:
            demands = replace(demands, selected=(), terms=None)
        return refusal(demands, offered) is None

    def is_of_revisions(self, unit: Collection[int]) -> bool:
        """Check whether a rule of the given workloads selects only pods of one revision, by ``matchLabelKeys``."""
        return not self._of_revisions.isdisjoint(unit)

    def is_near_others(self, unit: Collection[int], pods: Mapping[int, int]) -> bool:
        """Check whether a podAffinity of the given workloads selects another workload that has no running pods.

        Args:
            unit: Indices of the given workloads. None of these counts as another workload.
            pods: Number of running pods, by the index of the workload.
        """
        others = {index for one in self._rules.nears if one.owner in unit for index in one.others}
        return any(not pods.get(index) for index in others - {*unit})

    def search(self, least: Mapping[int, int], most: Mapping[int, int]) -> Found | None:
        """Search for a placement of pods that follows the topology spread, affinity and anti-affinity rules.

        Args:
            least: Number of pods to place before all other pods, by the index of the workload.
            most: Number of all pods to place, by the index of the workload.

        Returns:
            Whether all pods have room, and the best placement found. None if the cluster is too large for a search.
        """
        work = len(most) * sum(most.values()) * sum(group.count for group in self._groups)
        if self._is_large or work > _MOST_WORK:
            return None
        if any(admits_plain_nodes(self._demands[one.owner]) for one in self._rules.spreads):
            found = _Search(self, least, most, has_other_nodes=True).run()
            if found.answer == "yes":
                return found
            return replace(_Search(self, least, most, has_other_nodes=False).run(), is_alone=True)
        return _Search(self, least, most, has_other_nodes=False).run()


class _Search:
    """A search over all orders in which kube-scheduler can place the pods, and over all nodes that it can choose.

    A state is the number of pods of each workload on each node. The search visits each state at most once.
    """

    def __init__(
        self, between: BetweenPods, least: Mapping[int, int], most: Mapping[int, int], *, has_other_nodes: bool
    ) -> None:
        self._matching = between._matching
        self._groups = between._groups
        self._rules = between._rules
        self._least, self._most = least, most
        self._opens = {
            one for one in self._rules.spreads if has_other_nodes and admits_plain_nodes(between._demands[one.owner])
        }
        consumers = self._matching.consumers
        order = sorted(
            (index for index, count in most.items() if count),
            key=lambda i: (not least.get(i), -consumers[i].priority, -sum(self._matching.size_of(i)), i),
        )
        self._turns = [index for index in order if index in between.involved]
        self._free = [index for index in order if index not in between.involved]

    def run(self) -> Found:
        """Return whether all pods have room, and the best placement that the search found."""
        everyone, daemons = range(len(self._matching.consumers)), self._matching.daemons
        alone = [tuple(int(index in daemons[group.kind]) for index in everyone) for group in self._groups]
        state: _State = tuple((pods,) * group.count for pods, group in zip(alone, self._groups, strict=True))
        best, best_rank = state, self._rank(state)
        seen = {state}
        stack = [self._next(state)]
        wanted = sum(self._most.values())
        is_hopeless = any(self._is_too_little(one) for one in self._rules.spreads)
        while stack:
            state = next(stack[-1], ())
            if not state:
                stack.pop()
                continue
            if state in seen:
                continue
            seen.add(state)
            rank = self._rank(state)
            if rank > best_rank:
                best, best_rank = state, rank
            if rank[1] == wanted:
                return Found("yes", self._placed(state))
            if len(seen) > wanted + (_MOST_HOPELESS if is_hopeless else _MOST_STATES):
                return Found("no" if is_hopeless else "undecided", self._placed(self._filled(best)))
            stack.append(self._next(state))
        return Found("no" if best_rank[1] < wanted else "yes", self._placed(self._filled(best)))

    def _is_too_little(self, rule: Spread) -> bool:
        """Check whether a spread constraint keeps some pods of its own workload Pending even if all nodes are empty.

        Return False if the constraint does not select exactly the pods of this workload.
        """
        index = rule.owner
        if rule.others != {index}:
            return False
        size, most = self._matching.size_of(index), self._matching.consumers[index].most_per_node

        def room(at: int, _position: int) -> int:
            kind = self._groups[at].kind
            if kind not in self._matching.takers[index]:
                return 0
            fitting = [has // n for has, n in zip(self._matching.bins[kind].size, size, strict=True) if n]
            return min(fitting if most is None else [*fitting, most])

        domains = self._domains(rule, room)
        highest = rule.max_skew + self._emptiest(rule, domains)
        return sum(min(each, highest) for each in domains.values()) < self._most.get(index, 0)

    def _domains(self, rule: Spread, amount: Callable[[int, int], int]) -> dict[object, int]:
        """Return, for each topology domain of a spread constraint, the sum of ``amount`` over the nodes of the domain.

        Args:
            rule: Spread constraint.
            amount: Function that returns the amount for one node, for example how many pods run there. Its arguments
                are the index of the group that contains the node, and the position of the node in this group.
        """
        return summed(
            ((at, position) if rule.key == HOST else group.values[rule.key], amount(at, position))
            for at, group in enumerate(self._groups)
            if rule in group.domains_of and (rule.key == HOST or group.values[rule.key] is not None)
            for position in range(group.count)
        )

    def _emptiest(self, rule: Spread, domains: Mapping[object, int]) -> int:
        """Return the smallest amount in ``domains``, which maps topology domains to amounts, such as numbers of pods.

        The result is 0 if there are fewer domains than ``minDomains``, or if a node that is not in the inventory may be
        an empty domain.
        """
        is_short = len(domains) < rule.min_domains or rule in self._opens
        return 0 if is_short else min(domains.values(), default=0)

    def _counts(self, state: _State) -> dict[int, int]:
        return {index: sum(pods[index] for nodes in state for pods in nodes) for index in self._most}

    def _rank(self, state: _State) -> tuple[int, int]:
        counts = self._counts(state)
        return sum(min(counts[index], least) for index, least in self._least.items()), sum(counts.values())

    def _next(self, state: _State) -> Iterator[_State]:
        """Yield the states that have one pod more than the given state.

        A state is the number of pods of each workload on each node. Workloads that no rule concerns get their pods in a
        fixed order, one workload after the other.
        """
        counts = self._counts(state)
        turns = [index for index in self._turns if counts[index] < self._most[index]]
        free = [index for index in self._free if counts[index] < self._most[index]]
        # Without rules, the order of pods does not affect the result, so place these workloads in one order only.
        for index in [*turns, *free[:1]]:
            yield from self._with_one(state, index)

    def _with_one(self, state: _State, index: int) -> Iterator[_State]:
        """Yield the states (numbers of pods on each node) that have one more pod of the given workload on some node."""
        options = sorted(
            (self._preference(state, at, pods, index), at, pods)
            for at, group in enumerate(self._groups)
            if group.kind in self._matching.takers[index]
            for pods in dict.fromkeys(state[at])
            if self._takes(state, at, pods, index)
        )
        return (_one_more(state, at, pods, index) for _, at, pods in options)

    def _filled(self, state: _State) -> _State:
        """Return the given state with as many further pods as fit, from the workloads that no rule concerns."""
        for index in self._free:
            for _ in range(self._most[index] - self._counts(state)[index]):
                fuller = next(self._with_one(state, index), None)
                if fuller is None:
                    break
                state = fuller
        return state

    def _preference(self, state: _State, at: int, pods: _Pods, index: int) -> tuple[int, int]:
        spread = [
            self._in_domain(state, at, pods, one.key, one.others) for one in self._rules.spreads if one.owner == index
        ]
        return sum(spread), sum(self._left(at, pods))

    def _mine(self, pods: _Pods) -> dict[int, int]:
        return {index: pods[index] for index in self._most if pods[index]}

    def _left(self, at: int, pods: _Pods) -> tuple[int, ...]:
        return self._matching.left(self._groups[at].kind, self._mine(pods))

    def _takes(self, state: _State, at: int, pods: _Pods, index: int) -> bool:
        size = self._matching.size_of(index)
        most = self._matching.consumers[index].most_per_node
        return (
            (most is None or pods[index] < most)
            and all(has >= takes for has, takes in zip(self._left(at, pods), size, strict=True))
            and all(self._keeps_away(state, at, pods, index, one) for one in self._rules.aways)
            and all(self._is_near(state, at, pods, one) for one in self._rules.nears if one.owner == index)
            and all(self._is_even(state, at, pods, one) for one in self._rules.spreads if one.owner == index)
        )

    def _in_domain(self, state: _State, at: int, pods: _Pods, key: str, others: frozenset[int]) -> int:
        """Return how many pods of the workloads ``others`` run in the topology domain of a node.

        The label ``key`` defines the domain. The argument ``state`` contains the pods on all nodes. The node is in the
        group with the index ``at``, and ``pods`` is the number of pods of each workload on the node.
        """
        if key == HOST:
            return _of(pods, others)
        value = self._groups[at].values[key]
        if value is None:
            return 0
        same = (nodes for group, nodes in zip(self._groups, state, strict=True) if group.values[key] == value)
        return sum(_of(each, others) for nodes in same for each in nodes)

    def _keeps_away(self, state: _State, at: int, pods: _Pods, index: int, rule: Affinity) -> bool:
        kept_off = rule.others if rule.owner == index else frozenset()
        kept_off |= {rule.owner} if index in rule.others else set()
        return not self._in_domain(state, at, pods, rule.key, kept_off)

    def _is_near(self, state: _State, at: int, pods: _Pods, rule: Affinity) -> bool:
        values = self._groups[at].values
        if any(key != HOST and values[key] is None for key in rule.keys):
            return False
        if all(self._in_domain(state, at, pods, key, rule.others) for key in rule.keys):
            return True
        is_first = not any(_of(each, rule.others) for nodes in state for each in nodes)
        return is_first and rule.owner in rule.others

    def _is_even(self, state: _State, at: int, pods: _Pods, rule: Spread) -> bool:
        if rule.key != HOST and self._groups[at].values[rule.key] is None:
            return False
        domains = self._domains(rule, lambda at, position: _of(state[at][position], rule.others))
        if rule.key == HOST:
            there = _of(pods, rule.others) if rule in self._groups[at].domains_of else 0
        else:
            there = domains.get(self._groups[at].values[rule.key], 0)
        return there + (rule.owner in rule.others) - self._emptiest(rule, domains) <= rule.max_skew

    def _placed(self, state: _State) -> PlacedPods:
        found = [
            Group(group.kind, nodes.count(pods), self._mine(pods), self._left(at, pods))
            for at, (group, nodes) in enumerate(zip(self._groups, state, strict=True))
            for pods in dict.fromkeys(nodes)
        ]
        return PlacedPods(self._matching, found)


def _of(pods: _Pods, consumers: Collection[int]) -> int:
    return sum(pods[index] for index in consumers)


def _one_more(state: _State, at: int, pods: _Pods, index: int) -> _State:
    nodes = list(state[at])
    nodes.remove(pods)
    nodes.append((*pods[:index], pods[index] + 1, *pods[index + 1 :]))
    return (*state[:at], tuple(sorted(nodes)), *state[at + 1 :])
