"""Functions that check which nodes accept which pods, by the rules of kube-scheduler.

If the value of a node label is not known until the node runs, the functions assume a value that the pods select. A
*consumer* is a workload as the capacity plan sees it: equal pods of one object that request GPUs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.gathered import grouped
from gpu_constructs.capacity.placement_keys import (
    NAME_IN_POOL,
    NODE_NAME,
    Demands,
    Offered,
    Rule,
    Term,
    daemon_key,
    labels_read,
    offer_key,
    placement_key,
)
from gpu_constructs.capacity.planned import NodeOffer
from gpu_constructs.kube.annotations import VRAM

_MOST_TERMS_IN_WORDS = 3


# Check of one workload on one node


def refusal(demands: Demands, offered: Offered) -> str | None:
    """Return the reason why a node accepts no pod of a workload, even if the node runs no other pods.

    Return None if the node accepts the pods. The function ignores GPU memory; see ``vram_refusal``. For many nodes and
    workloads, ``Eligibility`` is faster.

    Args:
        demands: Properties of the pods that decide which nodes accept them.
        offered: Properties of the node that decide which pods it accepts.
    """
    return next(_reasons(demands, offered), None)


def unknown_labels(demands: Demands, offered: Offered) -> tuple[str, ...]:
    """Return the labels that pods select and a node does not declare.

    The function ``refusal`` assumes that the node has these labels with matching values. The result is empty if the
    node rejects the pods whatever values these labels have.

    Args:
        demands: Properties of the pods that decide which nodes accept them.
        offered: Properties of the node that decide which pods it accepts.
    """
    if refusal(demands, offered) is not None:
        return ()
    terms = [term for term in demands.terms or () if _judge(term, demands.selected, offered) is not False]
    is_open = not any(all(offered.judge(rule) for rule in term) for term in terms)
    rules = [*demands.selected, *(rule for term in terms for rule in term if is_open)]
    return tuple(dict.fromkeys(rule.key.removeprefix("field ") for rule in rules if offered.judge(rule) is None))


def vram_refusal(consumer: Consumer, offer: NodeOffer) -> str | None:
    """Return the reason why every GPU of a node has too little memory for a pod of a workload.

    The function compares the memory that the pods state with the memory of the GPUs. It returns None if a GPU has
    enough memory. It also returns None if the pods state no memory, or if the memory of a GPU is not known.
    """
    wanted = consumer.vram_mib
    if wanted is None:
        return None
    for resource in sorted(consumer.asks):
        devices = [device for device in offer.devices if device.resource == resource]
        known = [(device.vram_mib, device.vram_each_mib) for device in devices if device.vram_mib is not None]
        if not devices or len(known) < len(devices):
            continue
        mib, each = max(known, key=lambda one: min(one[0], one[0] if one[1] is None else one[1]))
        needs = f"but a pod needs {wanted}Mi ({VRAM})"
        if each is not None and each < min(wanted, mib):
            return f"has GPU memory {mib}Mi, of which MPS allows each pod {each}Mi, {needs}"
        if mib < wanted:
            return f"has GPU memory {mib}Mi, {needs}"
    return None


def may_share_a_node(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Check whether one node can meet the node selectors and node affinities of two DaemonSets.

    Args:
        one: Pod spec of the first DaemonSet, as in its manifest.
        other: Pod spec of the second DaemonSet, as in its manifest.
    """
    first, second = daemon_key(one), daemon_key(other)
    return any(
        _may_hold((*first.selected, *second.selected, *term, *beside))
        for term in first.alternatives
        for beside in second.alternatives
    )


def _may_hold(rules: Term) -> bool:
    keys = {rule.key for rule in rules}
    return all(rule.is_valid for rule in rules) and all(
        _is_possible([rule for rule in rules if rule.key == key]) for key in keys
    )


def _reasons(demands: Demands, offered: Offered) -> Iterator[str]:
    if demands.node_name and demands.node_name != offered.name:
        yield _of_other_name(demands.node_name, offered)
    for taint in offered.taints:
        if _repels(taint, demands):
            yield f"has the taint {taint_text(*taint)}, which its pods do not tolerate"
    selected = demands.selected
    if _judge(selected, (), offered) is False:
        yield _of_term(selected, offered)
    if all(_judge(term, selected, offered) is False for term in demands.alternatives):
        yield _of_no_term(demands.alternatives, offered)
    yield from _of_resources(demands, offered)


