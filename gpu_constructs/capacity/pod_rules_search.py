"""Where pods may go beside one another: hard topology spread and required affinities, as kube-scheduler filters nodes.

Sources:
    kubernetes/kubernetes@v1.36.2:pkg/scheduler/framework/plugins/podtopologyspread/filtering.go: a node must have the
    key, and its domain at most ``maxSkew`` pods more than the emptiest domain, the new pod among them. Nodes that the
    node affinity refuses are not domains; nodes that are full or tainted are.

    kubernetes/kubernetes@v1.36.2:pkg/scheduler/framework/plugins/interpodaffinity/filtering.go: anti-affinity holds for
    both sides; affinity needs one pod that all terms select in each of their domains, unless no pod anywhere is such
    and the pod itself is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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

_MOST_STATES = 4_000
"""Placements that are looked at before the search gives up."""
_MOST_HOPELESS = 300
"""The same where not all pods have a place, so that only the best placement is looked for."""
_MOST_PAIRS = 100_000
"""Rules times nodes and pools up to which it is looked at which nodes are whose domains."""
_MOST_WORK = 3_000_000
"""Nodes times consumers times pods up to which there is a search at all."""

_Pods = tuple[int, ...]
"""How many pods of each consumer a node has."""
_State = tuple[tuple[_Pods, ...], ...]
"""For each group of nodes what its nodes have, in order."""


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes:
        answer: Whether all pods have a place; ``undecided`` where the search gave up.
        placed: The best placement that was found.
        is_alone: Whether that holds only if the cluster has no nodes beside those of the inventory.
    """

    answer: Literal["yes", "no", "undecided"]
    placed: PlacedPods
    is_alone: bool = False


@dataclass(frozen=True)
class _Group:
    """Nodes that are alike to all rules, but for their names."""

    kind: int
    values: Mapping[str, str | None]
    count: int
    domains_of: frozenset[Spread]
    """Spread constraints for which the nodes form a domain."""


class BetweenPods:
    """The rules between the pods of some consumers, and placements that keep them.

    Attributes:
        undeclared: For each consumer the labels that its rules need and whose value is not known; these rules
            are left out.
        involved: Consumers that a rule is about, on either side.
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
        """Check whether it is not known if all nodes that take a consumer's pods have a label."""
        taking = (at for kind in self._matching.takers[owner] for at in self._matching.kinds[kind])
        return any(offered[at].judge(Rule(key, "Exists")) is None for at in taking)

    def _is_domain(self, spread: Spread, offered: Offered) -> bool:
        """Check whether a node counts for a spread: whatever it holds, and unless told otherwise its taints."""
        demands = replace(self._demands[spread.owner], asks=(), most_asked=())
        if not spread.honors_taints:
            demands = replace(demands, tolerations=(ANY_TAINT,))
        if not spread.honors_affinity:
            demands = replace(demands, selected=(), terms=None)
        return refusal(demands, offered) is None

    def is_of_revisions(self, unit: Collection[int]) -> bool:
        """Check whether a rule of some consumers is about pods of one revision only, so that an update is another."""
        return not self._of_revisions.isdisjoint(unit)

    def is_near_others(self, unit: Collection[int], pods: Mapping[int, int]) -> bool:
        """Check whether consumers must be near pods that are neither their own nor among some."""
        others = {index for one in self._rules.nears if one.owner in unit for index in one.others}
        return any(not pods.get(index) for index in others - {*unit})

    def search(self, least: Mapping[int, int], most: Mapping[int, int]) -> Found | None:
        """Look for a place for all pods.

        Args:
            least: Pods by consumer that matter more.
            most: All pods by consumer.

        Returns:
            What was found; None where there are too many nodes and pods to look.
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
    """All orders in which kube-scheduler could place pods, each state once."""

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
        """Search until all pods have a place, all states have been seen, or too many."""
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
        """Check whether domains are too small for a consumer that is spread by itself, whatever else runs."""
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
        """Return an amount of each domain of a rule.

        Args:
            rule: The rule.
            amount: The amount of a node, by its group and its position there.
        """
        return summed(
            ((at, position) if rule.key == HOST else group.values[rule.key], amount(at, position))
            for at, group in enumerate(self._groups)
            if rule in group.domains_of and (rule.key == HOST or group.values[rule.key] is not None)
            for position in range(group.count)
        )

    def _emptiest(self, rule: Spread, domains: Mapping[object, int]) -> int:
        """Return the amount of the emptiest domain; of too few, or with nodes beside these, that is an empty one."""
        is_short = len(domains) < rule.min_domains or rule in self._opens
        return 0 if is_short else min(domains.values(), default=0)

    def _counts(self, state: _State) -> dict[int, int]:
        return {index: sum(pods[index] for nodes in state for pods in nodes) for index in self._most}

    def _rank(self, state: _State) -> tuple[int, int]:
        counts = self._counts(state)
        return sum(min(counts[index], least) for index, least in self._least.items()), sum(counts.values())

    def _next(self, state: _State) -> Iterator[_State]:
        """Return the states that one more pod makes of a state: of any consumer that rules are about, else the next."""
        counts = self._counts(state)
        turns = [index for index in self._turns if counts[index] < self._most[index]]
        free = [index for index in self._free if counts[index] < self._most[index]]
        # Pods that no rule is about take their turns in one order: another one leads to the same states.
        for index in [*turns, *free[:1]]:
            yield from self._with_one(state, index)

    def _with_one(self, state: _State, index: int) -> Iterator[_State]:
        """Return the states that one more pod of a consumer makes of a state."""
        options = sorted(
            (self._preference(state, at, pods, index), at, pods)
            for at, group in enumerate(self._groups)
            if group.kind in self._matching.takers[index]
            for pods in dict.fromkeys(state[at])
            if self._takes(state, at, pods, index)
        )
        return (_one_more(state, at, pods, index) for _, at, pods in options)

    def _filled(self, state: _State) -> _State:
        """Return a state with all pods that no rule is about and that still have room.

        The search ends at the first of them that has none.
        """
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
        """Count pods in the domain of a node."""
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
