"""Which nodes take which pods, by the rules of the scheduler; labels that are not known beforehand are let pass."""

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


# Judging


def refusal(demands: Demands, offered: Offered) -> str | None:
    """Return why a node takes no pod with such demands, even when it is empty; None if it does.

    Memory is another matter: see ``vram_refusal``. For many of both, ``Eligibility`` is quicker.
    """
    return next(_reasons(demands, offered), None)


def unknown_labels(demands: Demands, offered: Offered) -> tuple[str, ...]:
    """Return the labels that were taken as matching because they are not declared; none if a node refuses anyway."""
    if refusal(demands, offered) is not None:
        return ()
    terms = [term for term in demands.terms or () if _judge(term, demands.selected, offered) is not False]
    is_open = not any(all(offered.judge(rule) for rule in term) for term in terms)
    rules = [*demands.selected, *(rule for term in terms for rule in term if is_open)]
    return tuple(dict.fromkeys(rule.key.removeprefix("field ") for rule in rules if offered.judge(rule) is None))


def vram_refusal(consumer: Consumer, offer: NodeOffer) -> str | None:
    """Return why no GPU of a node has the memory that a pod states; None if one has, or if it is not known."""
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


def may_share_a_node(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether a node can have labels with which it takes the pods of two DaemonSets.

    Args:
        one: Pod spec of one of them, as Kubernetes writes it.
        other: Pod spec of the other.
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
            yield f"offers {has} {resource}, of which a pod wants {count}" if has else f"offers no {resource}{why}"
    for resource, most in demands.most_asked:
        limit = offered.limits.get(resource, most)
        if most > limit:
            yield f"shares GPUs so that a container gets {limit} {resource} at most, of which one asks for {most}"


def _repels(taint: tuple[str, str, str], demands: Demands) -> bool:
    # A pod that names its node is looked at by the kubelet only: kubernetes/kubernetes:pkg/kubelet/lifecycle.
    counted = ("NoExecute",) if demands.node_name else ("NoSchedule", "NoExecute")
    return taint[2] in counted and not any(one.tolerates(*taint) for one in demands.tolerations)


def _judge(term: Term, besides: Term, offered: Offered) -> bool | None:
    """Check whether a node has all that a term wants; None if that depends on labels that are not known.

    Args:
        term: Rules by which the node is judged.
        besides: Rules that must hold too, which may leave no value for such a label.
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


def _is_possible(rules: Sequence[Rule]) -> bool:
    """Check whether a label can have a value, or be missing, so that all rules for it hold."""
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
    """Return a taint as ``kubectl`` writes it."""
    return f"{key}{f'={value}' if value else ''}:{effect}"


def _of_other_name(wanted: str, offered: Offered) -> str:
    return _of_pool(f"the node {wanted}") if offered.is_pool else f"is not the node {wanted}, which its pods name"


def _of_pool(wanted: str) -> str:
    return f"is a pool whose nodes have no names here, where its pods want {wanted}; declare that node by itself"


def _of_no_term(terms: Sequence[Term], offered: Offered) -> str:
    reasons = list(dict.fromkeys(_of_term(term, offered) for term in terms))
    if len(reasons) <= 1:
        return reasons[0] if reasons else "is matched by nothing: the node affinity of its pods has no term"
    more = len(reasons) - _MOST_TERMS_IN_WORDS
    listed = "; ".join(reasons[:_MOST_TERMS_IN_WORDS]) + (f"; and {more} more" if more > 0 else "")
    return f"matches no term of its pods' node affinity: {listed}"


def _of_term(term: Term, offered: Offered) -> str:
    for rule in term:
        if not rule.is_valid:
            written = " ".join((rule.key, rule.operator, ",".join(rule.values))).strip()
            return f"cannot match {written!r}, which is not a rule that Kubernetes can read"
    refused = next((rule for rule in term if offered.judge(rule) is False), None)
    if refused is not None:
        return _in_words(refused, offered)
    keys = dict.fromkeys(rule.key for rule in term if offered.judge(rule) is None)
    return f"has no {' or '.join(keys)} that would do: its pods want of it what no node has at once"


def _in_words(rule: Rule, offered: Offered) -> str:
    value = offered.values.get(rule.key)
    wanted = " or ".join(rule.values)
    if value == NAME_IN_POOL:
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
        accepted: For each group of nodes the groups of consumers whose pods it takes.
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
        # What is asked for apart from resources, of which there are fewer that differ.
        places = grouped((replace(one, asks=(), most_asked=()), group) for group, one in enumerate(self._demands))
        found: list[set[int]] = [set() for _ in self._offered]
        for place, groups in places.items():
            for number in self._candidates(place):
                offered = self._offered[number]
                if refusal(place, offered) is None:
                    found[number].update(one for one in groups if not any(_of_resources(self._demands[one], offered)))
        return [frozenset(those) for those in found]

    def _candidates(self, demands: Demands) -> Collection[int]:
        """Return the groups of nodes that labels leave to pods; those without a label may get it later."""
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
        """Return why a node takes no pod of a consumer, by their places in the lists; None if it does."""
        return refusal(self._demands[self.consumer_groups[consumer]], self._offered[self.offer_groups[offer]])

    def unknown_labels(self, consumer: int, offer: int) -> tuple[str, ...]:
        """Return the labels that were taken as matching, by the places of both in the lists."""
        return unknown_labels(self._demands[self.consumer_groups[consumer]], self._offered[self.offer_groups[offer]])
