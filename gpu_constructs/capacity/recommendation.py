"""Which way of sharing suits the nodes of a cluster and what is to run on them; where a plan lacks room, as advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.demand.consumers import consumers
from gpu_constructs.capacity.eligibility import refusal
from gpu_constructs.capacity.gathered import grouped
from gpu_constructs.capacity.placement_keys import Offered, labels_read, offer_key, placement_key
from gpu_constructs.capacity.plan import Plan
from gpu_constructs.capacity.planned import NodeOffer
from gpu_constructs.capacity.problems import MOST_REPLICAS
from gpu_constructs.capacity.sharing_decision import Decision
from gpu_constructs.capacity.sharing_decision import SharingRecommendation as SharingRecommendation
from gpu_constructs.capacity.sharing_demand import Demand, Hardware, Settings, devices_for
from gpu_constructs.capacity.supply import node_offers
from gpu_constructs.capacity.wording import some
from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.catalog.platforms import Kubernetes, Platform, Talos
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.errors import GpuConstructsError, short_errors
from gpu_constructs.facts.app import Facts
from gpu_constructs.kube import fields

_USUAL_UNIT = "1Gi"
_MOST = 3
_MOST_NAMED = 3
_MOST_REASONS = 3
_MOST_PAIRS = 100_000
"""Consumers times nodes that are looked at: of a whole fleet nothing is advised."""


@short_errors
def recommend_sharing(
    inventory: GpuInventory,
    workloads: Sequence[Consumer | Mapping[str, Any]],
    *,
    isolation: bool = False,
    trusted_cuda_services: bool = False,
    platform: Platform | None = None,
) -> list[SharingRecommendation]:
    """Recommend how to share the GPUs of each node, with the numbers that lead there.

    The safer way wins: a GPU of its own for each pod where there are enough, MIG where pods must be kept apart,
    slots that count memory where the scheduler can add it up, which takes one GPU in each node and a budget for each
    workload (``GpuRequest(vram=...)``), turns on a GPU otherwise. Slots are as many as what always runs takes, the
    least with which work starts, and the new pod of an update; what else there is may queue. Pods that run together,
    as the ranks of a training do, share no board. Pods are taken to spread evenly over the nodes that take them; what
    a node does besides is not known here.

    Args:
        inventory: The nodes with GPUs. Boards that it divides by MIG stay as they are; how else it says they are shared
            now does not count, but for what a request of several slots means.
        workloads: Manifests as plain data, of any kind that makes pods, or the consumers a capacity plan made of
            them. Those that ask for no GPU do not count.
        isolation: The workloads are of users who do not trust each other, or have a latency to keep: nothing in a
            manifest says so. They then share no board but by MIG.
        trusted_cuda_services: The workloads are small CUDA services of one owner who can live with a fault of one of
            them ending all: nothing in a manifest says so. MPS is recommended for nothing else. It holds each to an
            equal share of the memory.
        platform: What the nodes run. None: not known; MPS is untested on Talos and not recommended there.

    Returns:
        One for each node and pool, in the order of the inventory.

    Raises:
        GpuConstructsError: No inventory, no workload, something that is neither manifest nor consumer, nothing that
            asks for GPUs, isolation for services that trust each other.

    Source:
        NVIDIA/k8s-device-plugin@v0.20.0:README.md, cmd/mps-control-daemon/mps/device.go
    """
    if not isinstance(inventory, GpuInventory):
        raise GpuConstructsError(
            f"inventory must be a GpuInventory; got {inventory!r}; pass GpuInventory(nodes=[GpuNode(name=...)])"
        )
    fields.of_type("isolation", isolation, bool)
    fields.of_type("trusted_cuda_services", trusted_cuda_services, bool)
    if platform is not None and not isinstance(platform, Talos | Kubernetes):
        raise GpuConstructsError(f"platform must be Talos(...) or Kubernetes(...); got {platform!r}")
    if isolation and trusted_cuda_services:
        raise GpuConstructsError(
            "isolation and trusted_cuda_services exclude each other: MPS keeps no fault apart; got both; leave one out"
        )
    asking, runtime_classes = _asking(workloads)
    settings = Settings(isolation, trusted_cuda_services, platform)
    return _recommend(inventory, asking, runtime_classes, settings)


def _asking(workloads: object) -> tuple[list[Consumer], dict[str, Mapping[str, Any]]]:
    """Return the consumers that ask for GPUs, and the scheduling of the RuntimeClasses by name."""
    if not isinstance(workloads, list | tuple):
        raise GpuConstructsError(
            f"workloads must be a list of manifests or of consumers of a capacity plan; got {type(workloads).__name__}"
        )
    if not workloads:
        raise GpuConstructsError(
            "workloads must hold at least one manifest; got none; pass what is to run, as "
            "yaml.safe_load_all(...) or Testing.synth(chart) gives it"
        )
    for index, workload in enumerate(workloads):
        _check_workload(index, workload)
    facts = Facts([one for one in workloads if not isinstance(one, Consumer)])
    given = [one for one in workloads if isinstance(one, Consumer)]
    asking = [one for one in (*given, *consumers(facts)) if one.asks and one.makes_pods]
    if not asking:
        raise GpuConstructsError(
            f"workloads must hold one that asks for GPUs; got {len(workloads)} of which none does; ask for "
            "nvidia.com/gpu in the limits of a container"
        )
    classes = {
        str(manifest["metadata"].get("name")): manifest.get("scheduling") or {}
        for _, manifest in facts.of_kind(("node.k8s.io", "RuntimeClass"))
    }
    return asking, classes


def _check_workload(index: int, workload: object) -> None:
    is_manifest = isinstance(workload, Mapping) and all(
        isinstance(workload.get(key), str) for key in ("apiVersion", "kind")
    )
    if not is_manifest and not isinstance(workload, Consumer):
        shown = f"a mapping with {sorted(map(str, workload))}" if isinstance(workload, Mapping) else repr(workload)
        raise GpuConstructsError(
            f"workloads[{index}] must be a manifest, a mapping with apiVersion and kind, or a consumer of a "
            f"capacity plan; got {shown}; pass what Testing.synth(chart) gives for a chart"
        )


def _recommend(
    inventory: GpuInventory,
    asking: Sequence[Consumer],
    runtime_classes: Mapping[str, Mapping[str, Any]],
    settings: Settings,
) -> list[SharingRecommendation]:
    # Nodes that are alike get one answer: thousands cost no more than the kinds there are of them.
    taken_by = zip(inventory.nodes, _taken(inventory, asking, runtime_classes), strict=True)
    alike = grouped(((Hardware.of(node), takes), node) for node, takes in taken_by)
    gangs, boards = _gangs(asking), Counter[int]()
    refused = []
    for (hardware, takes), nodes in alike.items():
        refused.append(_refusals(hardware, asking, takes))
        count, taken = sum(node.count for node in nodes), takes - refused[-1].keys()
        boards.update({i: count * hardware.places(asking[i]) for i in taken})
        for gang in {id(gangs[i]): gangs[i] for i in taken if i in gangs}.values():
            gang.boards += count * hardware.places(gang.parts[0])
    found: dict[str, SharingRecommendation] = {}
    for ((hardware, takes), nodes), whys in zip(alike.items(), refused, strict=True):
        whys.update({i: why for i in takes & gangs.keys() if (why := gangs[i].refusal(hardware))})
        demands = [_demand(hardware, asking[i], boards[i], gangs.get(i)) for i in sorted(takes - whys.keys())]
        made = Decision(hardware, demands, settings, boards_in_all=inventory.gpus).made()
        left_out = [f"{asking[i].title} is left out here: {why}" for i, why in whys.items()]
        reasons = (*made.reasons, *left_out)
        found.update({node.name: replace(made, node=node.name, reasons=reasons) for node in nodes})
    return [found[node.name] for node in inventory.nodes]


def _refusals(hardware: Hardware, asking: Sequence[Consumer], takes: Iterable[int]) -> dict[int, str]:
    return {i: why for i in sorted(takes) if (why := hardware.refusal(asking[i])) is not None}


def _demand(hardware: Hardware, consumer: Consumer, boards: int, gang: _Gang | None) -> Demand:
    return Demand(
        consumer=consumer,
        boards=hardware.boards_for(consumer),
        total_boards=boards,
        node_boards=hardware.places(consumer),
        ranks=gang.ranks if gang else 1,
    )


@dataclass
class _Gang:
    """Parts of an object whose pods run together, each on boards of its own: NCCL has no two ranks on one."""

    parts: list[Consumer]
    boards: int = 0

    @property
    def ranks(self) -> int:
        return sum(part.pods_each for part in self.parts)

    def refusal(self, hardware: Hardware) -> str | None:
        """Return why the pods never start on the nodes that take them; None if they may."""
        starting = [(part, part.pods_each if part.starts_with is None else part.starts_with) for part in self.parts]
        wanted = sum(pods * hardware.boards_for(part) for part, pods in starting)
        if self.ranks == 1 or wanted <= self.boards:
            return None
        return (
            f"its {sum(pods for _, pods in starting)} pods run together and want a GPU each, {wanted} in all, and the "
            f"nodes that take them have {self.boards}"
        )


def _gangs(asking: Sequence[Consumer]) -> dict[int, _Gang]:
    """Return the gang of each consumer that wants whole boards, by its index."""
    whole = ((index, one) for index, one in enumerate(asking) if one.is_gang and not devices_for(one))
    together = grouped(((one.subject, one.namespace, one.name), index) for index, one in whole)
    gangs = ((those, _Gang([asking[index] for index in those])) for those in together.values())
    return {index: gang for those, gang in gangs for index in those}


def _taken(
    inventory: GpuInventory, asking: Sequence[Consumer], runtime_classes: Mapping[str, Mapping[str, Any]]
) -> list[frozenset[int]]:
    """Return for each node the consumers whose pods it takes by labels and taints."""
    # What a node offers of which resource depends on the answer that is looked for.
    demands = (placement_key(replace(one, asks={}), runtime_classes) for one in asking)
    alike = grouped((one, index) for index, one in enumerate(demands))
    read = labels_read(alike)
    # The label of the board has a suffix where it is shared, and pods may look for either.
    divided = [
        replace(node, mig_strategy=node.mig_strategy or "mixed")
        if any(node.layouts)
        else replace(node, mig_layout=None, mig_strategy=None)
        for node in inventory.nodes
    ]
    whole, shared = (
        node_offers(replace(inventory, nodes=[replace(node, sharing=sharing) for node in divided]))
        for sharing in (Sharing.none(), Sharing.time_slicing(replicas=2))
    )
    known: dict[Offered, frozenset[int]] = {}

    def taken_by(offer: NodeOffer) -> frozenset[int]:
        key = offer_key(offer, read, ())
        if key not in known:
            takers = (those for demands, those in alike.items() if refusal(demands, key) is None)
            known[key] = frozenset(index for those in takers for index in those)
        return known[key]

    return [taken_by(one) | taken_by(other) for one, other in zip(whole, shared, strict=True)]


# What a plan is advised


def advice(plan: Plan, inventory: GpuInventory, manifests: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a few sentences on how to share the nodes where something does not fit.

    Args:
        plan: The plan.
        inventory: The nodes it is made for.
        manifests: RuntimeClasses, which decide where pods go.
    """
    tight, short = _nodes_short_of_memory(plan), _nodes_short_of_slots(plan)
    asking = [one.consumer for one in plan.consumers if one.consumer.asks and (one.placed or one.waiting)]
    offers = {node.offer.name: node.offer for node in plan.nodes}
    if not (tight or short) or not _is_looked_at(asking, len(offers)):
        return []
    # A pool of which pods select every node by name is not there by its own name.
    cases = [
        _Case(plan, inventory, node, offers[node.name], found, node.name in tight, node.name in short)
        for node, found in zip(inventory.nodes, recommend_sharing(inventory, [*asking, *manifests]), strict=True)
        if node.name in offers
    ]
    changes = ((one, one.what_to_do(asking)) for one in cases)
    said = grouped((f"{what}: {'; '.join(_reasons(one.found))}", one.node.name) for one, what in changes if what)
    return [f"{some(names, _MOST_NAMED)}: {what}" for what, names in list(said.items())[:_MOST]]


