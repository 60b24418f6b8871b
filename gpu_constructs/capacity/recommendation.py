"""Recommendations for how nodes share their GPUs, and advice for nodes of a capacity plan that lack slots or memory.

A *consumer* is a workload as the plan sees it: equal pods of one object that request GPUs. A *gang* is a set of pods
that must all run at the same time, such as the ranks of a training.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
from gpu_constructs.records import dataclass, replace

_USUAL_UNIT = "1Gi"
_MOST = 3
_MOST_NAMED = 3
_MOST_REASONS = 3
_MOST_PAIRS = 100_000
"""Largest product of workloads and nodes for which a capacity plan contains advice."""


@short_errors
def recommend_sharing(
    inventory: GpuInventory,
    workloads: Sequence[Consumer | Mapping[str, Any]],
    *,
    isolation: bool = False,
    trusted_cuda_services: bool = False,
    platform: Platform | None = None,
) -> list[SharingRecommendation]:
    """Return a recommendation for how each node shares its GPUs, with the numbers that lead to the recommendation.

    The function prefers the safer mode. It tries these modes in order:

    1. Exclusive GPUs, if there are enough for the long-running pods and for the pods without which a Job cannot start.
    2. MIG, if pods need isolation or request MIG devices, or if a node mixes large and small pods.
    3. MPS, if ``trusted_cuda_services`` is True and the board supports MPS.
    4. Slots that each stand for an amount of memory (``Sharing.vram_units``), if the node has one GPU and each workload
       states ``GpuRequest(vram=...)``.
    5. Time-slicing.

    Long-running pods, for example of a Deployment, run until you delete them. If pods share GPUs, the slots are enough
    for three groups: all long-running pods, the pods without which a Job cannot start (usually one), and the new pods
    of one update at a time. Other pods of Jobs may wait. Pods that run together, such as the workers of a training,
    never share a board. The function assumes that pods spread evenly over the nodes that accept them, and that these
    nodes run nothing else.

    Args:
        inventory: GPU nodes. Boards with a MIG layout keep this layout. The function ignores ``GpuNode(sharing=...)``,
            with one exception. On a node with ``Sharing.vram_units``, a request for several slots means memory of one
            GPU, not several GPUs.
        workloads: Workloads of the nodes, each as a manifest of any kind that creates pods, or as the
            attribute ``consumer`` of an entry of ``Plan.consumers``. The function ignores workloads without GPUs.
        isolation: Whether pods must not affect each other: their users do not trust each other, or their latency
            matters. If True, pods share a board by MIG only. Default: False.
        trusted_cuda_services: Whether the workloads are small CUDA services of one owner, and a fault in one of them
            may end every service. Only if True does the function recommend MPS, which limits each service to an equal
            share of the memory. Default: False.
        platform: Platform of the nodes. On Talos, the function does not recommend MPS, because it is untested there.
            Default: None, for an unknown platform.

    Returns:
        One recommendation for each node and pool, in the order of the inventory.

    Raises:
        GpuConstructsError: If ``inventory`` is not a GpuInventory, or ``platform`` is not a platform. If ``workloads``
            is empty, has an entry that is neither a manifest nor a consumer, or requests no GPUs. If ``isolation`` and
            ``trusted_cuda_services`` are both True.

    Source:
        NVIDIA/k8s-device-plugin@v0.20.0:README.md, cmd/mps-control-daemon/mps/device.go
    """
    if not isinstance(inventory, GpuInventory):
        raise GpuConstructsError(
            f"inventory must be a GpuInventory, got {inventory!r}. Pass GpuInventory(nodes=[GpuNode(name=...)])"
        )
    fields.of_type("isolation", isolation, bool)
    fields.of_type("trusted_cuda_services", trusted_cuda_services, bool)
    if platform is not None and not isinstance(platform, Talos | Kubernetes):
        raise GpuConstructsError(f"platform must be Talos(...) or Kubernetes(...), got {platform!r}")
    if isolation and trusted_cuda_services:
        raise GpuConstructsError(
            "isolation must be False with trusted_cuda_services, because MPS does not isolate faults, got True. "
            "Leave out one of the two"
        )
    asking, runtime_classes = _asking(workloads)
    settings = Settings(isolation, trusted_cuda_services, platform)
    return _recommend(inventory, asking, runtime_classes, settings)


def _asking(workloads: object) -> tuple[list[Consumer], dict[str, Mapping[str, Any]]]:
    """Return the workloads that request GPUs, and a dict from each RuntimeClass name to its field ``scheduling``."""
    if not isinstance(workloads, list | tuple):
        raise GpuConstructsError(
            f"workloads must be a list, got {type(workloads).__name__}. Pass a list of manifests, for example "
            "Testing.synth(chart)"
        )
    if not workloads:
        raise GpuConstructsError(
            "workloads must contain at least one manifest, got none. Pass manifests, for example those of "
            "Testing.synth(chart)"
        )
    for index, workload in enumerate(workloads):
        _check_workload(index, workload)
    facts = Facts([one for one in workloads if not isinstance(one, Consumer)])
    given = [one for one in workloads if isinstance(one, Consumer)]
    asking = [one for one in (*given, *consumers(facts)) if one.asks and one.makes_pods]
    if not asking:
        raise GpuConstructsError(
            f"workloads must contain a workload that requests GPUs, got {len(workloads)} without a GPU request. "
            "Set a GPU limit in a container"
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
            f"workloads[{index}] must be a manifest (a mapping with apiVersion and kind) or a consumer of a capacity "
            f"plan, got {shown}. For a chart, pass the manifests that Testing.synth(chart) returns"
        )


def _recommend(
    inventory: GpuInventory,
    asking: Sequence[Consumer],
    runtime_classes: Mapping[str, Mapping[str, Any]],
    settings: Settings,
) -> list[SharingRecommendation]:
    # Compute one answer for all equal nodes, so that a large cluster takes no longer than a small one.
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
        left_out = [f"the recommendation ignores {asking[i].title}: {why}" for i, why in whys.items()]
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
    """Workloads of one object whose pods must run at the same time, each pod on its own boards.

    NCCL, the communication library of NVIDIA, allows only one process of a training on each board.

    Attributes:
        parts: Workloads of the object, one for each of its pod specs.
        boards: Number of boards of all nodes that accept the pods.
    """

    parts: list[Consumer]
    boards: int = 0

    @property
    def ranks(self) -> int:
        return sum(part.pods_each for part in self.parts)

    def refusal(self, hardware: Hardware) -> str | None:
        """Return the reason why the pods never start on the nodes that accept them. Return None if they can start."""
        starting = [(part, part.pods_each if part.starts_with is None else part.starts_with) for part in self.parts]
        wanted = sum(pods * hardware.boards_for(part) for part, pods in starting)
        if self.ranks == 1 or wanted <= self.boards:
            return None
        return (
            f"its {sum(pods for _, pods in starting)} pods run together and need a GPU each, {wanted} in all, but the "
            f"nodes that accept them have {self.boards}"
        )


def _gangs(asking: Sequence[Consumer]) -> dict[int, _Gang]:
    """Return a dict from the index in ``asking`` to the gang, for each workload whose pods must run together."""
    whole = ((index, one) for index, one in enumerate(asking) if one.is_gang and not devices_for(one))
    together = grouped(((one.subject, one.namespace, one.name), index) for index, one in whole)
    gangs = ((those, _Gang([asking[index] for index in those])) for those in together.values())
    return {index: gang for those, gang in gangs for index in those}


def _taken(
    inventory: GpuInventory, asking: Sequence[Consumer], runtime_classes: Mapping[str, Mapping[str, Any]]
) -> list[frozenset[int]]:
    """Return a set for each node of the inventory: indices in ``asking`` of the workloads whose pods the node accepts.

    The function checks labels and taints only, not the free slots.
    """
    # The resources that a node offers depend on the recommendation, so the check ignores them.
    demands = (placement_key(replace(one, asks={}), runtime_classes) for one in asking)
    alike = grouped((one, index) for index, one in enumerate(demands))
    read = labels_read(alike)
    # Sharing adds a suffix to the value of the product label. Pods may select the value with or without the suffix.
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


# Advice for a plan


def advice(plan: Plan, inventory: GpuInventory, manifests: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a few sentences that state how to share the GPUs of nodes that lack slots or GPU memory in a plan.

    Args:
        plan: Capacity plan.
        inventory: GPU nodes of the plan.
        manifests: Manifests of the app's RuntimeClasses, which can add node selectors and tolerations to pods.
    """
    tight, short = _nodes_short_of_memory(plan), _nodes_short_of_slots(plan)
    asking = [one.consumer for one in plan.consumers if one.consumer.asks and (one.placed or one.waiting)]
    offers = {node.offer.name: node.offer for node in plan.nodes}
    if not (tight or short) or not _is_looked_at(asking, len(offers)):
        return []
    # If pods select every node of a pool by name, the plan has no entry with the name of the pool.
    cases = [
        _Case(plan, inventory, node, offers[node.name], found, node.name in tight, node.name in short)
        for node, found in zip(inventory.nodes, recommend_sharing(inventory, [*asking, *manifests]), strict=True)
        if node.name in offers
    ]
    changes = ((one, one.what_to_do(asking)) for one in cases)
    nodes_by_change = grouped(
        (f"{what}: {'; '.join(_reasons(one.found))}", one.node.name) for one, what in changes if what
    )
    return [f"{some(names, _MOST_NAMED)}: {what}" for what, names in list(nodes_by_change.items())[:_MOST]]


