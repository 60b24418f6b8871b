"""What a request for GPUs writes into a pod, whoever made the pod."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gpu_constructs import _fields, _references, placement
from gpu_constructs.errors import GpuConstructsError, warn
from gpu_constructs.mig_profiles import MIG_PROFILES, mig_resource
from gpu_constructs.pod_specs import model_server
from gpu_constructs.sharing import GPU
from gpu_constructs.workload import resource_claim
from gpu_constructs.workload.env import VISIBLE_DEVICES
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.gpu_request import FIRST_COMPUTE, GpuRequest, known_board, product_label

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
        existing_claim_namespace: Its namespace, where the claim was given as an object, which alone tells it.
    """

    profile: GpuProfile
    request: GpuRequest
    limits: Mapping[str, int]
    node_terms: Sequence[Sequence[Mapping[str, Any]]] = ()
    claim: Mapping[str, Any] | None = None
    existing_claim: str | None = None
    existing_claim_namespace: str | None = None
    runtime_class: str | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, Any]] = ()

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
        """Give the pod with GPUs for one of its containers. Done twice, it changes nothing the second time.

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
        pod = _with_containers(pod_spec, lambda one: self._holding(one, visible_devices) if one is holder else one)
        if self.by_claims:
            self._add_claim(pod, claim_template)
        if names_runtime_class:
            self._name_runtime_class(pod)
        self._place(pod)
        return pod

    def check_claim_namespace(self, namespace: str) -> None:
        """Refuse a claim of another namespace than the pods'.

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
        """Give the pod with ``NVIDIA_VISIBLE_DEVICES=void`` where no GPU is held and nothing else is said.

        In the runtime of NVIDIA an image with CUDA asks for all GPUs of the node by itself. Devices of a DRA driver
        come by CDI, which asks no variable.
        """
        asks_no_variable = self.profile.backend.is_dra and self.runtime_class is None
        return pod_spec if asks_no_variable else _with_containers(pod_spec, _hidden)

    def _holding(self, given: Mapping[str, Any], visible_devices: VisibleDevices) -> Mapping[str, Any]:
        env, name = given.get("env") or [], given.get("name")
        chosen = next((variable for variable in env if variable.get("name") == VISIBLE_DEVICES), None)
        if chosen is not None and visible_devices == "managed":
            raise GpuConstructsError(
                f"container {name!r} must not set {VISIBLE_DEVICES}, got "
                f"{chosen.get('value', 'a value from elsewhere')!r}: it overrides the GPU that was "
                "allocated, and 'all' shows every GPU of the node; leave it out, or pass visible_devices='unmanaged'"
            )
        made = dict(given)
        made["resources"] = self._resources(given.get("resources") or {}, name)
        capabilities = "" if self.profile.backend.is_dra else self.request.driver_capabilities_variable
        if capabilities:
            wanted = {"name": _DRIVER_CAPABILITIES, "value": capabilities}
            there = next((variable for variable in env if variable.get("name") == _DRIVER_CAPABILITIES), None)
            if there not in (None, wanted):
                raise GpuConstructsError(
                    f"container {name!r} sets {_DRIVER_CAPABILITIES} to {there.get('value')!r} already, where "
                    f"request.driver_capabilities asks for {capabilities!r}; leave one of the two out"
                )
            made["env"] = [*env, *([] if there else [wanted])]
        return made

    def _resources(self, given: Mapping[str, Any], container: object) -> dict[str, Any]:
        limits, requests = dict(given.get("limits") or {}), given.get("requests") or {}
        for section, amounts in (("limits", limits), ("requests", requests)):
            for resource, amount in amounts.items():
                if not resource.startswith("nvidia.com/"):
                    continue
                wanted = self.limits.get(resource)
                if wanted is None or str(amount) != str(wanted):
                    asked = ", ".join(f"{n} x {r}" for r, n in self.limits.items()) or "a claim"
                    raise GpuConstructsError(
                        f"container {container!r} has {section} of {amount} x {resource} already, where {asked} is "
                        "asked for; leave one of the two out"
                    )
        limits.update(self.limits)
        made = {**given, **({"limits": limits} if limits else {})}
        if self.by_claims:
            only = {} if self.existing_claim else {"request": resource_claim.CLAIM}
            ours = {"name": resource_claim.CLAIM, **only}
            made["claims"] = _with_claim(given.get("claims") or (), ours, f"container {container!r}")
        return made

    def _add_claim(self, pod: dict[str, Any], template: str | None) -> None:
        source = (
            {"resourceClaimName": self.existing_claim}
            if self.existing_claim
            else {"resourceClaimTemplateName": template}
        )
        ours = {"name": resource_claim.CLAIM, **source}
        pod["resourceClaims"] = _with_claim(pod.get("resourceClaims") or (), ours, "the pod")

    def _name_runtime_class(self, pod: dict[str, Any]) -> None:
        if self.runtime_class is None:
            return
        there = pod.get("runtimeClassName")
        if there not in (None, self.runtime_class):
            raise GpuConstructsError(
                f"the pod has runtimeClassName {there!r} already, where runtime_class {self.runtime_class!r} is "
                f"asked for; leave one of the two out, or pass runtime_class={there!r}"
            )
        pod["runtimeClassName"] = self.runtime_class

    def _place(self, pod: dict[str, Any]) -> None:
        selector = dict(pod.get("nodeSelector") or {})
        for label, value in self.node_selector.items():
            if selector.setdefault(label, value) != value:
                raise GpuConstructsError(
                    f"the pod selects nodes with {label}={selector[label]}, where GPU pods need {label}={value}, so no "
                    "node would match; leave that label out of the pod's selector"
                )
        self._refuse_selecting_another_board(selector)
        if selector:
            pod["nodeSelector"] = selector
        tolerations = list(pod.get("tolerations") or ())
        tolerations += [one for one in self.tolerations if one not in tolerations]
        if tolerations:
            pod["tolerations"] = tolerations
        if self.node_terms:
            pod["affinity"] = placement.with_node_alternatives(pod.get("affinity"), self.node_terms)
            clash = placement.clash_of_terms(pod["affinity"])
            if clash:
                raise GpuConstructsError(
                    f"the pod's node affinity and its GPU request have no {clash} in common, so no node would match; "
                    "leave one of the two out"
                )

    def _refuse_selecting_another_board(self, selector: Mapping[str, str]) -> None:
        unmet = [[rule for rule in term if not _is_met(rule, selector)] for term in self.node_terms]
        if not unmet or not all(unmet):
            return
        label = unmet[0][0]["key"]
        wanted = " or ".join(
            dict.fromkeys(
                f"above {rule['values'][0]}" if rule["operator"] == "Gt" else " or ".join(sorted(rule["values"]))
                for rules in unmet
                for rule in rules
                if rule["key"] == label
            )
        )
        raise GpuConstructsError(
            f"the pod selects nodes with {label}={selector[label]}, where its GPU request wants {wanted}, so no node "
            "would match; leave one of the two out"
        )


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


