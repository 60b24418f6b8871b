"""The capacity report for programs: everything the plan says, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gpu_constructs.capacity.plan import Conflict, Plan, PlannedConsumer, PlannedDevice, PlannedNode, Problem
from gpu_constructs.capacity.report.words import is_silent, percent, subjects, verdict

SCHEMA_VERSION = 1
"""Grows when a key is taken away or means something else; new keys come without it."""


def json_text(plan: Plan, title: str) -> str:
    """Write everything the plan says, but for pod specs and labels.

    Which nodes take a consumer's pods is written once for all that the same nodes take: ``eligibility`` of a consumer
    is an index into the list of that name.
    """
    eligibilities: dict[str, int] = {}
    written: list[dict[str, Any]] = []

    def index(each: PlannedConsumer) -> int:
        one = _eligibility(each)
        key = json.dumps(one, sort_keys=True)
        if key not in eligibilities:
            eligibilities[key] = len(written)
            written.append(one)
        return eligibilities[key]

    named = subjects(plan)
    content = {
        "schemaVersion": SCHEMA_VERSION,
        "title": title,
        "verdict": {
            "alwaysFits": plan.always_fits,
            "allFits": plan.all_fits,
            "vram": plan.vram,
            "sentences": [{"level": one.level, "text": one.text} for one in verdict(plan)],
        },
        "stock": {
            resource: {
                "total": stock.total,
                "always": stock.always,
                "wanted": stock.wanted,
                "placed": stock.placed,
                "left": stock.left,
            }
            for resource, stock in plan.stock.items()
        },
        "nodes": [_node(node, plan) for node in plan.nodes],
        "consumers": [{**_consumer(each), "eligibility": index(each)} for each in plan.consumers],
        "eligibility": written,
        "problems": [_problem(problem, named) for problem in plan.problems],
        "conditions": [_problem(condition, named) for condition in plan.conditions],
        "conflicts": [_conflict(one) for one in plan.conflicts],
        "hasMoreConflicts": plan.has_more_conflicts,
        "power": {
            "watts": plan.power.watts,
            "unknownBoards": plan.power.unknown,
            "racks": {
                rack: {"watts": plan.power.racks.get(rack, 0), "mostWatts": plan.power.rack_watts.get(rack)}
                for rack in {*plan.power.racks, *plan.power.rack_watts}
            },
        },
        "advice": list(plan.advice),
        "notes": list(plan.notes),
    }
    return json.dumps(content, indent=2, sort_keys=True) + "\n"


def _node(node: PlannedNode, plan: Plan) -> dict[str, Any]:
    offer = node.offer
    return {
        "pool": offer.name,
        "title": node.title,
        "first": node.first,
        "count": node.count,
        "gpuModel": offer.gpu_model,
        "sharing": offer.sharing,
        "vramUnitMiB": offer.vram_unit_mib,
        "rack": offer.rack,
        "labels": dict(offer.labels),
        "taints": [dict(taint) for taint in offer.taints],
        "allocatable": dict(offer.allocatable),
        "watts": node.watts,
        "gpuWatts": list(offer.gpu_watts),
        "notes": list(offer.notes),
        "devices": [{**_device(planned), "isAtLeast": is_silent(plan, planned)} for planned in node.devices],
    }


def _device(planned: PlannedDevice) -> dict[str, Any]:
    device = planned.device
    return {
        "title": device.title,
        "resource": device.resource,
        "gpu": device.gpu,
        "profile": device.profile,
        "slots": {"total": device.slots, "used": planned.used_slots},
        "vramMiB": device.vram_mib,
        "vramEachMiB": device.vram_each_mib,
        "mostEach": device.most_each,
        "typicalMiB": planned.typical_mib,
        "seatedMiB": planned.seated_mib,
        "worstMiB": planned.worst_mib,
        "worstPercent": percent(planned.worst_mib, device.vram_mib) if device.vram_mib else None,
        "hasUnknown": planned.has_unknown,
        "seats": [{"consumer": seat.consumer, "pods": seat.pods, "slots": seat.slots} for seat in planned.seats],
    }


def _consumer(each: PlannedConsumer) -> dict[str, Any]:
    consumer = each.consumer
    return {
        "kind": consumer.kind,
        "namespace": consumer.namespace,
        "name": consumer.name,
        "part": consumer.part,
        "asks": dict(consumer.asks),
        "mostAsked": dict(consumer.most_asked),
        "copies": consumer.copies,
        "leastCopies": consumer.least_copies,
        "podsEach": consumer.pods_each,
        "pods": consumer.pods,
        "leastPods": consumer.least_pods,
        "surge": consumer.surge,
        "surgeIsNeeded": consumer.surge_is_needed,
        "surgeTogether": consumer.surge_together,
        "isGang": consumer.is_gang,
        "startsWith": consumer.starts_with,
        "isStopped": consumer.is_stopped,
        "priority": consumer.priority,
        "preempts": consumer.preempts,
        "isForEachNode": consumer.is_for_each_node,
        "mostPerNode": consumer.most_per_node,
        "vramMiB": consumer.vram_mib,
        "typicalVramMiB": consumer.typical_vram_mib,
        "placed": each.placed,
        "waiting": each.waiting,
        "notes": list(consumer.notes),
    }


def _eligibility(each: PlannedConsumer) -> dict[str, Any]:
    by_reason: dict[str, list[str]] = {}
    for node, why in each.refusals.items():
        by_reason.setdefault(why, []).append(node)
    return {
        "nodes": list(each.nodes),
        "refusals": [{"why": why, "nodes": nodes} for why, nodes in by_reason.items()],
    }


def _problem(problem: Problem, named: Mapping[int, str]) -> dict[str, Any]:
    return {
        "kind": problem.kind,
        "object": None if problem.subject is None else named.get(problem.subject),
        "text": problem.text,
        "wayOut": problem.way_out,
    }


def _conflict(one: Conflict) -> dict[str, Any]:
    return {
        "device": one.device,
        "vramMiB": one.vram_mib,
        "togetherMiB": one.together_mib,
        "pods": [{"consumer": consumer, "pods": number} for consumer, number in one.pods.items()],
    }
