"""GPUs of a pod, whoever made the pod."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields, placement, pod_specs
from gpu_constructs.kube.env import VISIBLE_DEVICES
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.gpu_request import GpuRequest

CLAIM = "gpu"
"""What the claim is called in a pod, and the request in it."""

VisibleDevices = Literal["managed", "unmanaged"]

_DRIVER_CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"
_VOID = {"name": VISIBLE_DEVICES, "value": "void"}


@dataclass(frozen=True, kw_only=True)
class GpuAllocation:
    """A request, as a profile renders it.

    Attributes:
        limits: Extended resources; empty where claims are made.
        node_terms: Alternatives of node selector expressions, each to hold as a whole; nearly always one.
        claim: The spec of the claim; None where limits or an existing claim serve.
        existing_claim: The name of a claim that is there already.
        existing_claim_namespace: Namespace of that claim, if it was given as an object.
    """

    profile: GpuProfile
    request: GpuRequest
    limits: Mapping[str, int]
    node_terms: Sequence[Sequence[Mapping[str, Any]]] = ()
    claim: Mapping[str, Any] | None = None
    existing_claim: str | None = None
    existing_claim_namespace: str | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)

    @property
    def runtime_class(self) -> str | None:
        """Name of the runtime class that the pods name."""
        return self.profile.runtime_class_name

    @property
    def by_claims(self) -> bool:
        """Whether pods hold claims instead of limits."""
        return self.profile.backend.kind == "dra-claims"

    def give(
        self,
        pod_spec: Mapping[str, Any],
        *,
        container: str | None = None,
        claim_template: str | None = None,
        visible_devices: VisibleDevices = "managed",
        names_runtime_class: bool = True,
    ) -> dict[str, Any]:
        """Return the pod with GPUs for one of its containers. Done twice, it changes nothing the second time.

        Args:
            pod_spec: The pod, which stays as it is.
            container: Name of the container. None: the first of those that are not there to prepare.
            claim_template: Name of the ResourceClaimTemplate, where ``claim`` is not None.
            visible_devices: ``managed`` refuses ``NVIDIA_VISIBLE_DEVICES`` on that container.
            names_runtime_class: Whether the pod has a place for it; some custom resources have none.

        Raises:
            GpuConstructsError: The container is not there, or something in the pod contradicts.
        """
        holder = container_named(pod_spec, container)
        pod = with_containers(pod_spec, lambda one: _holding(self, one, visible_devices) if one is holder else one)
        if self.by_claims:
            _add_claim(self, pod, claim_template)
        if names_runtime_class:
            _name_runtime_class(self, pod)
        _place(self, pod)
        return pod

    def check_claim_namespace(self, namespace: str) -> None:
        """Raise if the claim is of another namespace than the pods.

        Raises:
            GpuConstructsError: The claim was given as an object, and pods of the namespace cannot hold it.
        """
        there = self.existing_claim_namespace
        if there not in (None, namespace):
            raise GpuConstructsError(
                f"request.resource_claim is of namespace {there!r}, and pods of {namespace!r} cannot hold it; make the "
                "claim in their namespace"
            )

    def hide_from_others(self, pod_spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the pod with ``NVIDIA_VISIBLE_DEVICES=void`` where no GPU is held and nothing else is said.

        In the runtime of NVIDIA an image with CUDA asks for all GPUs of the node by itself. Devices of a DRA driver
        come by CDI, which asks no variable.
        """
        asks_no_variable = self.profile.backend.is_dra and self.runtime_class is None
        return pod_spec if asks_no_variable else with_containers(pod_spec, _hidden)


def _holding(allocation: GpuAllocation, given: Mapping[str, Any], visible_devices: VisibleDevices) -> Mapping[str, Any]:
    env, name = list(given.get("env") or ()), given.get("name")
    there = {variable.get("name"): variable for variable in env}
    if VISIBLE_DEVICES in there and visible_devices == "managed":
        raise GpuConstructsError(
            f"container {name!r} must not set {VISIBLE_DEVICES}, got "
            f"{there[VISIBLE_DEVICES].get('value', 'a value from elsewhere')!r}: it overrides the GPU that was "
            "allocated, and 'all' shows every GPU of the node; leave it out, or pass visible_devices='unmanaged'"
        )
    resources = _resources(allocation, given.get("resources") or {}, name)
    capabilities = allocation.request.driver_capabilities_variable
    if not capabilities or allocation.profile.backend.is_dra:
        return {**given, "resources": resources}
    wanted = {"name": _DRIVER_CAPABILITIES, "value": capabilities}
    found = there.get(_DRIVER_CAPABILITIES, wanted)
    if found != wanted:
        raise GpuConstructsError(
            f"container {name!r} sets {_DRIVER_CAPABILITIES} to {found.get('value')!r} already, where "
            f"request.driver_capabilities asks for {capabilities!r}; leave one of the two out"
        )
    return {**given, "resources": resources, "env": env if wanted in env else [*env, wanted]}


def _resources(allocation: GpuAllocation, given: Mapping[str, Any], container: object) -> dict[str, Any]:
    for section in ("limits", "requests"):
        for resource, amount in (given.get(section) or {}).items():
            if resource.startswith("nvidia.com/") and str(amount) != str(allocation.limits.get(resource)):
                asked = ", ".join(f"{n} x {r}" for r, n in allocation.limits.items()) or "a claim"
                raise GpuConstructsError(
                    f"container {container!r} has {section} of {amount} x {resource} already, where {asked} is "
                    "asked for; leave one of the two out"
                )
    limits = {**(given.get("limits") or {}), **allocation.limits}
    made = {**given, **({"limits": limits} if limits else {})}
    if allocation.by_claims:
        ours = {"name": CLAIM, **({} if allocation.existing_claim else {"request": CLAIM})}
        made["claims"] = _with_claim(given.get("claims") or (), ours, f"container {container!r}")
    return made


