"""Compare answers with those of an integer program solver, on problems too large for an exhaustive search."""

import random

import highspy
import numpy as np

from gpu_constructs.capacity.packing import Bin, Item, pack
from packing_checks import check, most


def solved(items: list[Item], bins: list[Bin]) -> bool:
    """Return whether the solver finds a number of each item in each bin."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("random_seed", 0)
    each = [k for k, b in enumerate(bins) for _ in range(b.count)]
    pairs = [(i, b) for i, item in enumerate(items) for b, k in enumerate(each) if k in item.bins]
    column = {pair: index for index, pair in enumerate(pairs)}
    for (i, _), index in column.items():
        solver.addVar(0, most(items[i]))
        solver.changeColIntegrality(index, highspy.HighsVarType.kInteger)

    def row(least: int, greatest: int, weights: dict[int, int]) -> None:
        columns = np.array(list(weights), dtype=np.int32)
        solver.addRow(least, greatest, len(weights), columns, np.array(list(weights.values()), dtype=float))

    for i, item in enumerate(items):
        row(item.count, item.count, {index: 1 for (of, _), index in column.items() if of == i})
    for b, k in enumerate(each):
        for d, has in enumerate(bins[k].size):
            row(0, has, {index: items[i].size[d] for (i, at), index in column.items() if at == b})
    solver.run()
    status = solver.getModelStatus()
    assert status in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible)
    return status == highspy.HighsModelStatus.kOptimal


def problem(seed: int) -> tuple[list[Item], list[Bin]]:
    """Return items that fill bins exactly, with small changes to some sizes."""
    drawn = random.Random(seed)
    dimensions, kinds = drawn.choice([1, 2, 2, 3]), drawn.randint(1, 4)
    bins: list[Bin] = []
    items: list[Item] = []
    for kind in range(kinds):
        bins.append(Bin(tuple(drawn.choice([8, 16, 24, 48]) for _ in range(dimensions)), drawn.randint(1, 3)))
        for _ in range(bins[-1].count):
            room = bins[-1].size
            for _ in range(drawn.randint(2, 5)):
                size = tuple(drawn.randint(0, has * 2 // 3) if drawn.random() < 0.8 else has for has in room)
                room = tuple(has - takes for has, takes in zip(room, size, strict=True))
                takers = frozenset(k for k in range(kinds) if k == kind or drawn.random() < 0.5)
                if any(size):
                    items.append(Item(size, 1, takers, drawn.choice([None, None, 1])))
    for _ in range(drawn.randint(0, 3)):
        at, d = drawn.randrange(len(items)), drawn.randrange(dimensions)
        item = items[at]
        size = (*item.size[:d], item.size[d] + 1, *item.size[d + 1 :])
        items[at] = Item(size, drawn.choice([1, 1, 2]), item.bins, item.most_per_bin)
    return items, bins


def test_the_answer_equals_that_of_a_solver():
    for first in range(0, 200, 25):
        decided = 0
        for seed in range(first, first + 25):
            items, bins = problem(seed)
            packing = pack(items, bins)
            check(items, bins, packing)
            if packing.answer != "undecided":
                decided += 1
                assert packing.answer == ("yes" if solved(items, bins) else "no"), seed
        assert decided >= 24
