"""The capacity report in JSON, which other tools can read.

A consumer is a workload whose pods request GPUs: the pods of one object that have the same pod spec and GPU request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from gpu_constructs.capacity.gathered import grouped
from gpu_constructs.capacity.planned import PlanData, PlannedConsumer, PlannedDevice, PlannedNode, Problem
from gpu_constructs.capacity.report.verdict import verdict
from gpu_constructs.capacity.report.words import is_silent, percent, rack_lines, subjects

SCHEMA_VERSION = 1
"""Version of the JSON format. It increases if a key disappears or changes its meaning, but not for new keys."""

_DEVICE = "title resource profile vram_mib vram_each_mib most_each"
_PLANNED_DEVICE = "typical_mib seated_mib worst_mib has_unknown"
_OFFER = "gpu_model sharing vram_unit_mib rack labels taints allocatable gpu_watts notes"
_NODE = "title first count watts"
_CONSUMER = (
    "kind namespace name part asks most_asked copies least_copies pods_each pods least_pods surge surge_is_needed "
    "surge_together is_gang starts_with is_stopped priority preempts is_for_each_node most_per_node vram_mib "
    "typical_vram_mib notes"
)


def json_text(plan: PlanData, title: str) -> str:
    """Return all data of a capacity plan as JSON text, except pod specs and pod labels.

    Each entry of the list ``eligibility`` names the nodes that accept the pods of a consumer (workload), and states why
    each other node rejects them. Consumers with equal entries share one entry. The key ``eligibility`` of a consumer is
    the index of its entry in this list.

    Args:
        plan: Capacity plan of an app.
        title: Title of the report.
    """
    eligibilities = {one: at for at, one in enumerate(dict.fromkeys(map(_eligibility, plan.consumers)))}
    named = subjects(plan)
    content = {
        "schemaVersion": SCHEMA_VERSION,
        "title": title,
        "verdict": {
            **_members(plan, "always_fits all_fits vram"),
            "sentences": [_members(one, "level text") for one in verdict(plan)],
        },
        "stock": {name: _members(stock, "total always wanted placed left") for name, stock in plan.stock.items()},
        "nodes": [_node(node, plan) for node in plan.nodes],
        "consumers": [
            {
                **_members(each.consumer, _CONSUMER),
                **_members(each, "placed waiting"),
                "eligibility": eligibilities[_eligibility(each)],
            }
            for each in plan.consumers
        ],
        "eligibility": [json.loads(one) for one in eligibilities],
        "problems": [_problem(problem, named) for problem in plan.problems],
        "conditions": [_problem(condition, named) for condition in plan.conditions],
        "conflicts": [
            {
                **_members(one, "device vram_mib together_mib"),
                "pods": [{"consumer": consumer, "pods": number} for consumer, number in one.pods.items()],
            }
            for one in plan.conflicts
        ],
        "power": {
            "watts": plan.power.watts,
            "unknownBoards": plan.power.unknown,
            "racks": {rack: {"watts": drawn, "mostWatts": most} for rack, drawn, most in rack_lines(plan)},
        },
        **_members(plan, "has_more_conflicts advice notes"),
    }
    return json.dumps(content, indent=2, sort_keys=True) + "\n"


def _members(of: object, names: str) -> dict[str, Any]:
    """Return attributes of an object as a dict by their JSON names, for example ``vramMiB`` for ``vram_mib``.

    Args:
        of: Object with the attributes.
        names: Names of the attributes, separated by spaces.
    """
    return {_key(name): _plain(getattr(of, name)) for name in names.split()}


def _key(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name.replace("_mib", "_miB"))


def _plain(value: Any) -> Any:
    """Return a value as data that JSON can represent, for example a list for a tuple."""
    if isinstance(value, Mapping):
        return dict(value)
    return value if value is None or isinstance(value, str | int) else [_plain(one) for one in value]


def _node(node: PlannedNode, plan: PlanData) -> dict[str, Any]:
    """Return the JSON data of a node (or of several equal nodes) of the inventory and its devices."""
    return {
        "pool": node.offer.name,
        **_members(node.offer, _OFFER),
        **_members(node, _NODE),
        "devices": [{**_device(planned), "isAtLeast": is_silent(plan, planned)} for planned in node.devices],
    }


def _device(planned: PlannedDevice) -> dict[str, Any]:
    """Return the JSON data of a device and the pods on it."""
    device = planned.device
    return {
        **_members(device, _DEVICE),
        "gpu": device.gpu,
        **_members(planned, _PLANNED_DEVICE),
        "slots": {"total": device.slots, "used": planned.used_slots},
        "worstPercent": percent(planned.worst_mib, device.vram_mib) if device.vram_mib else None,
        "seats": [_members(seat, "consumer pods slots") for seat in planned.seats],
    }


def _eligibility(each: PlannedConsumer) -> str:
    """Return JSON text: the nodes that accept a workload's pods, and the reason why each other node rejects them."""
    by_reason = grouped((why, node) for node, why in each.refusals.items())
    refusals = [{"why": why, "nodes": nodes} for why, nodes in by_reason.items()]
    return json.dumps({"nodes": list(each.nodes), "refusals": refusals})


def _problem(problem: Problem, named: Mapping[int, str]) -> dict[str, Any]:
    """Return the JSON data of a problem or a condition (an assumption that the capacity plan cannot check).

    Args:
        problem: Problem or condition of the plan.
        named: Names of the objects, by index of the object.
    """
    return {
        **_members(problem, "kind text way_out"),
        "object": None if problem.subject is None else named.get(problem.subject),
    }
