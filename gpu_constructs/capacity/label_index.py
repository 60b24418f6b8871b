"""Finds the few of many nodes that labels leave to a pod, before each of them is looked at."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gpu_constructs.capacity.eligibility import Demands
from gpu_constructs.capacity.node_offer import NodeOffer


class LabelIndex:
    """Nodes by their labels."""

    def __init__(self, offers: Sequence[NodeOffer]) -> None:
        self._offers = offers
        self._by_value: dict[str, dict[str | None, list[int]]] = {}

    def candidates(self, demands: Demands) -> Collection[int]:
        """Give the nodes that may take pods with such demands, rising; those left out do not.

        Nodes without a label are among them: it may be one that nobody declares.
        """
        found: Collection[int] = range(len(self._offers))
        for key, value in demands.selector:
            found = min(found, self._having(key, (value,)), key=len)
        if demands.terms is not None:
            of_terms: set[int] = set()
            for term in demands.terms:
                of_term: Collection[int] = range(len(self._offers))
                for rule in term:
                    if rule.operator == "In":
                        of_term = min(of_term, self._having(rule.key, rule.values), key=len)
                of_terms.update(of_term)
            found = min(found, of_terms, key=len)
        return sorted(found)

    def _having(self, key: str, values: Sequence[str]) -> Collection[int]:
        if key not in self._by_value:
            by_value = self._by_value.setdefault(key, {})
            for number, offer in enumerate(self._offers):
                by_value.setdefault(offer.labels.get(key), []).append(number)
        return [number for value in {None, *values} for number in self._by_value[key].get(value, ())]
