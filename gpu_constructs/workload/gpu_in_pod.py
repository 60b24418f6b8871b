"""`GpuAllocation`: the pod fields for a GPU request, and functions that add them to one container of a pod."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields, placement, pod_specs
from gpu_constructs.kube.env import VISIBLE_DEVICES
from gpu_constructs.records import dataclass, field
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.gpu_request import GpuRequest

CLAIM = "gpu"
"""Name of the claim in the pod spec. It is also the name of the request in the claim."""

VisibleDevices = Literal["managed", "unmanaged"]

_DRIVER_CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"
_VOID = {"name": VISIBLE_DEVICES, "value": "void"}


@dataclass(frozen=True, kw_only=True)
class GpuAllocation:
    """The Kubernetes fields that a pod needs for its GPU request, in a cluster with the given ``GpuProfile``.

    Attributes:
        profile: Settings that all GPU workloads of the cluster share.
        request: GPU request of the user.
        limits: Amount of each extended resource in the limits of the container. Empty if the pod uses a claim.
        node_terms: Alternative lists of match expressions on node labels. A node must match all expressions of one
            list.
        claim: Spec of the claim for each pod. None if the pod uses limits or an existing claim.
        existing_claim: Name of the existing claim that the pods use. None if there is none.
        existing_claim_namespace: Namespace of the existing claim. None if the user passes the claim by its name.
        node_selector: Node labels that the platform and the profile select.
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
        """Name of the RuntimeClass of the pods. None if the pods need none."""
        return self.profile.runtime_class_name

    @property
    def by_claims(self) -> bool:
        """Whether the pods get GPUs through a ResourceClaim, and not through limits of an extended resource."""
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
        """Return a pod spec in which one container has the requested GPUs.

        If the container already has the GPUs, nothing changes.

        Args:
            pod_spec: Spec of the pod. The function does not change it.
            container: Name of the container. None: the first one that is not an init container.
            claim_template: Name of the ResourceClaimTemplate for the pods. None if the attribute ``claim`` is None.
            visible_devices: ``managed`` rejects ``NVIDIA_VISIBLE_DEVICES`` in the container with the GPUs, and
                ``unmanaged`` allows it.
            names_runtime_class: Whether to set the runtime class. The pods of some custom resources have no field for
                it.

        Raises:
            GpuConstructsError: The container does not exist, or a field of the pod conflicts with the GPUs.
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
        """Raise an error if the user passed the existing claim as an object, and the pods are in another namespace.

        Raises:
            GpuConstructsError: The namespace of the claim differs from ``namespace``, the namespace of the pods.
        """
        there = self.existing_claim_namespace
        if there not in (None, namespace):
            raise GpuConstructsError(
                f"request.resource_claim is in the namespace {there!r}, and pods of {namespace!r} cannot use it. "
                "Create the claim in their namespace"
            )

    def hide_from_others(self, pod_spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a pod spec with ``NVIDIA_VISIBLE_DEVICES=void`` in each container that gets no GPU.

        Containers that set the variable keep their value. Without the variable, a container with a CUDA image could get
        all GPUs of the node. With a DRA driver and no runtime class, the pod spec does not change, because CDI does not
        read the variable.
        """
        asks_no_variable = self.profile.backend.is_dra and self.runtime_class is None
        return pod_spec if asks_no_variable else with_containers(pod_spec, _hidden)


def _holding(allocation: GpuAllocation, given: Mapping[str, Any], visible_devices: VisibleDevices) -> Mapping[str, Any]:
    env, name = list(given.get("env") or ()), given.get("name")
    there = {variable.get("name"): variable for variable in env}
    if VISIBLE_DEVICES in there and visible_devices == "managed":
        raise GpuConstructsError(
            f"container {name!r} must not set {VISIBLE_DEVICES}, got "
            f"{there[VISIBLE_DEVICES].get('value', 'a value from elsewhere')!r}: it overrides the allocated GPU, and "
            "'all' shows every GPU of the node. Remove it, or set visible_devices='unmanaged'"
        )
    resources = _resources(allocation, given.get("resources") or {}, name)
    capabilities = allocation.request.driver_capabilities_variable
    if not capabilities or allocation.profile.backend.is_dra:
        return {**given, "resources": resources}
    wanted = {"name": _DRIVER_CAPABILITIES, "value": capabilities}
    found = there.get(_DRIVER_CAPABILITIES, wanted)
    if found != wanted:
        raise GpuConstructsError(
            f"container {name!r} sets {_DRIVER_CAPABILITIES} to {found.get('value')!r}, and "
            f"request.driver_capabilities sets {capabilities!r}. Remove one of them"
        )
    return {**given, "resources": resources, "env": env if wanted in env else [*env, wanted]}


