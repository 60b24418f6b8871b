"""Where and in what company a workload's pods run, beyond what their GPUs demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_constructs import _fields, placement
from gpu_constructs.errors import ShortErrors

_SPREAD = (
    *("labelSelector", "matchLabelKeys", "maxSkew", "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy"),
    *("topologyKey", "whenUnsatisfiable"),
)


@dataclass(frozen=True, kw_only=True)
class Scheduling(metaclass=ShortErrors):
    """What the scheduler is told besides.

    Attributes:
        affinity: As Kubernetes writes it. What the GPUs demand of a node is added to each of its alternatives.
        topology_spread_constraints: As Kubernetes writes them. None: several replicas are spread over nodes as far as
            GPUs allow (``ScheduleAnyway``); an empty list: not at all.
        scheduler_name: Of another scheduler, as Volcano or KAI.
        scheduling_gates: Names of gates that somebody else opens before the pods are scheduled.

    Raises:
        GpuConstructsError: An affinity or a constraint whose first levels are not as Kubernetes writes them, or a name
            that it would not take.
    """

    affinity: Mapping[str, Any] | None = None
    topology_spread_constraints: Sequence[Mapping[str, Any]] | None = None
    scheduler_name: str | None = None
    scheduling_gates: Sequence[str] = ()

    def __post_init__(self) -> None:
        _fields.members(self, "scheduling")
        placement.check_affinity(self.affinity or {})
        if self.scheduler_name is not None:
            _fields.dns_subdomain("scheduling.scheduler_name", self.scheduler_name)
        for index, constraint in enumerate(self.topology_spread_constraints or ()):
            _check_spread(f"scheduling.topology_spread_constraints[{index}]", constraint)
        for gate in self.scheduling_gates:
            _fields.labels("scheduling.scheduling_gates", {gate: ""})

    def to_manifest(self, *, replicas: int, selector: Mapping[str, str]) -> dict[str, Any]:
        """Give the members of a pod that say so."""
        spread = self.topology_spread_constraints
        if spread is None and replicas > 1:
            by_node = {"maxSkew": 1, "topologyKey": placement.HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway"}
            spread = [{**by_node, "labelSelector": {"matchLabels": dict(selector)}}]
        return {
            "affinity": self.affinity or None,
            "topologySpreadConstraints": [dict(one) for one in spread or ()] or None,
            "schedulerName": self.scheduler_name,
            "schedulingGates": [{"name": gate} for gate in self.scheduling_gates] or None,
        }


def _check_spread(field: str, constraint: Mapping[str, Any]) -> None:
    for key in constraint:
        _fields.one_of(f"{field} key", key, _SPREAD)
    _fields.whole_number(f"{field}['maxSkew']", constraint.get("maxSkew"), minimum=1)
    _fields.of_type(f"{field}['topologyKey']", constraint.get("topologyKey"), str)
    _fields.labels(f"{field}['topologyKey']", {constraint["topologyKey"]: ""})
    allowed = ("DoNotSchedule", "ScheduleAnyway")
    _fields.one_of(f"{field}['whenUnsatisfiable']", constraint.get("whenUnsatisfiable"), allowed)
