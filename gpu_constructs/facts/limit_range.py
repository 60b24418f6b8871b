"""The effects of a LimitRange on pods: default amounts for containers, and pods that the API server rejects.

Source:
    kubernetes/kubernetes@v1.36.2:pkg/apis/core/v1/defaults.go, SetDefaults_LimitRangeItem, and
    plugin/pkg/admission/limitranger/admission.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gpu_constructs.facts.readable import Manifest, amounts, quantity
from gpu_constructs.kube.pod_specs import containers, most_at_once

SECTIONS = ("limits", "requests")


class Breach(NamedTuple):
    """An amount in a pod spec that a LimitRange rejects.

    Attributes:
        container: Name of the container; None if the LimitRange rejects the sum of all containers.
        section: Field of the container's resources that contains the amount: ``limits`` or ``requests``.
        resource: Name of the resource, such as ``nvidia.com/gpu``.
        given: Amount in the pod spec.
        bound: Field of the LimitRange that the amount violates: ``max`` or ``min``.
        allowed: Value of that field in the LimitRange.
    """

    container: str | None
    section: str
    resource: str
    given: object
    bound: str
    allowed: object

    @property
    def text(self) -> str:
        """Clause for messages that states the amount and the value of ``max`` or ``min`` that the amount violates."""
        whose = "the pod" if self.container is None else f"container {self.container}"
        side = "above" if self.bound == "max" else "below"
        return f"{self.section}[{self.resource!r}] of {whose} is {self.given}, {side} {self.bound} {self.allowed}"


def defaults(limit: Manifest, section: str) -> dict[str, Any]:
    """Return the default amounts by resource that one item of a LimitRange adds to a container.

    Args:
        limit: Item of ``spec.limits`` of the LimitRange.
        section: ``limits`` or ``requests``.
    """
    if limit.get("type") != "Container":
        return {}
    found = {**(limit.get("max") or {}), **(limit.get("default") or {})}
    if section == "requests":
        found = {**(limit.get("min") or {}), **found, **(limit.get("defaultRequest") or {})}
    return found


def completed(pod_spec: Mapping[str, Any], limits: Sequence[Manifest]) -> Mapping[str, Any]:
    """Return a pod spec with the default amounts of the LimitRanges of its namespace added.

    The first LimitRange that has a default for a resource takes precedence.

    Args:
        pod_spec: Spec of the pod.
        limits: Items of ``spec.limits`` of all LimitRanges in the namespace.
    """
    found = dict(pod_spec)
    for key in ("initContainers", "containers"):
        if isinstance(pod_spec.get(key), list):
            found[key] = [_completed(one, limits) if isinstance(one, Mapping) else one for one in pod_spec[key]]
    return found


def _completed(container: Manifest, limits: Sequence[Manifest]) -> Manifest:
    """Return a container with the default amounts of items of LimitRanges added."""
    # The API server copies limits to missing requests before it applies the LimitRange.
    given = {"limits": amounts(container, "limits")}
    given["requests"] = {**given["limits"], **amounts(container, "requests")}
    for limit in limits:
        for section in SECTIONS:
            given[section] = {**defaults(limit, section), **given[section]}
    return {**container, "resources": {**(container.get("resources") or {}), **given}}


def breaches(pod_spec: Mapping[str, Any], limit: Manifest) -> Iterator[Breach]:
    """Yield a ``Breach`` for each amount in a pod spec that violates one item of ``spec.limits`` of a LimitRange."""
    for bound in ("max", "min"):
        for resource, allowed in (limit.get(bound) or {}).items():
            number = quantity(allowed)
            for name, section, given in _given(pod_spec, limit.get("type"), resource):
                amount = quantity(given)
                if number is None or amount is None or amount == number:
                    continue
                if (amount > number) == (bound == "max"):
                    yield Breach(name, section, resource, given, bound, allowed)


def _given(pod_spec: Mapping[str, Any], kind: object, resource: str) -> Iterator[tuple[str | None, str, object]]:
    """Yield the amounts of a resource in a pod spec that an item of a LimitRange checks.

    Each amount is a tuple: name of the container (None for the whole pod), section (``limits`` or ``requests``), and
    amount (None if the pod spec sets none).

    Args:
        pod_spec: Spec of the pod.
        kind: Field ``type`` of the item. ``Container`` checks each container, and ``Pod`` the sum of all containers.
        resource: Name of the resource.
    """
    for section in SECTIONS:
        if kind == "Container":
            for container in containers(pod_spec):
                yield str(container.get("name")), section, amounts(container, section).get(resource)
        elif kind == "Pod":
            yield None, section, _total(pod_spec, section, resource)


def _total(pod_spec: Mapping[str, Any], section: str, resource: str) -> str | None:
    """Return the amount of a resource that Kubernetes counts for a whole pod, as text; None if no container sets one.

    Args:
        pod_spec: Spec of the pod.
        section: ``limits`` or ``requests``.
        resource: Name of the resource.
    """
    stated = {id(one): quantity(amounts(one, section).get(resource)) for one in containers(pod_spec)}
    held = {key: amount for key, amount in stated.items() if amount is not None}
    return format(most_at_once(pod_spec, held), "f") if held else None
