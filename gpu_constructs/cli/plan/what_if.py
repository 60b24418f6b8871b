"""The option ``--what-if`` of ``plan``: a capacity plan for other numbers of slots, pods or nodes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.catalog.sharing import GPU, Sharing
from gpu_constructs.cli.exits import CommandError
from gpu_constructs.errors import GpuConstructsError, did_you_mean
from gpu_constructs.facts.provided import Provided, is_among
from gpu_constructs.facts.readable import mapping, name_of, namespace_of
from gpu_constructs.records import dataclass, replace

FORMS = "replicas=NUMBER, replicas=RESOURCE:NUMBER, KIND/NAMESPACE/NAME.replicas=NUMBER, add-node=NODE, drain=NODE"
_FORM = re.compile(
    r"(?P<key>replicas)=(?:(?P<resource>[^:=]+/[^:=]+):)?(?P<number>[1-9][0-9]{0,5})"
    r"|(?P<object>[^/=]+/[^/=]+/[^/=]+)\.replicas=(?P<copies>[0-9]{1,6})"
    r"|(?P<change>add-node|drain)=(?P<node>.+)"
)
# The field with the number of copies, by kind.
_COPIES = {
    "CloneSet": "replicas",
    "Deployment": "replicas",
    "Job": "parallelism",
    "LeaderWorkerSet": "replicas",
    "ReplicaSet": "replicas",
    "ReplicationController": "replicas",
    "StatefulSet": "replicas",
}


@dataclass(frozen=True)
class Situation:
    """The input of a capacity plan: the objects and the nodes.

    Attributes:
        manifests: Kubernetes objects as plain data.
        provided: Effects of the objects on the cluster, such as the resources that a device plugin advertises.
        inventory: GPU nodes.
    """

    manifests: Sequence[Mapping[str, Any]]
    provided: Sequence[Provided]
    inventory: GpuInventory


def form(text: str) -> str:
    """Return the text of an option ``--what-if`` if it has one of the forms in ``FORMS``, such as ``replicas=4``.

    Raises:
        ArgumentTypeError: The text has none of these forms.
    """
    if not _FORM.fullmatch(text):
        raise argparse.ArgumentTypeError(f"must be one of {FORMS}, got {text!r}")
    return text


def changed(situation: Situation, change: str) -> Situation:
    """Return the input of a capacity plan after one change of ``--what-if``.

    Args:
        situation: Input of the plan: objects and nodes.
        change: Text of an option ``--what-if``, such as ``drain=gpu-2``.

    Raises:
        CommandError: The change is not possible. For example, it names a node, an object or a resource that does not
            exist.
    """
    found = _FORM.fullmatch(change)
    given = found.groupdict() if found else {}
    try:
        if given["node"]:
            return replace(situation, inventory=_nodes(situation.inventory, given["change"], given["node"]))
        if given["object"]:
            return replace(situation, manifests=_copies(situation.manifests, given["object"], int(given["copies"])))
        return _shared(situation, given["resource"], int(given["number"]))
    except GpuConstructsError as error:
        raise CommandError(f"--what-if {change}: {error.problem}") from None


def _nodes(inventory: GpuInventory, change: str, name: str) -> GpuInventory:
    """Return an inventory with one node more or one node fewer.

    Args:
        inventory: GPU nodes.
        change: ``add-node`` to add a node, or ``drain`` to remove one.
        name: Name of the node, or of the pool of nodes that grows or shrinks by one node.

    Raises:
        GpuConstructsError: The inventory does not contain the name, or would have no GPU node left.
    """
    if name not in (known := [node.name for node in inventory.nodes]):
        raise GpuConstructsError(
            f"{change} must name a node or a pool of the inventory, got {name!r}{did_you_mean(name, known)}. "
            f"Use one of {', '.join(known)}"
        )
    step = 1 if change == "add-node" else -1
    counts = {node.name: node.count + step * (node.name == name) for node in inventory.nodes}
    left = [replace(node, count=counts[node.name]) for node in inventory.nodes if counts[node.name]]
    racks = {node.rack for node in left}
    watts = {rack: most for rack, most in inventory.rack_watts.items() if rack in racks}
    if not left:
        raise GpuConstructsError(f"drain must leave a GPU node, and {name!r} is the only one. Leave the drain out")
    return replace(inventory, nodes=left, rack_watts=watts)


def _copies(manifests: Sequence[Mapping[str, Any]], named: str, number: int) -> list[Mapping[str, Any]]:
    """Return manifests in which one object has another number of pods. Omit the autoscalers of this object.

    Args:
        manifests: Kubernetes objects as plain data.
        named: Object to change, as ``Kind/namespace/name``.
        number: Number of pods.

    Raises:
        GpuConstructsError: The manifests do not contain the object, or its kind has no field for the number of pods.
    """
    kind, namespace, name = named.split("/")
    if kind not in _COPIES:
        raise GpuConstructsError(
            f"{kind} must be a kind that states its number of pods, such as {', '.join(_COPIES)}. Name another object"
        )
    titles = {f"{one['kind']}/{namespace_of(one)}/{name_of(one)}": one for one in manifests}
    if named not in titles:
        near = did_you_mean(named, titles)
        raise GpuConstructsError(f"{named} must be an object in the files{near}. Render Helm charts first")
    spec = {**mapping(titles[named].get("spec")), _COPIES[kind]: number}

    def scales(one: Mapping[str, Any]) -> bool:
        target = mapping(mapping(one.get("spec")).get("scaleTargetRef"))
        same = (target.get("name"), str(target.get("kind") or "Deployment"), namespace_of(one)) == (
            name,
            kind,
            namespace,
        )
        return bool(target) and same

    kept = [one for one in manifests if not scales(one)]
    return [{**one, "spec": spec} if one is titles[named] else one for one in kept]


def _shared(situation: Situation, resource: str | None, number: int) -> Situation:
    """Return the input of a plan in which the device plugin advertises another number of slots for each device.

    Args:
        situation: Input of the plan: objects and nodes.
        resource: Resource of the slots, such as ``nvidia.com/gpu.shared``. None: the shared resource if there is one,
            otherwise ``nvidia.com/gpu``.
        number: Number of slots for each device.

    Raises:
        GpuConstructsError: The nodes do not have the resource, or ``resource`` is None and there are several shared
            resources.
    """
    offers = [offer for one in situation.provided for offer in one.gpu_offers]
    used = [one.sharing for one in offers] + [one.sharing for one in situation.inventory.nodes if one.sharing]
    shared = sorted({name for one in used for name in one.resources})
    if resource is None and len(shared) > 1:
        raise GpuConstructsError(
            f"replicas must name a resource, because pods share several resources: {', '.join(shared)}. "
            f"Write replicas={shared[0]}:{number}"
        )
    named = resource or (shared[0] if shared else GPU)
    known = [GPU, *shared, *(name for one in situation.provided for name in one.gpu_resources)]
    if not is_among(named, known):
        raise GpuConstructsError(
            f"replicas must name a resource of the nodes, got {named!r}. Use one of {', '.join(dict.fromkeys(known))}"
        )

    def is_meant(one: Sharing) -> bool:
        # If one configuration shares the resource, the exclusive GPUs of another configuration stay exclusive.
        return named in one.resources or named not in shared

    def node(one: GpuNode) -> GpuNode:
        stated = one.sharing if one.sharing is not None or offers else Sharing.none()
        return replace(one, sharing=_with(stated, named, number)) if stated is not None and is_meant(stated) else one

    def effect(one: Provided) -> Provided:
        made = [
            replace(o, sharing=_with(o.sharing, named, number)) if is_meant(o.sharing) else o for o in one.gpu_offers
        ]
        resources = {
            name: _with(sharing, named, number) if name.startswith(named) and is_meant(sharing) else sharing
            for name, sharing in one.gpu_resources.items()
        }
        return replace(one, gpu_offers=made, gpu_resources=resources if made else one.gpu_resources)

    nodes = [node(one) for one in situation.inventory.nodes]
    inventory = replace(situation.inventory, nodes=nodes)
    return replace(situation, inventory=inventory, provided=[effect(one) for one in situation.provided])


def _with(sharing: Sharing, resource: str, number: int) -> Sharing:
    if sharing.vram_unit is not None:
        raise GpuConstructsError(
            f"replicas must not change slots that stand for {sharing.vram_unit} of memory. Change the inventory"
        )
    # One slot for each device is an exclusive device.
    resources = {name: count for name, count in {**sharing.resources, resource: number}.items() if count > 1}
    if not resources:
        return Sharing.none()
    strategy = "time-slicing" if sharing.strategy == "none" else sharing.strategy
    return replace(sharing, strategy=strategy, resources=resources)
