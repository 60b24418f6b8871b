"""Consumers and nodes for tests of the planner, short enough for a table; and every placement of a few pods."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.plan import Plan
from gpu_constructs.capacity.planned import Device, NodeOffer
from gpu_constructs.capacity.planner import plan_of

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.5gb"


def wants(name: str = "a", gpus: int = 1, zone: str | None = None, **given: Any) -> Consumer:
    """Return long-running pods; of Jobs with ``least_copies=0``."""
    usual: dict[str, Any] = {
        "subject": sum(ord(letter) << 8 * place for place, letter in enumerate(name[:4])),
        "kind": "Deployment",
        "namespace": "ml",
        "asks": {GPU: gpus},
        "pod_spec": {"nodeSelector": {"zone": zone}} if zone else {},
    }
    given.setdefault("least_copies", given.get("copies", 1))
    return Consumer(**{**usual, "name": name, **given})


def job(name: str = "j", gpus: int = 1, **given: Any) -> Consumer:
    """Return work that ends."""
    return wants(name, gpus, kind="Job", least_copies=0, **given)


def daemons(name: str = "d", gpus: int = 1, **given: Any) -> Consumer:
    """Return pods of which every node gets one."""
    return wants(name, gpus, kind="DaemonSet", is_for_each_node=True, **given)


def gpus(number: int = 1, slots: int = 1, vram: int | None = 16_000, **given: Any) -> list[Device]:
    return [Device(GPU, slots, vram, gpu, **given) for gpu in range(number)]


def node(name: str = "n", devices: Sequence[Device] | None = None, count: int = 1, **given: Any) -> NodeOffer:
    labels = {"kubernetes.io/hostname": name, **given.pop("labels", {})}
    return NodeOffer(name=name, count=count, devices=gpus() if devices is None else devices, labels=labels, **given)


def planned(consumers: Sequence[Consumer], nodes: Sequence[NodeOffer], **racks: int) -> Plan:
    return plan_of(consumers, nodes, {}, racks)


def texts(plan: Plan, kind: str) -> list[str]:
    return [problem.text for problem in plan.problems if problem.kind == kind]


def placed(plan: Plan) -> dict[str, int]:
    return {one.consumer.title: one.placed for one in plan.consumers}


# All placements


class Host(NamedTuple):
    """One node by itself, what its devices have left beside the pods that every node gets."""

    offer: NodeOffer
    left: Mapping[str, int]
    has_all_daemons: bool


def hosts(consumers: Sequence[Consumer], nodes: Sequence[NodeOffer]) -> list[Host]:
    found = []
    for offer in nodes:
        left, has_all = dict(offer.allocatable), True
        for one in consumers:
            if one.is_for_each_node and admits(offer, one):
                if all(left.get(name, 0) >= amount for name, amount in one.asks.items()):
                    for name, amount in one.asks.items():
                        left[name] -= amount
                else:
                    has_all = False
        found += [Host(offer, left, has_all)] * offer.count
    return found


def accepts(offer: NodeOffer, consumer: Consumer) -> bool:
    has_room = all(offer.allocatable.get(name, 0) >= amount for name, amount in consumer.asks.items())
    return has_room and admits(offer, consumer)


def admits(offer: NodeOffer, consumer: Consumer) -> bool:
    """Check what the controller of a DaemonSet looks at, which is not what the node has."""
    return consumer.pod_spec.get("nodeSelector", {}).get("zone") in (None, offer.labels.get("zone"))


def placements(pods: Sequence[Consumer], nodes: Sequence[Host]) -> Iterator[tuple[int, ...]]:
    """Return for every way to place all pods the node of each."""
    choices = [[at for at, host in enumerate(nodes) if accepts(host.offer, pod)] for pod in pods]
    for chosen in product(*choices):
        if all(_holds([pod for pod, at in zip(pods, chosen, strict=True) if at == i], h) for i, h in enumerate(nodes)):
            yield chosen


def _holds(pods: Sequence[Consumer], host: Host) -> bool:
    for name, has in host.left.items():
        if sum(pod.asks.get(name, 0) for pod in pods) > has:
            return False
    return all(one.most_per_node is None or pods.count(one) <= one.most_per_node for one in pods)


def can_all_run(pods: Sequence[Consumer], nodes: Sequence[Host]) -> bool:
    return next(placements(pods, nodes), None) is not None


def groups_on(pods: Sequence[Consumer], slots: int) -> Iterator[tuple[Consumer, ...]]:
    """Return all pods that may meet on the one device of a node, or on one of several where each asks for one slot."""
    for size in range(1, len(pods) + 1):
        for chosen in combinations(pods, size):
            is_apart = all(one.most_per_node is None or chosen.count(one) <= one.most_per_node for one in chosen)
            if is_apart and sum(sum(one.asks.values()) for one in chosen) <= slots:
                yield chosen
