"""The capacity planner, which computes whether the GPU nodes of a cluster have room for the pods of an app.

The planner places the pods on nodes, adds up slots, memory and power, and records assumptions. A *consumer* is a
workload as the plan sees it: equal pods of one object that request GPUs. Long-running pods run until someone deletes
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from gpu_constructs.capacity.claim_choices import Chosen, chosen
from gpu_constructs.capacity.conditions import Beside, conditional, conditions, races, unchecked
from gpu_constructs.capacity.consumer import Condition, Consumer
from gpu_constructs.capacity.demand.consumers import consumers as consumers_of
from gpu_constructs.capacity.demand.pod_rules import bystanders, rules_between
from gpu_constructs.capacity.demand.present import uncounted
from gpu_constructs.capacity.device_memory import DeviceMemory
from gpu_constructs.capacity.gathered import summed
from gpu_constructs.capacity.limits import MemoryProblems, Quotas, power_problems
from gpu_constructs.capacity.matching import Matching, Packed, with_named_nodes
from gpu_constructs.capacity.packing import solver
from gpu_constructs.capacity.placed_pods import PlacedPods, seated, settled
from gpu_constructs.capacity.plan import Plan
from gpu_constructs.capacity.planned import Answer, NodeOffer, PlannedConsumer, Power, Problem, Stock
from gpu_constructs.capacity.pod_rules_search import BetweenPods
from gpu_constructs.capacity.problems import Problems
from gpu_constructs.capacity.room_beside import placed_by_priority
from gpu_constructs.capacity.supply import node_offers
from gpu_constructs.catalog.inventory import GpuInventory
from gpu_constructs.errors import short_errors
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.readable import plain_manifests
from gpu_constructs.kube import fields

_ORDER = ("placement", "slots", "rollout", "vram", "power", "waiting")
_LONGEST = 600
"""Largest number of characters of a sentence in the plan."""
_LEAST = 20
"""Smallest number of characters for which the plan shortens a detail. With less room, it omits the detail."""


@short_errors
def plan_capacity(manifests: Iterable[Mapping[str, Any] | None], inventory: GpuInventory) -> Plan:
    """Return the capacity plan of plain manifests, without a cdk8s app and without Node.js.

    The manifests can come from ``helm template``, ``kustomize build`` or ``kubectl get -o json``. The function writes
    no file. It does not read the configuration of a device plugin from the manifests. If pods share the GPUs of a node,
    set ``GpuNode(sharing=...)``.

    Args:
        manifests: Kubernetes objects as plain data. For an object of the kind ``List``, the function reads its items.
            It skips None, which stands for an empty YAML document.
        inventory: GPU nodes of the cluster.

    Returns:
        The plan. Its methods ``to_text(title)``, ``to_json(title)``, ``to_svg(title)`` and ``to_html(title)`` return
        reports.

    Raises:
        GpuConstructsError: If ``inventory`` is not a GpuInventory, or a manifest is not a Kubernetes object.
    """
    fields.arguments(plan_capacity, {"inventory": inventory})
    return plan(Facts(plain_manifests("manifests", manifests), (), inventory), inventory)


def plan(facts: Facts, inventory: GpuInventory) -> Plan:
    """Return the capacity plan of an app.

    Args:
        facts: What the app contains: its objects, and what its constructs declare about their effects on the cluster.
        inventory: GPU nodes of the cluster.
    """
    consumers = consumers_of(facts)
    classes = {name for consumer in consumers for name in consumer.asks if "/" not in name}
    manifests = [manifest for _, manifest in facts.of_kind(("node.k8s.io", "RuntimeClass"))]
    runtime_classes = {
        str((manifest.get("metadata") or {}).get("name")): manifest.get("scheduling") or {} for manifest in manifests
    }
    offers = node_offers(
        inventory,
        facts.provided,
        classes,
        facts.unpublished_labels,
        frozenset(filter(facts.publishes, facts.selected_labels)),
    )
    others = bystanders(facts, consumers)
    made = plan_of(consumers, offers, runtime_classes, inventory.rack_watts, others)
    made = conditional(made, [unchecked(one) for one in uncounted(facts)])
    if not made.problems:
        return made
    # Only a plan with problems needs advice.
    from gpu_constructs.capacity.recommendation import advice

    return replace(made, advice=[_cut(one) for one in advice(made, inventory, manifests)])


def plan_of(
    consumers: Sequence[Consumer],
    offers: Sequence[NodeOffer],
    runtime_classes: Mapping[str, Mapping[str, Any]],
    rack_watts: Mapping[str, int],
    others: Sequence[Consumer] = (),
) -> Plan:
    """Return the capacity plan for workloads and nodes, with an empty attribute ``advice``.

    Args:
        consumers: Workloads whose pods request GPUs.
        offers: Nodes and node pools with their devices.
        runtime_classes: Field ``scheduling`` of each RuntimeClass, by name.
        rack_watts: Power limit of each rack in watts, by the name of the rack.
        others: Workloads of the app that request no GPU. Affinity and topology spread rules of GPU pods can select the
            pods of these workloads.
    """
    offers = with_named_nodes(consumers, offers, runtime_classes)
    choice = chosen([one.as_it_runs() for one in consumers], offers, runtime_classes)
    consumers = choice.consumers
    matching = Matching(consumers, offers, runtime_classes)
    quotas = Quotas(matching)
    always, everything = _packed(matching, quotas, choice)
    rules = rules_between(consumers, others)
    beside = Beside(matching, BetweenPods(matching, rules, runtime_classes), rules, quotas, always, everything)
    urgent = _by_priority(matching, quotas, everything)
    placed_pods = beside.placed or settled(matching, always, everything, quotas.most, urgent)
    counts = placed_pods.counts()
    placed = {**counts, **quotas.of_daemons}
    lacking = {index: count for index, most in quotas.most.items() if (count := most - placed.get(index, 0))}
    always_fits, all_fits = _answers(matching, quotas, beside)
    # If some pods wait, the plan does not know which of them get the free places.
    sure = counts if beside.all_runs else quotas.least if beside.always_runs else {}
    memory = DeviceMemory(matching)
    nodes = seated(matching, memory, placed_pods)
    verdict = memory.verdict({**sure, **matching.nodes_of_daemons})
    conflicts, has_more = ([], False) if verdict == "safe" else memory.conflicts()
    power = _power(offers, rack_watts)
    problems, of_memory = Problems(matching), MemoryProblems(matching)
    found = [*problems.of_placement(), *of_memory.of_large_budgets(), *problems.of_full_nodes(), *quotas.problems()]
    found += beside.problems
    found += _of_places(
        problems, always, everything, urgent, lacking, may_look=beside.always_runs and not choice.is_open
    )
    devices = [device for node in nodes for device in node.devices]
    found += [*of_memory.of_meetings(verdict, devices, conflicts, lacking), *power_problems(matching, power)]
    # If claims accept alternative devices, the plan did not try all choices, and a solver does not help.
    answers = [verdict] if choice.is_open else [verdict, always_fits, all_fits]
    made = Plan(
        nodes=nodes,
        consumers=[_consumer(matching, index, placed.get(index, 0)) for index in range(len(consumers))],
        stock=_stock(matching, placed),
        always_fits=always_fits,
        all_fits=all_fits,
        vram=verdict,
        conflicts=conflicts,
        has_more_conflicts=has_more,
        power=power,
        problems=[_short(problem) for problem in sorted(found, key=lambda problem: _ORDER.index(problem.kind))],
        advice=[],
        notes=[*dict.fromkeys([*_notes(matching), *races(matching, always, lacking)]), *_without_solver(answers)],
    )
    found = [*conditions(matching), *beside.conditions, *problems.one_by_one(sure), *_unsearched(problems, choice)]
    return conditional(made, [_short(problem) for problem in found])


def _packed(matching: Matching, quotas: Quotas, choice: Chosen) -> tuple[Packed, Packed]:
    """Return two assignments of pods to nodes: for the long-running pods, and for all pods that ResourceQuotas admit.

    Args:
        matching: Workloads and the nodes that accept their pods.
        quotas: Number of pods that ResourceQuotas admit.
        choice: Choice of devices for ResourceClaims that accept alternative devices. An assignment has the answer
            "undecided" instead of "no" if another choice may leave room for all pods.
    """
    always = _known(matching.pack(quotas.least), is_sure=choice.is_least_sure)
    if all(quotas.most[index] <= count for index, count in quotas.least.items()):
        return always, always
    least = {index: min(count, quotas.most[index]) for index, count in quotas.least.items()}
    more = {index: quotas.most[index] - count for index, count in least.items()}
    return always, _known(matching.pack(least, more), is_sure=choice.is_sure)


def _known(packed: Packed, *, is_sure: bool) -> Packed:
    """Return the given assignment of pods to nodes, with the answer "undecided" instead of "no" if "no" may be wrong.

    The answer "no" may be wrong if the claims of pods accept alternative devices: another choice of devices may leave
    room for all pods.

    Args:
        packed: Assignment of pods to nodes, with the answer whether all pods have room.
        is_sure: Whether the answer "no" is certain.
    """
    if is_sure or packed.packing.answer != "no":
        return packed
    return replace(packed, packing=replace(packed.packing, answer="undecided"))


def _by_priority(matching: Matching, quotas: Quotas, everything: Packed) -> PlacedPods | None:
    """Return the pods on each node if pods of higher priority get room first and evict pods of lower priority.

    Return None if priorities do not matter: all pods have room, or all pods have the same priority.

    Args:
        matching: Workloads and the nodes that accept their pods.
        quotas: Number of pods that ResourceQuotas admit.
        everything: Assignment of all pods to nodes, with the answer whether all pods have room.
    """
    if everything.packing.answer == "yes" or len({matching.consumers[index].priority for index in quotas.most}) < 2:
        return None
    return placed_by_priority(matching, quotas.least, quotas.most)


def _of_places(
    problems: Problems,
    always: Packed,
    everything: Packed,
    urgent: PlacedPods | None,
    lacking: Mapping[int, int],
    *,
    may_look: bool,
) -> list[Problem]:
    """Return the problems of pods for which no node has enough room.

    If the long-running pods do not have enough room, return only this problem.

    Args:
        problems: Object whose methods describe the problems.
        always: Assignment of the long-running pods to nodes, as far as the nodes have room.
        everything: Assignment of all pods to nodes, as far as the nodes have room.
        urgent: Placement in which pods of higher priority get room first. None if all pods have room, or if all pods
            have the same priority.
        lacking: Number of pods that stay Pending, by the index of the workload.
        may_look: Whether to report that new pods of a Job or an update have no room next to the long-running pods.
    """
    if always.packing.answer == "no":
        return [problems.of_what_always_runs(always, urgent)]
    beside = list(problems.beside(always)) if may_look else []
    return [*beside, *problems.of_waiting(everything, lacking)]


def _answers(matching: Matching, quotas: Quotas, beside: Beside) -> tuple[Answer, Answer]:
    """Return two answers: whether all long-running pods have room, and whether all pods have room at the same time.

    Args:
        matching: Workloads and the nodes that accept their pods.
        quotas: Number of pods that ResourceQuotas admit.
        beside: The same two answers under affinity and topology spread rules, but for fewer pods. These answers ignore
            pods that ResourceQuotas reject, and pods of the workloads that ``_lost`` returns.
    """
    lost = _lost(matching)
    always: Answer = "no" if any(one.lasts for one in lost) or not quotas.admits_always else beside.always
    return always, "no" if lost or not quotas.admits_all else beside.everything


def _lost(matching: Matching) -> list[Consumer]:
    """Return the workloads with pods that certainly have no room.

    Either no node accepts these pods, or they are pods of a DaemonSet that creates a pod on a node without room.

    Args:
        matching: Workloads and the nodes that accept their pods.
    """
    able = {index for unit in matching.units for index in unit}
    crowded = {index for those in matching.crowded.values() for index in those} | set(matching.unsatisfied)
    return [
        one
        for index, one in enumerate(matching.consumers)
        if (one.pods and not one.is_for_each_node and index not in able)
        or (one.is_for_each_node and (not matching.takers[index] or index in crowded))
    ]


def _without_solver(answers: Collection[str]) -> Iterator[str]:
    """Yield a note to install the solver HiGHS if an answer is "undecided" and the solver is not installed."""
    if "undecided" in answers and not solver.is_installed():
        yield (
            "only the solver HiGHS can decide whether the pods fit, and it is not installed. Run "
            "pip install 'gpu-constructs[plan]'"
        )


def _unsearched(problems: Problems, choice: Chosen) -> Iterator[Problem]:
    moves = any(one.pods and (one.updating or not one.least_copies) for one in choice.consumers)
    if (choice.is_open and moves) or not problems.is_searched:
        yield unchecked(
            Condition("the updates and jobs that the plan did not check also fit next to the long-running pods")
        )


def _short(problem: Problem) -> Problem:
    """Return a copy of a problem, and shorten very long texts in the copy."""
    what = _cut(problem.what)
    details, room = problem.details, _LONGEST - len(what) - len(": ")
    if len("; ".join(details)) > room:
        details = (_cut("; ".join(details), room),) if room > _LEAST else ()
    return replace(problem, what=what, way_out=_cut(problem.way_out), details=details)


def _cut(text: str, most: int = _LONGEST) -> str:
    return text if len(text) <= most else f"{text[: most - 4]} ..."


def _wanted(matching: Matching, index: int) -> int:
    """Return how many pods the workload with the given index has, including pods without room on a node."""
    consumer = matching.consumers[index]
    if consumer.is_for_each_node:
        kinds = [*matching.takers[index], *matching.unsatisfied.get(index, ())]
        return sum(matching.bins[kind].count for kind in kinds)
    return consumer.pods


def _consumer(matching: Matching, index: int, placed: int) -> PlannedConsumer:
    return PlannedConsumer(
        consumer=matching.consumers[index],
        placed=placed,
        waiting=_wanted(matching, index) - placed,
        nodes=matching.names(matching.takers[index]),
        refusals=matching.refusals(index),
    )


def _stock(matching: Matching, placed: Mapping[int, int]) -> dict[str, Stock]:
    always, wanted, held = Counter[str](), Counter[str](), Counter[str]()
    for index, one in enumerate(matching.consumers):
        all_pods = _wanted(matching, index)
        for name, amount in one.asks.items():
            always[name] += amount * (all_pods if one.is_for_each_node else one.least_pods)
            wanted[name] += amount * all_pods
            held[name] += amount * placed.get(index, 0)
    total = Counter(
        summed((name, amount * one.count) for one in matching.offers for name, amount in one.allocatable.items())
    )
    return {name: Stock(total[name], always[name], wanted[name], held[name]) for name in matching.resources}


def _power(offers: Sequence[NodeOffer], rack_watts: Mapping[str, int]) -> Power:
    racks = summed((offer.rack, sum(one or 0 for one in offer.gpu_watts) * offer.count) for offer in offers)
    unknown = sum(list(offer.gpu_watts).count(None) * offer.count for offer in offers)
    named = {rack: watts for rack, watts in racks.items() if rack}
    return Power(watts=sum(racks.values()), unknown=unknown, racks=named, rack_watts=dict(rack_watts))


def _notes(matching: Matching) -> Iterator[str]:
    of_nodes = ((one.name, note) for one in matching.offers for note in one.notes)
    of_consumers = ((one.title, note) for one in matching.consumers for note in one.notes)
    return (f"{name}: {note}" for name, note in chain(of_nodes, of_consumers) if not isinstance(note, Condition))
