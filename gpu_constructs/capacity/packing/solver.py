"""The last step of a packing search: the solver of integer programs HiGHS decides what the other steps could not.

The module ``problem`` defines the terms item, bin, kind and part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

from gpu_constructs.capacity.packing.problem import Answer, Filling, Load, Part, bits

MOST_PLACES = 3_000
"""Largest number of pairs of an item and a bin for which the solver runs."""
MOST_WORK = 1_000_000
"""Largest product of the number of search nodes of the solver and the number of pairs of an item and a bin.

The solver gives up at this limit. With a time limit instead, the result could depend on the speed of the machine.
"""

_Place = tuple[int, int]
"""Index of an item, and number of a bin that may contain the item."""


@cache
def is_installed() -> bool:
    """Check whether Python finds ``highspy``, the package of the solver HiGHS, which is an optional dependency."""
    return find_spec("highspy") is not None


def solve(part: Part) -> tuple[Answer, Filling | None]:
    """Return whether all items (pods) of one part of a packing problem fit into its bins (nodes).

    Returns:
        The answer, and the content of each bin for the answer ``yes``. The answer is ``undecided`` if the solver is
        not installed or gave up.
    """
    kinds = [kind for kind, one in part.bins.items() for _ in range(one.count)]
    firsts = {kind: kinds.index(kind) for kind in part.bins if kind in kinds}
    places = [(i, at) for i, most in _ordered(part) for at, kind in enumerate(kinds) if at - firsts[kind] < most[kind]]
    if not is_installed() or len(places) > MOST_PLACES:
        return "undecided", None
    import highspy

    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("random_seed", 0)
    solver.setOptionValue("mip_heuristic_effort", 0.0)
    solver.setOptionValue("mip_max_nodes", MOST_WORK // len(places))
    for column, (i, at) in enumerate(places):
        solver.addVar(0, part.fit(i, kinds[at]))
        solver.changeColIntegrality(column, highspy.HighsVarType.kInteger)
    _constrain(solver, part, kinds, places)
    solver.run()
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return "no", None
    if status != highspy.HighsModelStatus.kOptimal:
        return "undecided", None
    filling = _checked(part, kinds, zip(places, solver.getSolution().col_value, strict=True))
    return ("yes" if filling else "undecided"), filling


def _constrain(solver: Any, part: Part, kinds: Sequence[int], places: Sequence[_Place]) -> None:
    """Add the constraints of a packing to the solver: all copies of each item are in bins, and no bin is too full."""
    for i, item in part.items.items():
        own = [column for column, (one, _) in enumerate(places) if one == i]
        solver.addRow(item.count, item.count, len(own), own, [1.0] * len(own))
    for at, kind in enumerate(kinds):
        inside = [column for column, (_, bin_at) in enumerate(places) if bin_at == at]
        for d in part.dimensions:
            sizes = [float(part.items[places[column][0]].size[d]) for column in inside]
            solver.addRow(0, part.bins[kind].size[d], len(inside), inside, sizes)


def _ordered(part: Part) -> Iterator[tuple[int, dict[int, int]]]:
    """Yield the items, the largest first, each with the number of bins of each kind that the solver tries for it.

    Each result is a pair: index of the item, and a dict from the kind of bins to the number of bins. The number is 0
    for kinds that do not accept the item. For a kind that accepts it, the number is one bin for each copy of this item,
    and for each copy of the earlier items that the kind accepts.
    """
    largest = [max(sizes) or 1 for sizes in zip(*(one.size for one in part.bins.values()), strict=True)]
    before = dict.fromkeys(part.bins, 0)
    for i in sorted(
        part.items,
        key=lambda i: max(n / most for n, most in zip(part.items[i].size, largest, strict=True)),
        reverse=True,
    ):
        for kind in bits(part.masks[i]):
            before[kind] += part.items[i].count
        yield i, {kind: before[kind] if part.masks[i] >> kind & 1 else 0 for kind in part.bins}


def _checked(part: Part, kinds: Sequence[int], found: Iterable[tuple[_Place, float]]) -> Filling | None:
    """Return the solver's packing with rounded numbers of copies. Return None if the rounded packing is not valid.

    Args:
        part: Part of the problem that the solver packed.
        kinds: Index of the kind of each bin.
        found: Pairs from the solver: an item with a bin, and the number of copies of the item in the bin.
    """
    contents: list[dict[int, int]] = [{} for _ in kinds]
    lacking = {i: item.count for i, item in part.items.items()}
    for (i, at), value in found:
        if amount := round(value):
            contents[at][i] = amount
            lacking[i] -= amount
    fits = all(
        sum(part.items[i].size[d] * amount for i, amount in content.items()) <= part.bins[kind].size[d]
        for kind, content in zip(kinds, contents, strict=True)
        for d in part.dimensions
    )
    if any(lacking.values()) or not fits:
        return None
    return Filling([Load(kind, 1, content) for kind, content in zip(kinds, contents, strict=True)], {})
