"""What a LimitRange makes of a pod: what its containers get, and why it is refused.

kubernetes/kubernetes@v1.36.2:pkg/apis/core/v1/defaults.go, SetDefaults_LimitRangeItem, and
plugin/pkg/admission/limitranger/admission.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gpu_constructs.facts.app import most_at_once
from gpu_constructs.facts.readable import Manifest, amounts, quantity
from gpu_constructs.kube.pod_specs import containers

SECTIONS = ("limits", "requests")


class Breach(NamedTuple):
    """An amount that a LimitRange refuses.

    Attributes:
        container: Name of the container; None for the pod as a whole.
        section: ``limits`` or ``requests``.
        resource: The resource.
        given: The amount.
        bound: ``max`` or ``min``.
        allowed: What the bound allows.
    """

    container: str | None
    section: str
    resource: str
    given: object
    bound: str
    allowed: object

    @property
    def text(self) -> str:
        """The breach as a clause."""
        whose = "the pod" if self.container is None else f"container {self.container}"
        side = "above" if self.bound == "max" else "below"
        return f"{self.section}[{self.resource!r}] of {whose} is {self.given}, {side} {self.bound} {self.allowed}"


def defaults(limit: Manifest, section: str) -> dict[str, Any]:
    """Return the limits or requests that a container gets which does not state them."""
    if limit.get("type") != "Container":
        return {}
    found = {**(limit.get("max") or {}), **(limit.get("default") or {})}
    if section == "requests":
        found = {**(limit.get("min") or {}), **found, **(limit.get("defaultRequest") or {})}
    return found


def completed(pod_spec: Mapping[str, Any], limits: Sequence[Manifest]) -> Mapping[str, Any]:
    """Return a pod spec with the defaults of all LimitRanges of its namespace, of which the first one counts."""
    found = dict(pod_spec)
    for key in ("initContainers", "containers"):
        if isinstance(pod_spec.get(key), list):
            found[key] = [_completed(one, limits) if isinstance(one, Mapping) else one for one in pod_spec[key]]
    return found


def _completed(container: Manifest, limits: Sequence[Manifest]) -> Manifest:
    # The API server takes limits for requests before the LimitRange is looked at.
    given = {"limits": amounts(container, "limits")}
    given["requests"] = {**given["limits"], **amounts(container, "requests")}
    for limit in limits:
        for section in SECTIONS:
            given[section] = {**defaults(limit, section), **given[section]}
    return {**container, "resources": {**(container.get("resources") or {}), **given}}


def breaches(pod_spec: Mapping[str, Any], limit: Manifest) -> Iterator[Breach]:
    """Yield the amounts of a pod that one of the limits of a LimitRange refuses."""
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
    for section in SECTIONS:
        if kind == "Container":
            for container in containers(pod_spec):
                yield str(container.get("name")), section, amounts(container, section).get(resource)
        elif kind == "Pod":
            yield None, section, _total(pod_spec, section, resource)


def _total(pod_spec: Mapping[str, Any], section: str, resource: str) -> str | None:
    """Return what the containers of a pod come to; an init container that ends counts where it is larger."""
    stated = {id(one): quantity(amounts(one, section).get(resource)) for one in containers(pod_spec)}
    held = {key: amount for key, amount in stated.items() if amount is not None}
    return format(most_at_once(pod_spec, held), "f") if held else None