def _is_looked_at(asking: Sequence[Consumer], nodes: int) -> bool:
    """Check whether to add advice on GPU sharing to a capacity plan. The workloads in ``asking`` request GPUs.

    The plan gets no advice if ``asking`` is empty, if the plan has too many nodes and workloads, or if a workload
    requests GPUs through DRA.
    """
    names = [name for one in asking for name in one.asks]
    return bool(asking) and len(asking) * nodes <= _MOST_PAIRS and all("/" in name for name in names)


def _reasons(found: SharingRecommendation) -> Sequence[str]:
    """Return a few reasons of a recommendation, for the advice in a capacity plan.

    The result omits the first reason, usually the number of pods and GPUs, unless the mode is ``exclusive``.
    """
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
    """A node with the recommendation for it, and what the node lacks in the plan.

    Attributes:
        plan: Capacity plan.
        inventory: GPU nodes of the plan.
        node: Node or pool of the inventory.
        offer: Node or pool with its devices, as in the plan.
        found: Recommendation for the node.
        is_tight: Whether the memory of a device of the node may run out.
        is_short: Whether pods that the node accepts lack slots.
    """

    plan: Plan
    inventory: GpuInventory
    node: GpuNode
    offer: NodeOffer
    found: SharingRecommendation
    is_tight: bool
    is_short: bool

    def what_to_do(self, asking: Sequence[Consumer]) -> str | None:
        """Return an instruction for the GPUs of the node as a clause, for example ``give each pod its own GPU …``.

        Return None if the node already shares its GPUs as recommended, or if the recommendation would not help.

        Args:
            asking: Workloads of the capacity plan whose pods request GPUs.
        """
        is_divided = any(device.profile for device in self.offer.devices)
        slots = max((device.slots for device in self.offer.devices), default=1)
        if self.found.mode == "mig":
            layout = self.found.mig_layout
            return f"divide it by MIG with mig_layout={layout}" if self.is_tight and not is_divided else None
        if is_divided or not self.found.workloads:
            return None
        if self.found.mode == "exclusive":
            helps = self.is_tight and slots > 1 and self._has_gpus_enough()
            return "give each pod its own GPU with Sharing.none()" if helps else None
        return self._by_units(slots) if self.found.mode == "vram-units" else self._by_turns(slots, asking)

    def _by_units(self, slots: int) -> str | None:
        sharing, now = self.found.sharing, self.node.sharing
        counts_memory = slots == sharing.replicas or (now is not None and now.vram_unit is not None)
        if counts_memory or not (self.is_tight or (self.is_short and slots < sharing.replicas)):
            return None
        unit = "" if sharing.vram_unit == _USUAL_UNIT else f", unit={sharing.vram_unit!r}"
        return f"share it with Sharing.vram_units(vram='{self.node.usable_vram_mib}Mi'{unit}{self._renamed})"

    def _by_turns(self, slots: int, asking: Sequence[Consumer]) -> str | None:
        replicas = self.found.sharing.replicas
        is_known = all(one.vram_mib is not None for one in asking if one.title in self.found.workloads)
        is_safer = self.is_tight and is_known and replicas < slots
        helps = is_safer or (self.is_short and slots < replicas <= MOST_REPLICAS)
        if self.found.mode != "time-slicing" or not helps:
            return None
        return f"share it with Sharing.time_slicing(replicas={replicas}{self._renamed})"

    @property
    def _renamed(self) -> str:
        return ", rename_by_default=True" if self.found.sharing.rename_by_default else ""

    def _has_gpus_enough(self) -> bool:
        """Check whether each long-running pod that this node accepts can have its own GPUs, here or on another node."""
        those = [one for one in self.plan.consumers if self.node.name in one.nodes]
        reached = {name for one in those for name in one.nodes}
        wanted = sum(
            (one.placed + one.waiting if one.consumer.is_for_each_node else one.consumer.least_pods)
            * max(one.consumer.asks.values())
            for one in those
        )
        return wanted <= sum(each.gpus * each.count for each in self.inventory.nodes if each.name in reached)