def _of_resources(demands: Demands, offered: Offered) -> Iterator[str]:
    for resource, count in demands.asks:
        has = offered.amounts.get(resource, 0)
        if has < count:
            why = f": {offered.why_nothing}" if offered.why_nothing else ""
            yield f"offers {has} {resource}, but a pod requests {count}" if has else f"offers no {resource}{why}"
    for resource, most in demands.most_asked:
        limit = offered.limits.get(resource, most)
        if most > limit:
            yield f"shares GPUs so that a container gets at most {limit} {resource}, but one requests {most}"


def _repels(taint: tuple[str, str, str], demands: Demands) -> bool:
    # Only the kubelet checks a pod that names its node: kubernetes/kubernetes:pkg/kubelet/lifecycle.
    counted = ("NoExecute",) if demands.node_name else ("NoSchedule", "NoExecute")
    return taint[2] in counted and not any(one.tolerates(*taint) for one in demands.tolerations)


def _judge(term: Term, besides: Term, offered: Offered) -> bool | None:
    """Check whether a node meets a node selector term. Return None if that depends on unknown values of labels.

    Args:
        term: Rules of the term. The node must meet every rule.
        besides: Further rules for the node, which the caller checks. If no value of an unknown label can meet both
            these rules and ``term``, the result is False instead of None.
        offered: Properties of the node.
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


def _is_possible(rules: Sequence[Rule]) -> bool:
    """Check whether some value of a node label meets all given rules, which are rules for this label.

    The function also checks a node without the label, because ``NotIn`` and ``DoesNotExist`` match such a node.
    """
    named = [rule.values for rule in rules if rule.operator == "In"]
    if named:
        return any(all(rule.holds(value) for rule in rules) for value in named[0])
    bounds = {op: [int(rule.values[0]) for rule in rules if rule.operator == op] for op in ("Gt", "Lt")}
    # Try one more value than the rules name, so that at least one value is in no rule.
    steps = range(1, sum(len(rule.values) for rule in rules) + 2)
    numbers = (
        [max(bounds["Gt"]) + n for n in steps] if bounds["Gt"] else [min(bounds["Lt"], default=0) - n for n in steps]
    )
    return any(all(rule.holds(value) for rule in rules) for value in (None, "any", *map(str, numbers)))


# Reasons in words


def taint_text(key: str, value: str, effect: str) -> str:
    """Return a taint in the format of ``kubectl``: ``key=value:effect``, or ``key:effect`` without a value."""
    return f"{key}{f'={value}' if value else ''}:{effect}"


def _of_other_name(wanted: str, offered: Offered) -> str:
    return (
        _of_pool(f"the node {wanted}")
        if offered.is_pool
        else f"is not the node {wanted}, which its pods select by name"
    )


def _of_pool(wanted: str) -> str:
    return f"is a pool without declared node names, but its pods select {wanted} (declare that node by itself)"


def _of_no_term(terms: Sequence[Term], offered: Offered) -> str:
    reasons = list(dict.fromkeys(_of_term(term, offered) for term in terms))
    if len(reasons) <= 1:
        return reasons[0] if reasons else "cannot match: the node affinity of its pods has no terms"
    more = len(reasons) - _MOST_TERMS_IN_WORDS
    listed = "; ".join(reasons[:_MOST_TERMS_IN_WORDS]) + (f"; and {more} more" if more > 0 else "")
    return f"matches no term of its pods' node affinity: {listed}"


def _of_term(term: Term, offered: Offered) -> str:
    for rule in term:
        if not rule.is_valid:
            written = " ".join((rule.key, rule.operator, ",".join(rule.values))).strip()
            return f"cannot match {written!r}, which is not a valid rule"
    refused = next((rule for rule in term if offered.judge(rule) is False), None)
    if refused is not None:
        return _in_words(refused, offered)
    keys = dict.fromkeys(rule.key for rule in term if offered.judge(rule) is None)
    return f"cannot have the {' or '.join(keys)} that its pods select: no value meets all their rules"


def _in_words(rule: Rule, offered: Offered) -> str:
    value = offered.values.get(rule.key)
    listed = " or ".join(rule.values)
    if value == NAME_IN_POOL:
        return _of_pool(f"{'the node' if rule.key == NODE_NAME else rule.key} {listed}".strip())
    if rule.key == NODE_NAME:
        others = f"any node except {listed}" if rule.operator == "NotIn" else listed
        return f"is {value}, but its pods select {others}"
    has = f"has no label {rule.key}" if value is None else f"has {rule.key}={value}"
    selected = {
        "In": f"but its pods select {listed or 'the empty value'}",
        "NotIn": "but its pods select other values",
        "Exists": "which its pods select",
        "DoesNotExist": "but its pods select nodes without this label",
        "Gt": f"but its pods select values above {listed}",
        "Lt": f"but its pods select values below {listed}",
    }
    return f"{has}, {selected[rule.operator]}"


# Check of many workloads on many nodes


class Eligibility:
    """The check of which nodes accept which workloads, for many nodes and workloads.

    The class checks equal nodes and equal pods only once. Workloads whose pods have equal selectors, tolerations and
    requests form a numbered group. Nodes form a numbered group if they have equal taints, equal resources and equal
    values of the labels that pods select.

    Attributes:
        consumer_groups: Group number of each workload (consumer).
        offer_groups: Group number of each node.
        accepted: For each group of nodes, the group numbers of the workloads that these nodes accept.
    """

    def __init__(
        self,
        consumers: Sequence[Consumer],
        offers: Sequence[NodeOffer],
        runtime_classes: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        demands: dict[Demands, int] = {}
        self.consumer_groups = [
            demands.setdefault(placement_key(one, runtime_classes), len(demands)) for one in consumers
        ]
        read = labels_read(demands)
        resources = {resource for one in demands for resource, _ in one.asks}
        offered: dict[Offered, int] = {}
        self.offer_groups = [offered.setdefault(offer_key(one, read, resources), len(offered)) for one in offers]
        self._demands, self._offered = list(demands), list(offered)
        self._by_label: dict[str, dict[str | None, list[int]]] = {}
        self.accepted = self._accepted()

    def _accepted(self) -> Sequence[Collection[int]]:
        # Many workloads differ in their resources only, so check labels and taints once for all.
        places = grouped((replace(one, asks=(), most_asked=()), group) for group, one in enumerate(self._demands))
        found: list[set[int]] = [set() for _ in self._offered]
        for place, groups in places.items():
            for number in self._candidates(place):
                offered = self._offered[number]
                if refusal(place, offered) is None:
                    found[number].update(one for one in groups if not any(_of_resources(self._demands[one], offered)))
        return [frozenset(those) for those in found]

    def _candidates(self, demands: Demands) -> Collection[int]:
        """Return the indices of the groups of equal nodes that can match the node selector and affinity of a workload.

        This fast search only excludes nodes whose labels certainly do not match. Nodes that lack a label stay in the
        result, because they may get the label later.
        """
        everything: Collection[int] = range(len(self._offered))
        selected = min([everything, *map(self._having, demands.selected)], key=len)
        wanted = ([self._having(rule) for rule in term if rule.operator == "In"] for term in demands.alternatives)
        return set().union(*(min([selected, *those], key=len) for those in wanted))

    def _having(self, rule: Rule) -> Collection[int]:
        if rule.key not in self._by_label:
            values = ((offered.values.get(rule.key), number) for number, offered in enumerate(self._offered))
            self._by_label[rule.key] = grouped(values)
        return [number for value in {None, *rule.values} for number in self._by_label[rule.key].get(value, ())]

    def refusal(self, consumer: int, offer: int) -> str | None:
        """Return the reason why a node rejects the pods of a workload. Return None if the node accepts them.

        Args:
            consumer: Index of the workload.
            offer: Index of the node.
        """
        return refusal(self._demands[self.consumer_groups[consumer]], self._offered[self.offer_groups[offer]])

    def unknown_labels(self, consumer: int, offer: int) -> tuple[str, ...]:
        """Return the labels that the pods of a workload select and that a node does not declare.

        The method ``refusal`` assumes that the node has these labels with matching values.

        Args:
            consumer: Index of the workload.
            offer: Index of the node.
        """
        return unknown_labels(self._demands[self.consumer_groups[consumer]], self._offered[self.offer_groups[offer]])