def allocation(request: GpuRequest, profile: GpuProfile) -> GpuAllocation:
    """Give what a request means under a profile.

    Raises:
        GpuConstructsError: The cluster would refuse the request, or never meet it.
    """
    tolerations = placement.tolerations(profile.tolerations, (placement.GPU_TAINT,))
    if profile.backend.kind == "dra-claims":
        if request.resource is not None:
            raise GpuConstructsError(
                f"request.resource must be left out with the backend 'dra-claims', got {request.resource!r}; a claim "
                "names a DeviceClass: Backend.dra_claims(device_class=...)"
            )
        if profile.sharing is not None and profile.sharing.strategy != "none":
            raise GpuConstructsError(
                f"profile.sharing {profile.sharing.strategy!r} is the device plugin's; under the backend 'dra-claims' "
                "pods share one claim: make a GpuResourceClaim and pass it as GpuRequest(resource_claim=...)"
            )
        existing = None
        if request.resource_claim is not None:
            existing = _references.name_of("request.resource_claim", request.resource_claim, "ResourceClaim")
        return GpuAllocation(
            profile=profile,
            request=request,
            limits={},
            claim=None if existing else resource_claim.device_claim(request, profile.backend),
            existing_claim=existing,
            existing_claim_namespace=_namespace_of(request.resource_claim),
            runtime_class=profile.runtime_class_name,
            node_selector=profile.node_selector,
            tolerations=tolerations,
        )
    if request.resource_claim is not None:
        raise GpuConstructsError(f"request.resource_claim needs the backend 'dra-claims'; got {profile.backend.kind!r}")
    if profile.backend.is_dra and request.selects:
        wish = next(
            name for name in ("products", "min_vram", "min_compute_capability", "family") if getattr(request, name)
        )
        raise GpuConstructsError(
            f"request.{wish} must be left out with the backend {profile.backend.kind!r}, whose devices no node label "
            "tells; make a GpuDeviceClass of that request and ask for its extended_resource_name: "
            "GpuRequest(resource=...)"
        )
    resource = _resource(request, profile)
    sharing = profile.sharing
    is_refused = sharing is not None and sharing.fail_requests_greater_than_one and request.count > 1
    if is_refused and resource in _slots(profile):
        raise GpuConstructsError(
            f"request.count must be 1 where {resource} is shared with fail_requests_greater_than_one, got "
            f"{request.count}: slots are not GPUs, and several may be turns on the same one; ask for 1, or share with "
            "fail_requests_greater_than_one=False"
        )
    # Published by what the device plugin brings along; a DRA driver needs none of it.
    selector = {} if profile.backend.is_dra else profile.platform.gpu_node_selector
    return GpuAllocation(
        profile=profile,
        request=request,
        limits={resource: _amount(request, resource, profile)},
        node_terms=node_terms(request, profile) if request.selects else (),
        runtime_class=profile.runtime_class_name,
        node_selector={**selector, **profile.node_selector},
        tolerations=tolerations,
    )