def _resources(allocation: GpuAllocation, given: Mapping[str, Any], container: object) -> dict[str, Any]:
    for section in ("limits", "requests"):
        for resource, amount in (given.get(section) or {}).items():
            if resource.startswith("nvidia.com/") and str(amount) != str(allocation.limits.get(resource)):
                asked = ", ".join(f"{n} x {r}" for r, n in allocation.limits.items()) or "a claim"
                raise GpuConstructsError(
                    f"container {container!r} has {section} of {amount} x {resource} already, and the request "
                    f"is {asked}. Remove one of them"
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
            f"the pod has runtimeClassName {there!r} already, and the request has "
            f"{allocation.runtime_class!r}. Remove one of them, or set runtime_class={there!r}"
        )
    pod["runtimeClassName"] = allocation.runtime_class


def _place(allocation: GpuAllocation, pod: dict[str, Any]) -> None:
    selector = dict(pod.get("nodeSelector") or {})
    for label, value in allocation.node_selector.items():
        if selector.setdefault(label, value) != value:
            raise GpuConstructsError(
                f"the pod selects nodes with {label}={selector[label]}, and GPU pods need {label}={value}, so no "
                "node matches. Remove that label from the selector of the pod"
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
                f"the pod's node affinity and its GPU request have no {clash} in common, so no node matches. Remove "
                "one of them"
            )


def _refuse_selecting_another_board(allocation: GpuAllocation, selector: Mapping[str, str]) -> None:
    unmet = [[rule for rule in term if not _is_met(rule, selector)] for term in allocation.node_terms]
    if not unmet or not all(unmet):
        return
    label = unmet[0][0]["key"]
    wanted = dict.fromkeys(_wanted(rule) for rules in unmet for rule in rules if rule["key"] == label)
    raise GpuConstructsError(
        f"the pod selects nodes with {label}={selector[label]}, and its GPU request needs "
        f"{' or '.join(wanted)}, so no node matches. Remove one of them"
    )


def _wanted(rule: Mapping[str, Any]) -> str:
    return f"above {rule['values'][0]}" if rule["operator"] == "Gt" else " or ".join(sorted(rule["values"]))


def _with_claim(there: Sequence[Mapping[str, Any]], ours: Mapping[str, Any], whose: str) -> list[Mapping[str, Any]]:
    same = [claim for claim in there if claim.get("name") == ours["name"]]
    if same and same != [ours]:
        raise GpuConstructsError(
            f"{whose} has another claim with the name {ours['name']!r}: {same[0]}. Rename that claim"
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
    """The error if a pod lacks the named container, or has no containers.

    ``GpuAccess.apply_to`` ignores this error, because the user can still add the container before the rendering.
    """


def container_named(pod_spec: Mapping[str, Any], name: str | None) -> Mapping[str, Any]:
    """Return the container of a pod with the given name.

    If the name is None, return the first container that is not an init container.

    Raises:
        ContainerMissingError: The pod does not have this container, or has no containers.
    """
    server = pod_specs.model_server(pod_spec)
    # A KServe predictor gets its containers from a runtime.
    main = [*([pod_spec[server]] if server else ()), *(pod_spec.get("containers") or ())]
    if not main:
        raise ContainerMissingError("the pod must have a container for the GPU. Add one")
    every = {one.get("name"): one for one in reversed([*main, *(pod_spec.get("initContainers") or ())])}
    if name is not None and name not in every:
        names = [str(known) for known in reversed(every)]
        raise ContainerMissingError(
            f"container must be one of {', '.join(map(repr, names))}, got {name!r}{fields.did_you_mean(name, names)}"
        )
    found: Mapping[str, Any] = main[0] if name is None else every[name]
    return found


def with_containers(
    pod_spec: Mapping[str, Any], changed: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> dict[str, Any]:
    """Return a copy of a pod spec in which the result of ``changed(container)`` replaces each container."""
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
