"""How the boards of a node can be divided by MIG, so that as many pods as possible get a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from gpu_constructs.mig_layouts import fits
from gpu_constructs.mig_profiles import mig_vram_mib


@dataclass(frozen=True)
class Want:
    """Pods that are alike.

    Attributes:
        devices: What each takes, by profile; empty where it takes whole boards.
        boards: Whole boards that each takes otherwise.
        count: How many there are.
    """

    devices: tuple[tuple[str, int], ...]
    boards: int
    count: int


@dataclass(frozen=True)
class Division:
    """The devices of a node.

    Attributes:
        layouts: Profiles and how many of each, of every board; empty for one that is not divided.
        placed: How many pods of each want have a device.
    """

    layouts: tuple[dict[str, int], ...]
    placed: tuple[int, ...]


def parts(model_name: str, profiles: Sequence[str]) -> list[str]:
    """Give the profiles that are less than the whole board, the smallest first."""
    size = {profile: mig_vram_mib(model_name, profile) for profile in profiles[:-1]}
    return sorted(size, key=lambda profile: (size[profile], profiles.index(profile)))


def smallest_part(model_name: str, profiles: Sequence[str], mib: int) -> str | None:
    """Give the smallest profile that holds so much memory; None where only the whole board does."""
    return next((part for part in parts(model_name, profiles) if mib <= mig_vram_mib(model_name, part)), None)


def divide(model_name: str, boards: int, wants: Sequence[Want]) -> Division:
    """Divide boards for the wants, the first ones first, each on the first boards that have room."""
    layouts: list[dict[str, int] | None] = [{} for _ in range(boards)]
    placed = [0] * len(wants)
    for number, want in enumerate(wants):
        while placed[number] < want.count and _is_placed(model_name, layouts, want):
            placed[number] += 1
    return Division(tuple(layout or {} for layout in layouts), tuple(placed))


def _is_placed(model_name: str, layouts: list[dict[str, int] | None], want: Want) -> bool:
    """Find room for one more pod; a board that somebody has whole is None."""
    if not want.devices:
        empty = [board for board, layout in enumerate(layouts) if layout == {}][: want.boards]
        for board in empty if len(empty) == want.boards else ():
            layouts[board] = None
        return len(empty) == want.boards
    tried = list(layouts)
    for profile, count in want.devices:
        for _ in range(count):
            for board, layout in enumerate(tried):
                more = None if layout is None else {**layout, profile: layout.get(profile, 0) + 1}
                if more and _fits(model_name, frozenset(more.items())):
                    tried[board] = more
                    break
            else:
                return False
    layouts[:] = tried
    return True


@lru_cache(maxsize=4096)
def _fits(model_name: str, layout: frozenset[tuple[str, int]]) -> bool:
    return fits(model_name, dict(layout))
