"""Functions that turn lists and amounts into text for sentences, and shorten long lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpu_constructs.capacity.gathered import grouped

MOST_NAMED = 6
_LONG = 200
"""Largest number of characters of a list of names. A longer list ends with the number of further names."""


def joined(words: Sequence[str]) -> str:
    """Return words as text with commas and "and", for example ``a, b and c``.

    If there are too many words, the text ends with the number of omitted words, for example ``a, b and 4 more``.
    """
    few, length = 0, 0
    while few < min(len(words), MOST_NAMED) and (not few or length + len(words[few]) <= _LONG):
        length += len(words[few]) + 2
        few += 1
    if len(words) > few:
        return f"{', '.join(words[:few])} and {len(words) - few} more"
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""


def some(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Return the first ``most`` names as text with commas.

    If there are more names, the text ends with the number of omitted names, for example ``a, b and 4 more``.
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def nodewise(whys: Mapping[str, str], nodes: int) -> tuple[str, ...]:
    """Return clauses for a sentence. Each clause states a reason, and the nodes to which the reason applies.

    For example, a clause is ``each of gpu-1 and gpu-2 offers 1 nvidia.com/gpu, but a pod requests 2``.

    Args:
        whys: Reason by the name of the node. Nodes that share a reason become one clause.
        nodes: Number of all nodes and pools. If the clauses name fewer nodes, the last clause is, for example, ``and 3
            more``.
    """
    clauses: list[str] = []
    named = 0
    for why, names in grouped((why, name) for name, why in whys.items()).items():
        more = f"{'each of ' if len(names) > 1 else ''}{joined(names)} {why}"
        if clauses and len("; ".join([*clauses, more])) > 2 * _LONG:
            break
        clauses.append(more)
        named += len(names)
    return (*clauses, f"and {nodes - named} more") if nodes > named else tuple(clauses)


def has(nodes: Sequence[object]) -> str:
    """Return the verb "has" for one node, and "have" for several."""
    return "has" if len(nodes) == 1 else "have"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, for example ``1 pod`` or ``3 pods``.

    Args:
        number: Number.
        noun: Noun in the singular. The plural of the noun must end in "s".
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def several(title: str, pods: int) -> str:
    """Return the name of a workload with its number of pods if there are several pods, such as ``2 x default/llm``."""
    return title if pods == 1 else f"{pods} x {title}"


def memory(mib: int) -> str:
    """Return an amount of memory in MiB as a Kubernetes quantity, such as ``4Gi``."""
    return f"{mib}Mi" if mib % 1024 else f"{mib // 1024}Gi"


def unit_of(sizes: Iterable[int]) -> tuple[int, str]:
    """Return the unit GiB if all sizes are whole GiB; otherwise the unit MiB.

    The result is the size of the unit in MiB, and its name.

    Args:
        sizes: Sizes in MiB.
    """
    return (1024, "GiB") if all(mib % 1024 == 0 for mib in sizes) else (1, "MiB")


def verb(plural: str, names: Sequence[str]) -> str:
    """Return a verb in the form that fits the given names, for example ``requests`` for one name.

    Args:
        plural: Verb in the plural, for example ``request``.
        names: Names that are the subject of the verb.
    """
    return plural if len(names) > 1 else f"{plural}s"


def memory_sum(sizes: Sequence[int]) -> str:
    """Return text that adds sizes in MiB, such as ``2 + 3 GiB``. For many sizes, the text contains only the sum."""
    if len(sizes) > MOST_NAMED:
        return f"{sum(sizes)} MiB in all"
    unit, name = unit_of(sizes)
    return f"{' + '.join(str(mib // unit) for mib in sizes)} {name}"
