"""How packing answers, and how long it takes: tight random problems, then large ones.

``uv run python benchmarks/packing.py`` prints both; ``--quick`` takes a tenth of the random problems.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter

from gpu_constructs.capacity.packing import Bin, Item, Packing, pack

GPUS, SLOTS, VRAM_MIB = 8, 4, 16303


def timed(items: list[Item], bins: list[Bin]) -> tuple[Packing, float]:
    start = time.perf_counter()
    packing = pack(items, bins)
    return packing, time.perf_counter() - start


def tight(seed: int, *, least: float, is_choosy: bool) -> tuple[list[Item], list[Bin]]:
    """Return 18 to 28 pods that want from ``least`` to all of the memory of eight GPUs."""
    drawn = random.Random(seed)
    shares = [drawn.uniform(0.3, 1.7) for _ in range(drawn.randint(18, 28))]
    wanted = drawn.uniform(least, 1) * GPUS * VRAM_MIB / sum(shares)
    sizes = [min(VRAM_MIB, int(share * wanted) // 256 * 256) for share in shares]
    if not is_choosy:
        return [Item((1, size), 1, frozenset([0])) for size in sizes], [Bin((SLOTS, VRAM_MIB), GPUS)]
    bins = [Bin((SLOTS, VRAM_MIB), 1)] * GPUS
    takers = [frozenset(k for k in range(GPUS) if drawn.random() < 0.7) or frozenset([0]) for _ in sizes]
    return [Item((1, size), 1, taken) for size, taken in zip(sizes, takers, strict=True)], bins


def planted(bins: int, choice: float, full: float) -> tuple[list[Item], list[Bin]]:
    """Return bins that all differ, and items that filled them to a share, each with a choice of bins."""
    drawn = random.Random(bins)
    kinds: list[Bin] = []
    items: list[Item] = []
    for k in range(bins):
        boards = drawn.choice([1, 2, 4])
        vram = drawn.choice([16303, 24564, 46068, 81920]) * boards
        kinds.append(Bin((4 * boards, vram + k), 1))
        slots, left = 4 * boards, vram * full
        for _ in range(6):
            size = (drawn.randint(1, boards), int(drawn.uniform(0.05, 0.5) * vram))
            if size[0] <= slots and size[1] <= left:
                slots, left = slots - size[0], left - size[1]
                items.append(Item(size, 1, frozenset(j for j in range(bins) if j == k or drawn.random() < choice)))
    drawn.shuffle(items)
    return items, kinds


def overfull(bins: int, items: int, choice: float) -> tuple[list[Item], list[Bin]]:
    """Return more than fits: every rule is tried and every count made."""
    drawn = random.Random(items)
    kinds = [Bin((drawn.choice([4, 8, 16]), drawn.randint(16_000, 82_000)), 1) for _ in range(bins)]
    each = sum(b.size[1] for b in kinds) / items
    return [
        Item((1, int(each * drawn.uniform(0.3, 1.75))), 1, frozenset(k for k in range(bins) if drawn.random() < choice))
        for _ in range(items)
    ], kinds


def how(packing: Packing) -> str:
    """Return the name of the method that decided."""
    if packing.answer == "undecided":
        return "undecided"
    if packing.answer == "no":
        return "no, by a count" if packing.shortage else "no, by the solver"
    return "yes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the random problems")
    count = 100 if parser.parse_args().quick else 1000
    for least, is_choosy in ((0.9, False), (0.97, False), (0.97, True)):
        ways: Counter[str] = Counter()
        worst = 0.0
        for seed in range(count):
            packing, seconds = timed(*tight(seed, least=least, is_choosy=is_choosy))
            ways[how(packing)] += 1
            worst = max(worst, seconds)
        title = f"{GPUS} GPUs, {100 * least:.0f} to 100 % full" + (", choosy pods" if is_choosy else "")
        print(
            f"{title:44} worst {worst:5.2f} s   " + ", ".join(f"{n} {way}" for way, n in ways.most_common()), flush=True
        )
    large = {
        f"planted, {100 * full:.0f} % full, {100 * choice:.0f} % of the bins each": planted(1000, choice, full)
        for choice, full in ((0.01, 0.9), (0.01, 0.97), (0.5, 0.97))
    }
    large |= {
        f"too much, {100 * choice:.0f} % of the bins each": overfull(1000, 5000, choice) for choice in (0.02, 0.9)
    }
    large["1,000,000 pods alike, 1,000 nodes alike"] = (
        [Item((1, 16), 10**6, frozenset([0]))],
        [Bin((1000, 16000), 1000)],
    )
    for title, (items, bins) in large.items():
        packing, seconds = timed(items, bins)
        print(f"{title:44} {seconds:5.2f} s   {len(items)} items: {how(packing)}", flush=True)


if __name__ == "__main__":
    main()
