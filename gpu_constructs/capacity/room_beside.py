"""Whether pods find a place beside what always runs, wherever that is placed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpu_constructs.capacity.matching import Matching, Packed
from gpu_constructs.capacity.packing import Item
from gpu_constructs.capacity.placed_pods import PlacedPods

MOST_SEARCHES = 30_000
"""Consumers and kinds of nodes in all packings that look for a place beside what always runs."""


@dataclass
class Effort:
    """What was looked at in all packings so far.

    Attributes:
        searched: Consumers and kinds of nodes.
        is_spent: Whether something was not looked for, as that was enough.
    """

    searched: int = 0
    is_spent: bool = False

    def allows(self, more: int) -> bool:
        """Tell whether a packing may be made, and count it."""
        if self.searched > MOST_SEARCHES:
            self.is_spent = True
            return False
        self.searched += more
        return True


class RoomBeside:
    """The places that pods which always run leave."""

    def __init__(
        self, matching: Matching, steady: Mapping[int, int], effort: Effort, packed: Packed | None = None
    ) -> None:
        """Look at what they leave.

        Args:
            matching: Who goes where.
            steady: Pods that always run, by consumer.
            effort: Of all that is looked for.
            packed: A place of these pods, where it is there already.
        """
        self._matching = matching
        self._steady = steady
        self._effort = effort
        self._placed = PlacedPods.of(matching, packed or matching.pack(steady))
        self._stuck: dict[object, bool] = {}
        left = [sum(one.size[place] * one.count for one in matching.bins) for place in range(len(matching.resources))]
        for index, count in steady.items():
            for place, takes in enumerate(matching.size_of(index)):
                left[place] -= takes * count
        self._left: Sequence[int] = left

    def takes(self, pods: Mapping[int, int]) -> bool:
        """Tell whether pods have a place for some placement of what always runs; true where nobody can say."""
        return self._placed.takes(pods) or not self._is_stuck(self._placed.key_of(pods), pods)

    def takes_on(self, kind: int, index: int) -> bool:
        """Tell the same of one more pod that every node gets, which must stand on a node of its own kind."""
        size = self._matching.size_of(index)
        if any(
            nodes.kind == kind and all(has >= takes for has, takes in zip(nodes.left, size, strict=True))
            for nodes in self._placed.nodes
        ):
            return True
        return not self._is_stuck((kind, size), {index: 1}, Item(size, 1, frozenset([kind])))

    def _is_stuck(self, key: object, pods: Mapping[int, int], guest: Item | None = None) -> bool:
        """Tell whether pods have no place wherever what always runs is placed; false where nobody can say."""
        for place, left in enumerate(self._left):
            if sum(count * self._matching.size_of(index)[place] for index, count in pods.items()) > left:
                return True
        if key not in self._stuck:
            if not self._effort.allows(len(self._steady) + len(self._matching.bins)):
                return False
            more = {} if guest else {index: self._steady.get(index, 0) + count for index, count in pods.items()}
            answer = self._matching.pack({**self._steady, **more}, guest=guest).packing.answer
            self._stuck[key] = answer == "no"
        return self._stuck[key]
