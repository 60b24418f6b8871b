"""Effects of a change on GPUs: requests, slots, GPU memory, and workloads whose pods no longer fit on the nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpu_constructs.cli import seen
from gpu_constructs.cli.diff.model import Effect
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.provided import Provided
from gpu_constructs.records import dataclass

if TYPE_CHECKING:
    from gpu_constructs.capacity.consumer import Consumer
    from gpu_constructs.capacity.plan import Plan
    from gpu_constructs.catalog.inventory import GpuInventory
    from gpu_constructs.catalog.sharing import Sharing

Owner = tuple[str, str, str]
"""Kind, namespace and name of the object whose pods request GPUs."""


@dataclass(frozen=True)
class Capacity:
    """The effects of a change on GPUs: on requests, on slots, and on the pods that fit the nodes.

    Attributes:
        of_cluster: Effects on the cluster as a whole, such as a changed number of slots.
        of_objects: Effects on single objects, by kind, namespace and name of the object.
    """

    of_cluster: Sequence[Effect]
    of_objects: Mapping[Owner, Sequence[Effect]]


def capacity_of(
    old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]], inventory: GpuInventory | None
) -> Capacity:
    """Return the effects of a change on GPUs: on requests, on slots, and on the pods that fit the nodes.

    Args:
        old: Objects before the change.
        new: Objects after the change.
        inventory: GPU nodes of the cluster. None to compare only GPU sharing and GPU requests, without a capacity plan.

    Raises:
        GpuConstructsError: The capacity plan cannot read an object.
    """
    from gpu_constructs.capacity.demand.consumers import consumers

    provided = [seen.provided_by(one) for one in (old, new)]
    facts = [Facts(one, says, inventory) for one, says in zip((old, new), provided, strict=True)]
    before, after = ({_owner(each): each for each in consumers(one)} for one in facts)
    effects: dict[Owner, list[Effect]] = {}
    for owner in [*before, *(one for one in after if one not in before)]:
        effects.setdefault(owner, []).extend(_of_requests(before.get(owner), after.get(owner)))
    cluster = list(_of_sharing(*provided))
    if inventory is not None:
        from gpu_constructs.capacity.planner import plan

        plans = [plan(one, inventory) for one in facts]
        cluster += _of_plans(*plans)
        for owner, effect in _of_waiting(*plans):
            effects.setdefault(owner, []).append(effect)
    return Capacity(cluster, effects)


def _owner(consumer: Consumer) -> Owner:
    return consumer.kind, consumer.namespace, consumer.name


def _of_requests(old: Consumer | None, new: Consumer | None) -> Iterator[Effect]:
    """Yield an effect for each changed GPU request of a workload, and for a changed GPU memory budget of its pods.

    Args:
        old: Workload before the change; None if it is new.
        new: Workload after the change; None if the change removes it.
    """
    asks = [_total(one) for one in (old, new)]
    for resource in dict.fromkeys([*asks[0], *asks[1]]):
        amounts = [one.get(resource, 0) for one in asks]
        if amounts[0] != amounts[1]:
            yield Effect("capacity", f"requests of {resource}: {amounts[0]} → {amounts[1]}")
    if old and new and old.vram_mib != new.vram_mib:
        yield Effect("capacity", f"GPU memory of each pod: {_mib(old.vram_mib)} → {_mib(new.vram_mib)}")


def _total(consumer: Consumer | None) -> dict[str, int]:
    """Return the amounts of GPU resources that all pods of a workload request together, by name of the resource.

    For a DaemonSet, return the amounts on each of its nodes. If ``consumer`` is None, return an empty dict.
    """
    if consumer is None:
        return {}
    pods = 1 if consumer.is_for_each_node else consumer.pods
    return {name: amount * pods for name, amount in consumer.asks.items()}


def _mib(amount: int | None) -> str:
    return "not stated" if amount is None else f"{amount} MiB"


def _of_sharing(old: Sequence[Provided], new: Sequence[Provided]) -> Iterator[Effect]:
    """Yield an effect for each device plugin configuration whose GPU sharing or MIG strategy changes.

    Args:
        old: Declarations of the device plugins and other GPU components that the old objects install.
        new: Declarations of the device plugins and other GPU components that the new objects install.
    """
    before, after = _advertised(old), _advertised(new)
    for name in dict.fromkeys([*before, *after]):
        texts = [one.get(name, "nothing") for one in (before, after)]
        if texts[0] != texts[1]:
            yield Effect("capacity", f"{name}: {texts[0]} → {texts[1]}")


def _advertised(provided: Sequence[Provided]) -> dict[str, str]:
    """Return the GPU sharing and the MIG strategies of device plugins as texts for messages.

    For example, the key ``each GPU advertises as nvidia.com/gpu`` has the value ``8 slots (time-slicing)``.
    """
    found: dict[str, str] = {}
    for one in provided:
        for resource, sharing in one.gpu_resources.items():
            found[f"each GPU advertises as {resource}"] = _shared(sharing)
        for offer in one.gpu_offers:
            called = f"configuration {offer.config!r} of the device plugin" if offer.config else "the device plugin"
            found[f"MIG strategy of {called}"] = offer.mig_strategy
            if offer.config:
                found[f"sharing of {called}"] = _shared(offer.sharing)
    return found


def _shared(sharing: Sharing) -> str:
    unit = sharing.vram_unit_mib
    slots = f"a slot for each {unit} MiB" if unit else f"{sharing.replicas} slots"
    return f"{slots} ({sharing.strategy})"


def _of_plans(old: Plan, new: Plan) -> Iterator[Effect]:
    """Yield the effects of a change on the whole cluster: its slots, its GPU memory, and new capacity problems.

    Args:
        old: Capacity plan before the change.
        new: Capacity plan after the change.
    """
    for resource in dict.fromkeys([*old.stock, *new.stock]):
        totals = [one.stock[resource].total if resource in one.stock else 0 for one in (old, new)]
        if totals[0] != totals[1]:
            yield Effect("capacity", f"slots of {resource} in the cluster: {totals[0]} → {totals[1]}")
    for what, before, after in (
        ("GPU memory", old.vram, new.vram),
        ("room for the long-running pods", old.always_fits, new.always_fits),
        ("room for all pods at the same time", old.all_fits, new.all_fits),
    ):
        if before != after:
            yield Effect("capacity", f"{what}: {before} → {after}")
    known = {one.text for one in old.problems}
    yield from (Effect("capacity", one.text) for one in new.problems if one.text not in known)


def _of_waiting(old: Plan, new: Plan) -> Iterator[tuple[Owner, Effect]]:
    """Yield an effect for each workload of which more or fewer pods stay Pending than before the change.

    Args:
        old: Capacity plan before the change.
        new: Capacity plan after the change.

    Yields:
        Pairs: kind, namespace and name of the workload as one tuple, and the effect.
    """
    before = {_owner(one.consumer): one.waiting for one in old.consumers}
    for one in new.consumers:
        waiting = before.get(_owner(one.consumer), 0)
        if one.waiting > waiting:
            why = "; ".join(f"{node}: {reason}" for node, reason in list(one.refusals.items())[:2])
            text = f"{one.waiting} of {one.waiting + one.placed} pods stay Pending (before: {waiting})"
            yield _owner(one.consumer), Effect("capacity", f"{text}{f', because of {why}' if why else ''}")
        elif one.waiting < waiting:
            text = f"{waiting - one.waiting} pods that were Pending now fit on a node"
            yield _owner(one.consumer), Effect("capacity", text)
