"""Makes the plan: places pods, adds up slots, memory and power, and says what was assumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpu_constructs import _fields
from gpu_constructs.capacity.beside import Beside
from gpu_constructs.capacity.between_pods import BetweenPods
from gpu_constructs.capacity.by_priority import placed_by_priority
from gpu_constructs.capacity.claim_choices import Chosen, chosen
from gpu_constructs.capacity.condition import Condition
from gpu_constructs.capacity.conditions import conditional, conditions, unchecked
from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.demand import consumers as consumers_of
from gpu_constructs.capacity.demand import uncounted
from gpu_constructs.capacity.demand.between import bystanders, rules_between
from gpu_constructs.capacity.device_memory import DeviceMemory
from gpu_constructs.capacity.matching import Matching, Packed
from gpu_constructs.capacity.memory_and_power import MemoryProblems, power_problems
from gpu_constructs.capacity.named_nodes import with_named_nodes
from gpu_constructs.capacity.node_offer import NodeOffer
from gpu_constructs.capacity.placed_pods import settled
from gpu_constructs.capacity.plain_manifests import plain_manifests
from gpu_constructs.capacity.plan import Plan, PlannedConsumer, PlannedNode, Power, Problem, Stock
from gpu_constructs.capacity.pod_counts import as_it_runs, updating
from gpu_constructs.capacity.problems import Problems
from gpu_constructs.capacity.quotas import Quotas
from gpu_constructs.capacity.seating import SeatedNode, seated
from gpu_constructs.capacity.supply import node_offers
from gpu_constructs.capacity.update_race import races
from gpu_constructs.errors import short_errors
from gpu_constructs.inventory import GpuInventory
from gpu_constructs.rules.facts import Facts

_ORDER = ("placement", "slots", "rollout", "vram", "power", "waiting")
_LONGEST = 600
"""Characters of a sentence."""
_LEAST = 20
"""Characters of a detail that says anything."""


@short_errors
def plan_capacity(manifests: Iterable[Mapping[str, Any] | None], inventory: GpuInventory) -> Plan:
    """Plan objects that no app of cdk8s makes: a chart that Helm rendered, what Kustomize builds, a cluster's own.

    How GPUs are shared the nodes say: ``GpuNode(sharing=...)``. Nothing is written, and no Node.js runs.

    Args:
        manifests: The objects, as plain data; members of a ``List`` count, and None, an empty document, does not.
        inventory: The GPU nodes.

    Returns:
        The plan, which ``to_text(title)``, ``to_json``, ``to_svg`` and ``to_html`` write out.

    Raises:
        GpuConstructsError: No inventory, or something that is no object of Kubernetes.
    """
    _fields.arguments(plan_capacity, {"inventory": inventory})
    return plan(Facts(plain_manifests("manifests", manifests), (), inventory), inventory)


def plan(facts: Facts, inventory: GpuInventory) -> Plan:
    """Compute what becomes of everything in an app that asks for GPUs.

    Args:
        facts: The app.
        inventory: The GPU nodes of its cluster.
    """
    consumers = consumers_of(facts)
    classes = {name for consumer in consumers for name in consumer.asks if "/" not in name}
    manifests = [manifest for _, manifest in facts.of_kind(("node.k8s.io", "RuntimeClass"))]
    runtime_classes = {
        str((manifest.get("metadata") or {}).get("name")): manifest.get("scheduling") or {} for manifest in manifests
    }
    offers = node_offers(inventory, facts.provided, classes, facts.unpublished_labels)
    others = bystanders(facts, consumers)
    made = plan_of(consumers, offers, runtime_classes, inventory.rack_watts, others)
    made = conditional(made, [unchecked(one) for one in uncounted(facts)])
    if not made.problems:
        return made
    # Asked for only where something does not fit.
    from gpu_constructs.capacity.advice import advice

    return replace(made, advice=[_cut(one) for one in advice(made, inventory, manifests)])


def plan_of(
    consumers: Sequence[Consumer],
    offers: Sequence[NodeOffer],
    runtime_classes: Mapping[str, Mapping[str, Any]],
    rack_watts: Mapping[str, int],
    others: Sequence[Consumer] = (),
) -> Plan:
    """Compute the plan of consumers and nodes; without advice.

    Args:
        consumers: Everyone who asks for GPUs.
        offers: What each node or pool offers.
        runtime_classes: The member ``scheduling`` of RuntimeClasses, by name.
        rack_watts: What each rack may draw.
        others: Pods of the app that ask for no GPU, to which rules between pods may refer.
    """
    offers = with_named_nodes(consumers, offers, runtime_classes)
    choice = chosen([as_it_runs(one) for one in consumers], offers, runtime_classes)
    consumers = choice.consumers
    matching = Matching(consumers, offers, runtime_classes)
    problems, of_memory = Problems(matching), MemoryProblems(matching)
    found = [
        *problems.of_placement(),
        *of_memory.of_large_budgets(),
        *problems.of_full_nodes(),
    ]
    able = [index for unit in matching.units for index in unit]
    quotas = Quotas(matching)
    found += quotas.problems()
    steady = quotas.least
    always = _known(matching.pack(steady), is_sure=choice.is_least_sure)
    everything = always
    if any(quotas.most[index] > count for index, count in steady.items()):
        least = {index: min(count, quotas.most[index]) for index, count in steady.items()}
        more = {index: quotas.most[index] - count for index, count in least.items()}
        everything = _known(matching.pack(least, more), is_sure=choice.is_sure)
    rules = rules_between(consumers, others)
    beside = Beside(matching, BetweenPods(matching, rules, runtime_classes), rules, quotas, always, everything)
    found += beside.problems
    urgent = None
    if everything.packing.answer != "yes" and len({consumers[index].priority for index in able}) > 1:
        urgent = placed_by_priority(matching, steady, quotas.most)
    if always.packing.answer == "no":
        running = urgent.counts() if urgent else {}
        found.append(problems.of_what_always_runs(always, running))
    elif beside.always == "yes" and quotas.admits_always and not choice.is_open:
        found += problems.beside(always)
    placed_pods = beside.placed or settled(matching, always, everything, urgent)
    counts = placed_pods.counts()
    placed = {**counts, **quotas.of_daemons}
    # Which of those that wait for a place get one, nobody knows.
    sure: Mapping[int, int] = {}
    if beside.everything == "yes" and quotas.admits_all:
        sure = counts
    elif beside.always == "yes" and quotas.admits_always:
        sure = steady
    lacking = {i: count for i in able if (count := quotas.most[i] - placed.get(i, 0))}
    if everything.packing.answer != "yes" and always.packing.answer != "no":
        found += problems.of_waiting(everything, lacking)
    memory = DeviceMemory(matching)
    nodes = list(_nodes(matching, memory, seated(matching, placed_pods)))
    verdict = memory.verdict({**sure, **matching.nodes_of_daemons})
    conflicts, has_more = ([], False) if verdict == "safe" else memory.conflicts()
    devices = [device for node in nodes for device in node.devices]
    power = _power(offers, rack_watts)
    found += [*of_memory.of_meetings(verdict, devices, conflicts, lacking), *power_problems(matching, power)]
    lost = _lost(matching)
    always_lost = any(one.least_copies or one.is_for_each_node for one in lost)
    made = Plan(
        nodes=nodes,
        consumers=[_consumer(matching, index, placed.get(index, 0)) for index in range(len(consumers))],
        stock=_stock(matching, placed),
        always_fits="no" if always_lost or not quotas.admits_always else beside.always,
        all_fits="no" if lost or not quotas.admits_all else beside.everything,
        vram=verdict,
        conflicts=conflicts,
        has_more_conflicts=has_more,
        power=power,
        problems=[_short(problem) for problem in sorted(found, key=lambda problem: _ORDER.index(problem.kind))],
        advice=[],
        notes=list(
            dict.fromkeys([*_notes(matching), *(races(matching, lacking) if always.packing.answer == "yes" else ())])
        ),
    )
    found = [*conditions(matching), *beside.conditions, *problems.one_by_one(sure), *_unsearched(problems, choice)]
    return conditional(made, [_short(problem) for problem in found])


def _lost(matching: Matching) -> list[Consumer]:
    """Give those whose pods no node takes or has room for, whatever else runs."""
    able = {index for unit in matching.units for index in unit}
    crowded = {index for those in matching.crowded.values() for index in those} | set(matching.unsatisfied)
    return [
        one
        for index, one in enumerate(matching.consumers)
        if (one.pods and not one.is_for_each_node and index not in able)
        or (one.is_for_each_node and (not matching.takers[index] or index in crowded))
    ]


def _known(packed: Packed, *, is_sure: bool) -> Packed:
    """Return an answer as undecided where a lack of room may be that of one choice among several."""
    if is_sure or packed.packing.answer != "no":
        return packed
    return replace(packed, packing=replace(packed.packing, answer="undecided"))


def _unsearched(problems: Problems, choice: Chosen) -> Iterator[Problem]:
    moves = any(one.pods and (updating(one) or not one.least_copies) for one in choice.consumers)
    if (choice.is_open and moves) or not problems.is_searched:
        yield unchecked(
            Condition("those updates and jobs that were not looked at find a place beside what always runs")
        )


def _short(problem: Problem) -> Problem:
    """Cut what names without end would make of a sentence."""
    what = _cut(problem.what)
    details, room = problem.details, _LONGEST - len(what) - len(": ")
    if len("; ".join(details)) > room:
        details = (_cut("; ".join(details), room),) if room > _LEAST else ()
    return replace(problem, what=what, way_out=_cut(problem.way_out), details=details)


def _cut(text: str, most: int = _LONGEST) -> str:
    return text if len(text) <= most else f"{text[: most - 4]} ..."


def _nodes(matching: Matching, memory: DeviceMemory, sitting: Sequence[SeatedNode]) -> Iterator[PlannedNode]:
    for node in sitting:
        offer = matching.offers[node.offer]
        yield PlannedNode(
            offer=offer,
            first=node.first,
            count=node.count,
            devices=memory.planned(node.kind, offer, node.seats),
            watts=None if None in offer.gpu_watts else sum(watts or 0 for watts in offer.gpu_watts),
        )


def _wanted(matching: Matching, index: int) -> int:
    """Give how many pods there are when all that may run runs."""
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


@dataclass
class _Sums:
    total: int = 0
    always: int = 0
    wanted: int = 0
    placed: int = 0


def _stock(matching: Matching, placed: Mapping[int, int]) -> dict[str, Stock]:
    sums = {name: _Sums() for name in matching.resources}
    for offer in matching.offers:
        for name, amount in offer.allocatable.items():
            sums[name].total += amount * offer.count
    for index, consumer in enumerate(matching.consumers):
        wanted, has_place = _wanted(matching, index), placed.get(index, 0)
        least = wanted if consumer.is_for_each_node else consumer.least_pods
        for name, amount in consumer.asks.items():
            sums[name].always += amount * least
            sums[name].wanted += amount * wanted
            sums[name].placed += amount * has_place
    return {name: Stock(one.total, one.always, one.wanted, one.placed) for name, one in sums.items()}


def _power(offers: Sequence[NodeOffer], rack_watts: Mapping[str, int]) -> Power:
    racks: dict[str, int] = {}
    known = unknown = 0
    for offer in offers:
        watts = sum(one or 0 for one in offer.gpu_watts) * offer.count
        known += watts
        unknown += sum(one is None for one in offer.gpu_watts) * offer.count
        if offer.rack:
            racks[offer.rack] = racks.get(offer.rack, 0) + watts
    return Power(watts=known, unknown=unknown, racks=racks, rack_watts=dict(rack_watts))


def _notes(matching: Matching) -> Iterator[str]:
    for offer in matching.offers:
        yield from (f"{offer.name}: {note}" for note in offer.notes if not isinstance(note, Condition))
    for consumer in matching.consumers:
        yield from (f"{consumer.title}: {note}" for note in consumer.notes if not isinstance(note, Condition))