def _amount(request: GpuRequest, resource: str, profile: GpuProfile) -> int:
    sharing = profile.sharing
    if sharing is None or sharing.vram_unit is None or resource not in _slots(profile):
        return request.count
    if profile.backend.is_dra:
        raise GpuConstructsError(
            "profile.sharing by vram_units is the device plugin's, and a DRA driver knows no slots; got the backend "
            f"{profile.backend.kind!r}; leave sharing out of the profile"
        )
    if profile.mig_strategy == "single":
        raise GpuConstructsError(
            "profile.mig_strategy must not be 'single' beside Sharing.vram_units, which counts one memory in each "
            "node; use 'mixed' where boards are divided"
        )
    if request.count != 1:
        raise GpuConstructsError(
            f"request.count must be 1 where {resource} is shared in units of {sharing.vram_unit}, got {request.count}: "
            "a pod gets the one GPU of its node, and as many units as vram says; pass GpuRequest(vram='8Gi') alone"
        )
    if request.vram is None:
        raise GpuConstructsError(
            f"request.vram is required where {resource} is shared in units of {sharing.vram_unit}, since it says how "
            "many are asked for; pass a GpuRequest(vram='8Gi')"
        )
    try:
        return sharing.units(request.vram)
    except GpuConstructsError as error:
        raise GpuConstructsError(f"request.{error.problem}") from None


def _namespace_of(claim: object) -> str | None:
    for holder in (claim, getattr(claim, "metadata", None)):
        found = getattr(holder, "namespace", None)
        if isinstance(found, str):
            return found
    return None


def _slots(profile: GpuProfile) -> set[str]:
    sharing = profile.sharing
    return set() if sharing is None else {sharing.resource_name(resource) for resource in sharing.resources}


def _resource(request: GpuRequest, profile: GpuProfile) -> str:
    if profile.backend.is_dra and request.resource is not None:
        return request.resource
    request.require_resource_of_device_plugin()
    wanted = request.resource or GPU
    if request.mig_profile is not None:
        if profile.mig_strategy == "none":
            raise GpuConstructsError(
                f"request.mig_profile {request.mig_profile!r} needs a profile with mig_strategy 'single' or 'mixed'; "
                "got 'none', under which the device plugin advertises whole GPUs only"
            )
        if profile.mig_strategy == "single" and not request.products:
            size = request.mig_size
            known = [repr(board) for board, profiles in MIG_PROFILES.items() if size in profiles]
            example = known[0] if known else "..."
            raise GpuConstructsError(
                f"request.mig_profile {request.mig_profile!r} needs request.products under mig_strategy 'single', "
                f"where {GPU!r} may be a device of any profile and the label of a node's board tells which; add "
                f"products=[{example}], or leave mig_profile out where all devices are alike"
            )
        wanted = GPU if profile.mig_strategy == "single" else mig_resource(request.mig_profile)
    if wanted.startswith("nvidia.com/mig-") and profile.mig_strategy in ("none", "single"):
        raise GpuConstructsError(
            f"request.resource {wanted!r} needs a profile with mig_strategy 'mixed'; got {profile.mig_strategy!r}, "
            f"under which the device plugin advertises {GPU!r} only; leave resource out"
        )
    sharing = profile.sharing
    if sharing is None:
        return wanted
    if request.resource is None:
        return sharing.resource_name(wanted)
    if wanted in sharing.resources and sharing.resource_name(wanted) != wanted:
        raise GpuConstructsError(
            f"request.resource {wanted!r} is advertised as {sharing.resource_name(wanted)!r}, since sharing has "
            "rename_by_default; leave resource out"
        )
    if wanted.endswith(".shared") and wanted not in _slots(profile):
        raise GpuConstructsError(
            f"request.resource {wanted!r} is advertised only by a sharing with rename_by_default; leave resource out, "
            f"or ask for {wanted.removesuffix('.shared')!r}"
        )
    return wanted


