"""The capacity of a fleet: sums of the capacity plans of its clusters."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gpu_constructs.fleet.cluster import Cluster

STEM = "fleet-capacity"
SCHEMA_VERSION = 1
"""Version of the JSON format. It increases if a key disappears or changes its meaning, but not for new keys."""

_UNKNOWN_BOARD = "unknown board"


class Capacity(NamedTuple):
    """The GPU capacity of one cluster, of all clusters with the same label value, or of all boards of the same name.

    Attributes:
        clusters: Number of clusters.
        nodes: Number of GPU nodes.
        boards: Number of boards.
        watts: Sum of the known power limits of the boards, in watts.
        slots: Number of devices or slots that the nodes advertise, by GPU resource.
        used: Number of devices or slots that pods use in the capacity plans, by GPU resource.
        waiting: Number of pods for which the capacity plans find no room. None for a board, because a plan does not
            count pods by board.
    """

    clusters: int
    nodes: int
    boards: int
    watts: int
    slots: Mapping[str, int]
    used: Mapping[str, int]
    waiting: int | None


def of_cluster(report: str) -> dict[str, Capacity]:
    """Return the capacity of a cluster, and of each kind of board in the cluster.

    Args:
        report: Capacity plan of the cluster as JSON text.

    Returns:
        Capacity by name of the board, such as ``H100``. The key of the whole cluster is the empty text.
    """
    plan = json.loads(report)
    by_board: dict[str, list[Capacity]] = defaultdict(list)
    for node in plan["nodes"]:
        slots, used, count = Counter(node["allocatable"]), Counter[str](), node["count"]
        for device in node["devices"]:
            used[device["resource"]] += device["slots"]["used"]
        by_board[node["gpuModel"] or _UNKNOWN_BOARD].append(
            Capacity(
                clusters=1,
                nodes=count,
                boards=count * len(node["gpuWatts"]),
                watts=count * sum(watts or 0 for watts in node["gpuWatts"]),
                slots={resource: count * amount for resource, amount in slots.items()},
                used={resource: count * amount for resource, amount in used.items()},
                waiting=None,
            )
        )
    boards = {board: summed(parts)._replace(clusters=1) for board, parts in by_board.items()}
    waiting = sum(consumer["waiting"] for consumer in plan["consumers"])
    return {"": summed(boards.values())._replace(clusters=1, waiting=waiting), **boards}


def summed(parts: Iterable[Capacity]) -> Capacity:
    """Return one capacity that is the sum of the given capacities."""
    parts = list(parts)
    slots, used = Counter[str](), Counter[str]()
    for part in parts:
        slots.update(part.slots)
        used.update(part.used)
    known = [part.waiting for part in parts if part.waiting is not None]
    return Capacity(
        clusters=sum(part.clusters for part in parts),
        nodes=sum(part.nodes for part in parts),
        boards=sum(part.boards for part in parts),
        watts=sum(part.watts for part in parts),
        slots=dict(sorted(slots.items())),
        used={resource: used[resource] for resource in sorted(slots)},
        waiting=sum(known) if known else None,
    )


def on_disk(folder: Path) -> dict[str, Capacity] | None:
    """Return the capacities in the JSON capacity report of an earlier run, as a dict by name of the board.

    The key of the whole cluster is the empty text. Return None if the folder contains no such report.

    Args:
        folder: Folder with the reports of one cluster.
    """
    for path in sorted(folder.glob("*.json")):
        try:
            return of_cluster(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, KeyError, TypeError):
            # The file is another report, or a user changed it.
            continue
    return None


class Totals(NamedTuple):
    """The capacity of a fleet.

    Attributes:
        by_cluster: Capacity of each cluster that has a capacity plan, by name.
        by: Nested dict: for each label, the capacity by value of the label, such as ``{"region": {"eu": ...}}``. The
            key ``board`` contains the capacity by name of the board.
        without_plan: Names of the clusters without a capacity plan.
    """

    by_cluster: Mapping[str, Capacity]
    by: Mapping[str, Mapping[str, Capacity]]
    without_plan: Sequence[str]

    def to_json(self) -> str:
        """Return the capacity as JSON text."""
        return (
            json.dumps(
                {
                    "schemaVersion": SCHEMA_VERSION,
                    "all": summed(self.by_cluster.values())._asdict(),
                    "by": {key: {name: one._asdict() for name, one in rows.items()} for key, rows in self.by.items()},
                    "clusters": {name: one._asdict() for name, one in self.by_cluster.items()},
                    "withoutPlan": list(self.without_plan),
                },
                indent=1,
            )
            + "\n"
        )

    def to_text(self) -> str:
        """Return the capacity as text: one table for each label and for the boards."""
        blocks = [_table("fleet", {"all clusters": summed(self.by_cluster.values())})]
        blocks += [_table(key, rows) for key, rows in self.by.items()]
        if self.without_plan:
            blocks.append("Clusters without a capacity plan: " + ", ".join(self.without_plan) + "\n")
        return "\n".join(blocks)


def totals(
    clusters: Sequence[Cluster], capacities: Mapping[str, Mapping[str, Capacity] | None], labels: Sequence[str]
) -> Totals:
    """Return the capacity of each cluster, of all clusters with the same label value, and of all boards of one name.

    Args:
        clusters: Clusters of the fleet.
        capacities: Results of ``of_cluster``, by name of the cluster; None for a cluster without a capacity plan.
        labels: Labels of clusters, such as ``region``. The result contains no sums for a label that no cluster has.
    """
    planned = {one.name: found for one in clusters if (found := capacities.get(one.name)) is not None}
    by = {
        label: _grouped(
            (one.labels.get(label, f"no {label}"), planned[one.name][""]) for one in clusters if one.name in planned
        )
        for label in labels
        if any(label in one.labels for one in clusters)
    }
    by["board"] = _grouped(
        (board, capacity) for found in planned.values() for board, capacity in found.items() if board
    )
    return Totals(
        by_cluster={name: found[""] for name, found in planned.items()},
        by=by,
        without_plan=[one.name for one in clusters if one.name not in planned],
    )


def _grouped(parts: Iterable[tuple[str, Capacity]]) -> dict[str, Capacity]:
    groups: dict[str, list[Capacity]] = defaultdict(list)
    for name, capacity in parts:
        groups[name].append(capacity)
    return {name: summed(groups[name]) for name in sorted(groups)}


_HEADINGS = ("clusters", "nodes", "boards", "kW", "resource", "slots", "used", "free", "waiting")


def _table(heading: str, rows: Mapping[str, Capacity]) -> str:
    """Return a text table of capacities, with one line for each GPU resource of each row.

    Args:
        heading: Heading of the first column.
        rows: Capacities by the text in the first column.
    """
    lines = [(heading, *_HEADINGS), *(line for name, one in rows.items() for line in _lines(name, one))]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    words = (0, 1 + _HEADINGS.index("resource"))
    return "".join(
        "  ".join(
            cell.ljust(width) if place in words else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        + "\n"
        for line in lines
    )


def _lines(name: str, one: Capacity) -> Iterator[tuple[str, ...]]:
    amounts = [name, str(one.clusters), str(one.nodes), str(one.boards), f"{one.watts / 1000:.1f}"]
    waiting = "" if one.waiting is None else str(one.waiting)
    for resource, slots in one.slots.items() or {"": 0}.items():
        used = one.used.get(resource, 0)
        yield (*amounts, resource, str(slots), str(used), str(slots - used), waiting)
        amounts, waiting = [""] * len(amounts), ""