def _add_claim(allocation: GpuAllocation, pod: dict[str, Any], template: str | None) -> None:
    source = "resourceClaimName" if allocation.existing_claim else "resourceClaimTemplateName"
    ours = {"name": CLAIM, source: allocation.existing_claim or template}
    pod["resourceClaims"] = _with_claim(pod.get("resourceClaims") or (), ours, "the pod")


def _name_runtime_class(allocation: GpuAllocation, pod: dict[str, Any]) -> None:
    if allocation.runtime_class is None:
        return
    there = pod.get("runtimeClassName")
    if there not in (None, allocation.runtime_class):
        raise GpuConstructsError(
            f"the pod has runtimeClassName {there!r} already, where runtime_class {allocation.runtime_class!r} is "
            f"asked for; leave one of the two out, or pass runtime_class={there!r}"
        )
    pod["runtimeClassName"] = allocation.runtime_class


def _place(allocation: GpuAllocation, pod: dict[str, Any]) -> None:
    selector = dict(pod.get("nodeSelector") or {})
    for label, value in allocation.node_selector.items():
        if selector.setdefault(label, value) != value:
            raise GpuConstructsError(
                f"the pod selects nodes with {label}={selector[label]}, where GPU pods need {label}={value}, so no "
                "node would match; leave that label out of the pod's selector"
            )
    _refuse_selecting_another_board(allocation, selector)
    if selector:
        pod["nodeSelector"] = selector
    there = list(pod.get("tolerations") or ())
    tolerations = placement.tolerations(allocation.profile.tolerations, (placement.GPU_TAINT,))
    pod["tolerations"] = [*there, *(one for one in tolerations if one not in there)]
    if allocation.node_terms:
        pod["affinity"] = placement.with_node_alternatives(pod.get("affinity"), allocation.node_terms)
        clash = placement.clash_of_terms(pod["affinity"])
        if clash:
            raise GpuConstructsError(
                f"the pod's node affinity and its GPU request have no {clash} in common, so no node would match; "
                "leave one of the two out"
            )


def _refuse_selecting_another_board(allocation: GpuAllocation, selector: Mapping[str, str]) -> None:
    unmet = [[rule for rule in term if not _is_met(rule, selector)] for term in allocation.node_terms]
    if not unmet or not all(unmet):
        return
    label = unmet[0][0]["key"]
    wanted = dict.fromkeys(_wanted(rule) for rules in unmet for rule in rules if rule["key"] == label)
    raise GpuConstructsError(
        f"the pod selects nodes with {label}={selector[label]}, where its GPU request wants "
        f"{' or '.join(wanted)}, so no node would match; leave one of the two out"
    )


def _wanted(rule: Mapping[str, Any]) -> str:
    return f"above {rule['values'][0]}" if rule["operator"] == "Gt" else " or ".join(sorted(rule["values"]))


def _with_claim(there: Sequence[Mapping[str, Any]], ours: Mapping[str, Any], whose: str) -> list[Mapping[str, Any]]:
    same = [claim for claim in there if claim.get("name") == ours["name"]]
    if same and same != [ours]:
        raise GpuConstructsError(
            f"{whose} has a claim called {ours['name']!r} already, which is another: {same[0]}; give that one another "
            "name"
        )
    return [*there, *([] if same else [ours])]


def _is_met(rule: Mapping[str, Any], selector: Mapping[str, str]) -> bool:
    value = selector.get(rule["key"])
    if value is None:
        return True
    if rule["operator"] == "Gt":
        return value.isdecimal() and int(value) > int(rule["values"][0])
    return value in rule["values"]


class ContainerMissingError(GpuConstructsError):
    """A pod has no container of the name, or none at all; one may be added later."""


def container_named(pod_spec: Mapping[str, Any], name: str | None) -> Mapping[str, Any]:
    """Return a container of a pod by name, or the first that is not there to prepare.

    Raises:
        ContainerMissingError: There is none of that name, or none at all.
    """
    server = pod_specs.model_server(pod_spec)
    # Of a KServe predictor, where the runtime brings the containers.
    main = [*([pod_spec[server]] if server else ()), *(pod_spec.get("containers") or ())]
    if not main:
        raise ContainerMissingError("the pod has no container that could hold a GPU; add one")
    every = {one.get("name"): one for one in reversed([*main, *(pod_spec.get("initContainers") or ())])}
    if name is not None and name not in every:
        names = [str(known) for known in reversed(every)]
        raise ContainerMissingError(
            f"container must be one of {', '.join(map(repr, names))}; got {name!r}{fields.did_you_mean(name, names)}"
        )
    found: Mapping[str, Any] = main[0] if name is None else every[name]
    return found


def with_containers(
    pod_spec: Mapping[str, Any], changed: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the pod with each of its containers changed by a function."""
    pod = dict(pod_spec)
    for group in ("initContainers", "containers"):
        if pod.get(group):
            pod[group] = [changed(one) for one in pod[group]]
    server = pod_specs.model_server(pod)
    if server is not None:
        pod[server] = changed(pod[server])
    return pod


def _hidden(container: Mapping[str, Any]) -> Mapping[str, Any]:
    env = container.get("env") or []
    if _holds_gpus(container) or any(variable.get("name") == VISIBLE_DEVICES for variable in env):
        return container
    return {**container, "env": [*env, _VOID]}


def _holds_gpus(container: Mapping[str, Any]) -> bool:
    resources = container.get("resources") or {}
    claims = [claim.get("name") for claim in resources.get("claims") or ()]
    return CLAIM in claims or any(name.startswith("nvidia.com/") for name in resources.get("limits") or {})