def node_terms(request: GpuRequest, profile: GpuProfile) -> list[list[dict[str, Any]]]:
    """Give the node selector terms that a request demands: one, but for a compute capability amid a major number."""
    rules = []
    if request.products:
        rules.append(placement.label_is("nvidia.com/gpu.product", *_product_labels(request, profile)))
    if request.families:
        rules.append(placement.label_is("nvidia.com/gpu.family", *request.families))
    if request.min_mib is not None:
        rules.append(placement.label_is_above("nvidia.com/gpu.memory", request.min_mib - 1))
    least = request.compute_capability
    if least is None:
        return [rules]
    major, minor = least
    above = placement.label_is_above("nvidia.com/gpu.compute.major", major)
    if minor == 0:
        return [[*rules, placement.label_is_above("nvidia.com/gpu.compute.major", major - 1)]]
    if least in FIRST_COMPUTE.values():
        families = [family for family, first in FIRST_COMPUTE.items() if first >= least]
        wanted = [family for family in families if not request.families or family in request.families]
        others = [rule for rule in rules if rule["key"] != "nvidia.com/gpu.family"]
        return [[*others, placement.label_is("nvidia.com/gpu.family", *wanted)]]
    # Terms are alternatives: a greater major number, or the same with a minor number that is enough.
    same = [
        placement.label_is("nvidia.com/gpu.compute.major", str(major)),
        placement.label_is_above("nvidia.com/gpu.compute.minor", minor - 1),
    ]
    return [[*rules, above], [*rules, *same]]


def _product_labels(request: GpuRequest, profile: GpuProfile) -> list[str]:
    labels = [product_label(product) for product in request.products]
    if request.mig_profile is not None and profile.mig_strategy == "single":
        # NVIDIA/k8s-device-plugin@v0.20.0:internal/resource/nvml-mig-device.go names a device with a dot for the plus.
        labels = [f"{label}-MIG-{request.mig_profile.replace('+', '.')}" for label in labels]
    elif profile.mig_strategy == "single" and any(map(_may_be_divided, request.products)):
        warn(
            "request.products without request.mig_profile selects whole boards alone: under mig_strategy 'single' a "
            "node in MIG mode is labelled <board>-MIG-<profile>; add mig_profile, or leave mig_strategy out of the "
            "profile where whole boards are meant"
        )
    # What a node advertises as shared without a name of its own has that in its product's.
    is_shared = GPU in _slots(profile)
    forms: list[str] = []
    for label in dict.fromkeys(labels):
        own = [form for form in (label, f"{label}-SHARED") if _fields.is_label_value(form)]
        if not own or (is_shared and len(own) < 2):
            missing = f"{label}-SHARED" if is_shared else label
            raise GpuConstructsError(
                f"request.products cannot select {missing!r}: nodes do not have the label, since its {len(missing)} "
                "characters are more than the 63 of a label value and Node Feature Discovery drops it; leave products "
                "out and select the nodes by a label of your own (profile.node_selector)"
            )
        forms += own
    return forms


def _may_be_divided(product: str) -> bool:
    board = known_board(product)
    # A label of a node in MIG mode is as good as a profile.
    return "-MIG-" not in product and (board is None or MIG_PROFILES.get(board.name) != ())


class ContainerMissingError(GpuConstructsError):
    """A pod has no container of the name, or none at all; one may be added later."""


def container_named(pod_spec: Mapping[str, Any], name: str | None) -> Mapping[str, Any]:
    """Give a container of a pod by name, or the first that is not there to prepare.

    Raises:
        ContainerMissingError: There is none of that name, or none at all.
    """
    main: list[Mapping[str, Any]] = list(pod_spec.get("containers") or ())
    # Of a KServe predictor, where the runtime brings the containers.
    server = model_server(pod_spec)
    if server is not None:
        main = [pod_spec[server], *main]
    if not main:
        raise ContainerMissingError("the pod has no container that could hold a GPU; add one")
    if name is None:
        return main[0]
    every = [*main, *(pod_spec.get("initContainers") or ())]
    found: Mapping[str, Any] | None = next((one for one in every if one.get("name") == name), None)
    if found is None:
        names = [str(container.get("name")) for container in every]
        raise ContainerMissingError(
            f"container must be one of {', '.join(map(repr, names))}; got {name!r}{_fields.did_you_mean(name, names)}"
        )
    return found


def _with_containers(
    pod_spec: Mapping[str, Any], changed: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> dict[str, Any]:
    pod = dict(pod_spec)
    for group in ("initContainers", "containers"):
        if pod.get(group):
            pod[group] = [changed(one) for one in pod[group]]
    server = model_server(pod)
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
    of_nvidia = (name for name in resources.get("limits") or {} if name.startswith("nvidia.com/"))
    claims = (claim.get("name") for claim in resources.get("claims") or ())
    return next(of_nvidia, None) is not None or resource_claim.CLAIM in claims
