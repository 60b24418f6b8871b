"""Which nodes take which pods, by the rules of the scheduler; labels that nobody can know beforehand are let pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpu_constructs.annotations import VRAM
from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.node_offer import NodeOffer
from gpu_constructs.capacity.placement_keys import NAME_IN_POOL, NODE_NAME, Rule, Term, completed
from gpu_constructs.capacity.placement_keys import Demands as Demands
from gpu_constructs.capacity.placement_keys import Offered as Offered
from gpu_constructs.capacity.placement_keys import daemon_key as daemon_key
from gpu_constructs.capacity.placement_keys import labels_read as labels_read
from gpu_constructs.capacity.placement_keys import offer_key as offer_key
from gpu_constructs.capacity.placement_keys import placement_key as placement_key

_MOST_TERMS_IN_WORDS = 3


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
    demands = completed(demands, runtime_classes)
    return next(_reasons(demands, offered), None)


def unknown_labels_of(
    demands: Demands, offered: Offered, runtime_classes: Mapping[str, Mapping[str, Any]] | None = None
) -> tuple[str, ...]:
    """Give the same as ``unknown_labels`` for what both come down to."""
    demands = completed(demands, runtime_classes)
    if next(_reasons(demands, offered), None) is not None:
        return ()
    selected = _selected(demands)
    terms = [term for term in demands.terms or () if _judge(term, selected, offered) is not False]
    is_open = not any(all(offered.judge(rule) for rule in term) for term in terms)
    rules = [*selected, *(rule for term in terms for rule in term if is_open)]
    return tuple(dict.fromkeys(rule.key.removeprefix("field ") for rule in rules if offered.judge(rule) is None))


def may_share_a_node(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether a node can have labels with which it takes the pods of two DaemonSets.

    Args:
        one: What decides which nodes take the pods of one, as Kubernetes writes it in a pod spec.
        other: The same for the other.
    """
    first, second = daemon_key(one), daemon_key(other)
    selected = (*_selected(first), *_selected(second))
    return any(
        _may_hold((*selected, *term, *beside))
        for term in (((),) if first.terms is None else first.terms)
        for beside in (((),) if second.terms is None else second.terms)
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
    selected = _selected(demands)
    if _judge(selected, (), offered) is False:
        yield _of_term(selected, offered)
    if demands.terms is not None and all(_judge(term, selected, offered) is False for term in demands.terms):
        yield _of_no_term(demands.terms, offered)
    for resource, count in demands.asks:
        has = offered.amounts.get(resource, 0)
        if has < count:
            why = f": {offered.why_nothing}" if offered.why_nothing else ""
            yield f"offers {has} {resource}, of which a pod wants {count}" if has else f"offers no {resource}{why}"
    for resource, most in demands.most_asked:
        limit = offered.limits.get(resource)
        if limit is not None and most > limit:
            yield f"shares GPUs so that a container gets {limit} {resource} at most, of which one asks for {most}"


def _repels(taint: tuple[str, str, str], demands: Demands) -> bool:
    # A pod that names its node is looked at by the kubelet only: kubernetes/kubernetes:pkg/kubelet/lifecycle.
    counted = ("NoExecute",) if demands.node_name else ("NoSchedule", "NoExecute")
    return taint[2] in counted and not any(one.tolerates(*taint) for one in demands.tolerations)


def _selected(demands: Demands) -> Term:
    return tuple(Rule(key, "In", (value,)) for key, value in demands.selector)


def _judge(term: Term, besides: Term, offered: Offered) -> bool | None:
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


def _is_possible(rules: Sequence[Rule]) -> bool:
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
            return f"cannot match {written!r}, which is no rule that Kubernetes can read"
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
    """

    def __init__(
        self,
        consumers: Sequence[Consumer],
        offers: Sequence[NodeOffer],
        runtime_classes: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        demands: dict[Demands, int] = {}
        self.consumer_groups = [
            demands.setdefault(completed(placement_key(one), runtime_classes), len(demands)) for one in consumers
        ]
        read = labels_read(demands)
        resources = {resource for one in demands for resource, _ in one.asks}
        offered: dict[Offered, int] = {}
        self.offer_groups = [offered.setdefault(offer_key(one, read, resources), len(offered)) for one in offers]
        self._demands, self._offered = list(demands), list(offered)
        # What is asked for apart from resources, of which there are fewer that differ.
        places: dict[Demands, int] = {}
        self._places = [places.setdefault(replace(one, asks=(), most_asked=()), len(places)) for one in self._demands]
        self._bare = list(places)
        self._values = [one.values for one in self._offered]
        self._amounts = [one.amounts for one in self._offered]
        self._limits = [one.limits for one in self._offered]
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
        limits = self._limits[other]
        if limits:
            for resource, most in self._demands[group].most_asked:
                if most > limits.get(resource, most):
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