def _is_looked_at(asking: Sequence[Consumer], nodes: int) -> bool:
    """Return whether some ask, all for devices of the plugin; the recommendation does not know DRA."""
    names = [name for one in asking for name in one.asks]
    return bool(asking) and len(asking) * nodes <= _MOST_PAIRS and all("/" in name for name in names)


def _reasons(found: SharingRecommendation) -> Sequence[str]:
    """Return the reasons to print; the first one, the demand, matters for exclusive GPUs only."""
    first = 0 if found.mode == "exclusive" else 1
    return found.reasons[first : first + _MOST_REASONS]


def _nodes_short_of_memory(plan: Plan) -> set[str]:
    return {
        node.offer.name
        for node in plan.nodes
        for one in node.devices
        if one.device.vram_mib is not None and one.worst_mib > one.device.vram_mib
    }


def _nodes_short_of_slots(plan: Plan) -> set[str]:
    subjects = {one.subject for one in plan.problems if one.kind in ("slots", "rollout")}
    return {name for one in plan.consumers if one.waiting or one.consumer.subject in subjects for name in one.nodes}


class _Case(NamedTuple):
    """A node, what the plan lacks there, and how it is best shared."""

    plan: Plan
    inventory: GpuInventory
    node: GpuNode
    offer: NodeOffer
    found: SharingRecommendation
    is_tight: bool
    is_short: bool

    def what_to_do(self, asking: Sequence[Consumer]) -> str | None:
        """Return what to change; None if it is so already, or would not help."""
        is_divided = any(device.profile for device in self.offer.devices)
        slots = max((device.slots for device in self.offer.devices), default=1)
        if self.found.mode == "mig":
            layout = self.found.mig_layout
            return f"divide it by MIG with mig_layout={layout}" if self.is_tight and not is_divided else None
        if is_divided or not self.found.workloads:
            return None
        if self.found.mode == "exclusive":
            helps = self.is_tight and slots > 1 and self._has_gpus_enough()
            return "give each pod a GPU of its own with Sharing.none()" if helps else None
        return self._by_units(slots) if self.found.mode == "vram-units" else self._by_turns(slots, asking)

    def _by_units(self, slots: int) -> str | None:
        sharing, now = self.found.sharing, self.node.sharing
        counts_memory = slots == sharing.replicas or (now is not None and now.vram_unit is not None)
        if counts_memory or not (self.is_tight or (self.is_short and slots < sharing.replicas)):
            return None
        unit = "" if sharing.vram_unit == _USUAL_UNIT else f", unit={sharing.vram_unit!r}"
        return f"share it by Sharing.vram_units(vram='{self.node.usable_vram_mib}Mi'{unit}{self._renamed})"

    def _by_turns(self, slots: int, asking: Sequence[Consumer]) -> str | None:
        replicas = self.found.sharing.replicas
        is_known = all(one.vram_mib is not None for one in asking if one.title in self.found.workloads)
        is_safer = self.is_tight and is_known and replicas < slots
        helps = is_safer or (self.is_short and slots < replicas <= MOST_REPLICAS)
        if self.found.mode != "time-slicing" or not helps:
            return None
        return f"share it by Sharing.time_slicing(replicas={replicas}{self._renamed})"

    @property
    def _renamed(self) -> str:
        return ", rename_by_default=True" if self.found.sharing.rename_by_default else ""

    def _has_gpus_enough(self) -> bool:
        """Return whether what always runs would have a place without sharing, by count."""
        those = [one for one in self.plan.consumers if self.node.name in one.nodes]
        reached = {name for one in those for name in one.nodes}
        wanted = sum(
            (one.placed + one.waiting if one.consumer.is_for_each_node else one.consumer.least_pods)
            * max(one.consumer.asks.values())
            for one in those
        )
        return wanted <= sum(each.gpus * each.count for each in self.inventory.nodes if each.name in reached)
