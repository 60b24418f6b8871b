"""Which way of sharing suits the nodes of a cluster and what is to run on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpu_constructs import _fields
from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.demand import consumers
from gpu_constructs.capacity.eligibility import Demands, Offered, labels_read, offer_key, placement_key, refusal
from gpu_constructs.capacity.mig_choice import Layouts
from gpu_constructs.capacity.node_offer import NodeOffer
from gpu_constructs.capacity.sharing_decision import Mode, Settings, decide
from gpu_constructs.capacity.sharing_demand import Demand, Hardware, devices_for
from gpu_constructs.capacity.supply import node_offers
from gpu_constructs.errors import GpuConstructsError, short_errors
from gpu_constructs.inventory import GpuInventory, GpuNode
from gpu_constructs.platforms import Kubernetes, Platform, Talos
from gpu_constructs.rules.facts import Facts
from gpu_constructs.sharing import Sharing


@dataclass(frozen=True, kw_only=True)
class SharingRecommendation:
    """How the GPUs of a node, or of each node of a pool, are best shared.

    Attributes:
        node: Name of the node or the pool.
        mode: In a word; ``vram-units`` is time-slicing whose slots count memory.
        sharing: What to pass to the device plugin and to ``GpuProfile``.
        mig_layout: Under ``mig`` the profiles and how many of each, as ``GpuNode.mig_layout`` takes it: one mapping
            where all boards are divided alike, else one for each board, empty for a board that stays whole. None
            under the other modes.
        reasons: What led here, and what to watch, each a sentence without a full stop.
        workloads: Those that go on the node, as ``namespace/name``.
        pods_at_once: How many of their pods one node holds at a time, at most.
    """

    node: str
    mode: Mode
    sharing: Sharing
    mig_layout: Mapping[str, int] | Sequence[Mapping[str, int]] | None = None
    reasons: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    pods_at_once: int = 0


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
    _fields.of_type("isolation", isolation, bool)
    _fields.of_type("trusted_cuda_services", trusted_cuda_services, bool)
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
    """Give who asks for GPUs, and what the runtime classes among the manifests say of scheduling."""
    if not isinstance(workloads, list | tuple):
        raise GpuConstructsError(
            f"workloads must be a list of manifests or of consumers of a capacity plan; got {type(workloads).__name__}"
        )
    if not workloads:
        raise GpuConstructsError(
            "workloads must hold at least one manifest; got none; pass what is to run, as "
            "yaml.safe_load_all(...) or Testing.synth(chart) gives it"
        )
    manifests, asking = [], []
    for index, workload in enumerate(workloads):
        if isinstance(workload, Consumer):
            asking.append(workload)
        elif isinstance(workload, Mapping) and all(
            isinstance(workload.get(key), str) for key in ("apiVersion", "kind")
        ):
            manifests.append(workload)
        else:
            shown = f"a mapping with {sorted(map(str, workload))}" if isinstance(workload, Mapping) else repr(workload)
            raise GpuConstructsError(
                f"workloads[{index}] must be a manifest, a mapping with apiVersion and kind, or a consumer of a "
                f"capacity plan; got {shown}; pass what Testing.synth(chart) gives for a chart"
            )
    facts = Facts(manifests)
    asking.extend(consumers(facts))
    asking = [consumer for consumer in asking if consumer.asks and (consumer.pods or consumer.is_for_each_node)]
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


def _recommend(
    inventory: GpuInventory,
    asking: Sequence[Consumer],
    runtime_classes: Mapping[str, Mapping[str, Any]],
    settings: Settings,
) -> list[SharingRecommendation]:
    # Nodes that are alike get one answer: thousands cost no more than the kinds there are of them.
    alike: dict[tuple[Hardware, frozenset[int]], list[GpuNode]] = {}
    for node, takes in zip(inventory.nodes, _taken(inventory, asking, runtime_classes), strict=True):
        alike.setdefault((Hardware.of(node), takes), []).append(node)
    refused: dict[tuple[Hardware, frozenset[int]], dict[int, str]] = {}
    boards = Counter[int]()
    gangs = _gangs(asking)
    for key, nodes in alike.items():
        hardware, takes = key
        refused[key] = {i: why for i in sorted(takes) if (why := hardware.refusal(asking[i])) is not None}
        count = sum(node.count for node in nodes)
        taken = takes - refused[key].keys()
        boards.update({i: count * hardware.places(asking[i]) for i in taken})
        for gang in {id(gangs[i]): gangs[i] for i in taken if i in gangs}.values():
            gang.boards += count * hardware.places(gang.parts[0])
    found: dict[str, SharingRecommendation] = {}
    for key, nodes in alike.items():
        hardware, takes = key
        refused[key].update({i: why for i in takes if i in gangs and (why := gangs[i].refusal(hardware))})
        demands = [
            Demand(
                consumer=asking[i],
                boards=hardware.boards_for(asking[i]),
                total_boards=boards[i],
                node_boards=hardware.places(asking[i]),
                ranks=gangs[i].ranks if i in gangs else 1,
            )
            for i in sorted(takes - refused[key].keys())
        ]
        choice = decide(hardware, demands, settings, boards_in_all=inventory.gpus)
        left_out = (f"{asking[i].title} is left out here: {why}" for i, why in refused[key].items())
        made = SharingRecommendation(
            node="",
            mode=choice.mode,
            sharing=choice.sharing,
            mig_layout=_layout(choice.layouts),
            reasons=(*choice.reasons, *left_out),
            workloads=tuple(dict.fromkeys(demand.consumer.title for demand in demands)),
            pods_at_once=choice.pods_at_once,
        )
        found.update({node.name: replace(made, node=node.name) for node in nodes})
    return [found[node.name] for node in inventory.nodes]


@dataclass
class _Gang:
    """Parts of an object whose pods run together, each on boards of its own: NCCL has no two ranks on one."""

    parts: list[Consumer]
    boards: int = 0

    @property
    def ranks(self) -> int:
        return sum(part.pods_each for part in self.parts)

    def refusal(self, hardware: Hardware) -> str | None:
        """Say why they never start on the nodes that take them; None where they may."""
        starting = [(part, part.pods_each if part.starts_with is None else part.starts_with) for part in self.parts]
        wanted = sum(pods * hardware.boards_for(part) for part, pods in starting)
        if self.ranks == 1 or wanted <= self.boards:
            return None
        return (
            f"its {sum(pods for _, pods in starting)} pods run together and want a GPU each, {wanted} in all, and the "
            f"nodes that take them have {self.boards}"
        )


def _gangs(asking: Sequence[Consumer]) -> dict[int, _Gang]:
    """Give by index the gang of each that wants whole boards."""
    found: dict[tuple[int, str, str], _Gang] = {}
    of: dict[int, _Gang] = {}
    for index, one in enumerate(asking):
        if one.is_gang and not devices_for(one):
            of[index] = found.setdefault((one.subject, one.namespace, one.name), _Gang([]))
            of[index].parts.append(one)
    return of


def _layout(layouts: Layouts) -> Mapping[str, int] | Sequence[Mapping[str, int]] | None:
    if not layouts:
        return None
    return layouts[0] if all(one == layouts[0] for one in layouts) else layouts


def _taken(
    inventory: GpuInventory, asking: Sequence[Consumer], runtime_classes: Mapping[str, Mapping[str, Any]]
) -> list[frozenset[int]]:
    """Give for each node the consumers whose pods it takes by labels and taints."""
    # What a node offers of which resource depends on the answer that is looked for.
    bare = [replace(consumer, asks={}) for consumer in asking]
    alike: dict[Demands, list[int]] = {}
    for index, consumer in enumerate(bare):
        alike.setdefault(placement_key(consumer), []).append(index)
    read = labels_read(alike, runtime_classes)
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
            takers = (those for those in alike.values() if refusal(bare[those[0]], offer, runtime_classes) is None)
            known[key] = frozenset(index for those in takers for index in those)
        return known[key]

    return [taken_by(one) | taken_by(other) for one, other in zip(whole, shared, strict=True)]
