"""Lists and amounts as sentences have them, the long ones cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

MOST_NAMED = 6
_LONG = 200
"""Characters of a list of names, after which the rest of them is counted."""


def joined(words: Sequence[str]) -> str:
    """Join words as a sentence does, the first few of them."""
    few, length = 0, 0
    while few < min(len(words), MOST_NAMED) and (not few or length + len(words[few]) <= _LONG):
        length += len(words[few]) + 2
        few += 1
    if len(words) > few:
        return f"{', '.join(words[:few])} and {len(words) - few} more"
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""


def nodewise(whys: Mapping[str, str], nodes: int) -> tuple[str, ...]:
    """Return why for each node, nodes of one reason together.

    Args:
        whys: Why, by the name of the node; not of all.
        nodes: How many nodes and pools there are to say it of.
    """
    together: dict[str, list[str]] = {}
    for name, why in whys.items():
        together.setdefault(why, []).append(name)
    said: list[str] = []
    told = 0
    for why, names in together.items():
        more = f"{'each of ' if len(names) > 1 else ''}{joined(names)} {why}"
        if said and len("; ".join([*said, more])) > 2 * _LONG:
            break
        said.append(more)
        told += len(names)
    return (*said, f"and {nodes - told} more") if nodes > told else tuple(said)


def has(nodes: Sequence[str]) -> str:
    """Give the verb that goes with nodes."""
    return "has" if len(nodes) == 1 else "have"


def several(title: str, pods: int) -> str:
    """Name so many pods of a consumer."""
    return title if pods == 1 else f"{pods} x {title}"


def memory(mib: int) -> str:
    """Write memory as Kubernetes does."""
    return f"{mib}Mi" if mib % 1024 else f"{mib // 1024}Gi"
