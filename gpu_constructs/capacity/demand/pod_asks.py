"""What a pod takes of GPUs, as the scheduler counts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpu_constructs.pod_specs import containers
from gpu_constructs.rules.facts import amounts, quantity

IsGpu = Callable[[str], bool]
"""Whether a resource is GPUs."""


def asked(container: Mapping[str, Any], is_gpu: IsGpu) -> dict[str, int]:
    """Give how many of each GPU resource a container asks for; an amount that is no number counts as 1."""
    if not container.get("resources"):
        return {}
    found = {}
    for resource, amount in {**amounts(container, "requests"), **amounts(container, "limits")}.items():
        if is_gpu(resource):
            number = quantity(amount)
            # Kubernetes refuses parts of a GPU, and a placeholder stands for one at least.
            count = 1 if number is None or 0 < number < 1 else int(number)
            if count > 0:
                found[resource] = count
    return found


def most_asked(pod_spec: Mapping[str, Any], is_gpu: IsGpu) -> dict[str, int]:
    """Give the most of each GPU resource that one container of a pod asks for."""
    most: dict[str, int] = {}
    for container in containers(pod_spec):
        for resource, count in asked(container, is_gpu).items():
            most[resource] = max(most.get(resource, 0), count)
    return most


def pod_asks(pod_spec: Mapping[str, Any], is_gpu: IsGpu) -> dict[str, int]:
    """Give how many of each GPU resource the scheduler sets aside for a pod.

    Those that run until the pod ends count together; one that ends before them counts with the ones of them that
    start before it. Kubernetes v1.36 component-helpers resource/helpers.go AggregateContainerRequests.
    """
    lasting: dict[str, int] = {}
    most: dict[str, int] = {}
    first = len(pod_spec.get("initContainers") or ())
    for index, container in enumerate(containers(pod_spec)):
        own = asked(container, is_gpu)
        passes = index < first and container.get("restartPolicy") != "Always"
        for resource, count in own.items():
            together = lasting.get(resource, 0) + count
            most[resource] = max(most.get(resource, 0), together)
            if not passes:
                lasting[resource] = together
    return most
