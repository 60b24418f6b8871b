"""Lists and amounts as sentences have them, the long ones cut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpu_constructs.capacity.gathered import grouped

MOST_NAMED = 6
_LONG = 200
"""Characters of a list of names, after which the rest of them is counted."""


def joined(words: Sequence[str]) -> str:
    """Return the first few words, joined as in a sentence."""
    few, length = 0, 0
    while few < min(len(words), MOST_NAMED) and (not few or length + len(words[few]) <= _LONG):
        length += len(words[few]) + 2
        few += 1
    if len(words) > few:
        return f"{', '.join(words[:few])} and {len(words) - few} more"
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""


def some(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Return the first names and the number of the others."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def nodewise(whys: Mapping[str, str], nodes: int) -> tuple[str, ...]:
    """Return why for each node, nodes of one reason together.

    Args:
        whys: Why, by the name of the node; not of all.
        nodes: How many nodes and pools there are to say it of.
    """
    said: list[str] = []
    told = 0
    for why, names in grouped((why, name) for name, why in whys.items()).items():
        more = f"{'each of ' if len(names) > 1 else ''}{joined(names)} {why}"
        if said and len("; ".join([*said, more])) > 2 * _LONG:
            break
        said.append(more)
        told += len(names)
    return (*said, f"and {nodes - told} more") if nodes > told else tuple(said)


def has(nodes: Sequence[object]) -> str:
    """Return the verb that goes with names."""
    return "has" if len(nodes) == 1 else "have"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural if it needs one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def several(title: str, pods: int) -> str:
    """Return the title of a consumer with a number of its pods."""
    return title if pods == 1 else f"{pods} x {title}"


def memory(mib: int) -> str:
    """Return memory as Kubernetes writes it."""
    return f"{mib}Mi" if mib % 1024 else f"{mib // 1024}Gi"


def unit_of(sizes: Iterable[int]) -> tuple[int, str]:
    """Return a unit in which all sizes in MiB are whole, and its name."""
    return (1024, "GiB") if all(mib % 1024 == 0 for mib in sizes) else (1, "MiB")


def verb(plural: str, names: Sequence[str]) -> str:
    """Return a verb as it goes with names."""
    return plural if len(names) > 1 else f"{plural}s"


def memory_sum(sizes: Sequence[int]) -> str:
    """Return the sum of sizes in MiB, with its terms if they are few."""
    if len(sizes) > MOST_NAMED:
        return f"{sum(sizes)} MiB in all"
    unit, name = unit_of(sizes)
    return f"{' + '.join(str(mib // unit) for mib in sizes)} {name}"
