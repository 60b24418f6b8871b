"""What asks for GPUs by objects of kinds that a plan knows nothing of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpu_constructs._kinds import BUILT_IN_GROUPS
from gpu_constructs.capacity.condition import Condition
from gpu_constructs.capacity.demand.app_objects import App
from gpu_constructs.capacity.demand.copies import is_known
from gpu_constructs.capacity.demand.pod_group import mapping
from gpu_constructs.capacity.demand.present import present
from gpu_constructs.rules.facts import Facts, namespace_of, quantity

# Of Kubernetes itself all that make pods are known; the others bound, divide or describe what pods take.
_NO_PODS = BUILT_IN_GROUPS | {
    "constraints.gatekeeper.sh",
    "karpenter.sh",
    "kueue.x-k8s.io",
    "kyverno.io",
    "nfd.k8s-sigs.io",
    "nvidia.com",
    "policies.kyverno.io",
    "scheduling.run.ai",
    "scheduling.volcano.sh",
    "scheduling.x-k8s.io",
}
_AMOUNTS = frozenset({"limits", "requests"})
_WORDS = frozenset({"annotations", "labels", "matchLabels", "nodeSelector"})
_DEEPEST = 60


def uncounted(facts: Facts) -> list[Condition]:
    """Return a condition for each object that asks for GPUs and of which nobody knows how many pods it makes.

    Args:
        facts: The app.
    """
    app = App(facts)
    told = []
    for index in present(app).indexes:
        manifest, (group, kind) = facts.objects[index], facts.kinds[index]
        if group in _NO_PODS or is_known(manifest):
            continue
        resources = dict.fromkeys(_resources({**manifest, "metadata": None, "status": None}, app))
        if resources:
            name = mapping(manifest.get("metadata")).get("name")
            told.append(
                Condition(
                    f"there is room for {kind} {namespace_of(manifest)}/{name}, which asks for {', '.join(resources)} "
                    "and is of a kind that is not known: not counted",
                    "leave room for it in the inventory, by fewer GPUs than there are",
                )
            )
    return told


def _resources(value: Any, app: App, *, are_amounts: bool = False, depth: int = 0) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for member in value:
            yield from _resources(member, app, depth=depth + 1)
    if not isinstance(value, Mapping):
        return
    # As Spark asks for GPUs of its executors.
    if isinstance(value.get("name"), str) and "quantity" in value and app.is_gpu(value["name"]):
        yield value["name"]
    for key, member in value.items():
        if isinstance(member, Mapping | list):
            if key not in _WORDS:
                yield from _resources(member, app, are_amounts=key in _AMOUNTS, depth=depth + 1)
        elif isinstance(key, str) and app.is_gpu(key):
            amount = quantity(member)
            # What is no number is a parameter, but only where amounts stand.
            if are_amounts if amount is None else amount > 0:
                yield key
