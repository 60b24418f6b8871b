"""Keeps pods from taking GPUs that nobody allocated to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, cast

from constructs import Construct

from gpu_constructs.catalog.platforms import DEFAULT_PLATFORM, Platform
from gpu_constructs.cluster.admission import cel
from gpu_constructs.cluster.admission.policy import emit_policy, namespace_selector, pods, require_kubernetes
from gpu_constructs.cluster.namespace import DEFAULT_NAMESPACE, namespace_name
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.facts.provided import DeviceGuard, Provided, Provider
from gpu_constructs.kube import fields, references
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.tree.construct import GpuObject, checked

ALLOW_LABEL = "gpu-constructs/allow-visible-devices"
"""A namespace with this label set to ``true`` is left alone: for exporters and agents that see every GPU."""

RUNTIME_CLASSES = ("nvidia", "nvidia-cdi", "nvidia-legacy")
"""The classes that lead to the NVIDIA runtime (NVIDIA/gpu-operator@v26.7.0:assets/pre-requisites)."""

ValidationAction = Literal["Deny", "Warn", "Audit"]


class DenyVisibleDevicesOverride(GpuObject):
    """An admission policy that denies pods that would see GPUs beyond those allocated to them.

    The device plugin says by NVIDIA_VISIBLE_DEVICES which GPUs a container gets, and a value in the pod is
    stronger. Emits a ValidatingAdmissionPolicy and its binding. A namespace labelled
    ``gpu-constructs/allow-visible-devices=true`` is left alone; whoever may label namespaces may lift the policy.

    Attributes:
        name: Name of the policy and its binding.
        provides: Which pods it refuses: ``synth`` looks for such in the app.
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        platform: Platform = DEFAULT_PLATFORM,
        name: str = "deny-visible-devices-override",
        runtime_class: str | NamedObject | Sequence[str | NamedObject] = RUNTIME_CLASSES,
        require_gpu_request: bool = True,
        deny_env_from: bool = False,
        excluded_namespaces: Sequence[str | NamedObject] = ("kube-system", DEFAULT_NAMESPACE),
        validation_actions: Sequence[ValidationAction] = ("Deny", "Audit"),
    ) -> None:
        """Make the policy.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            platform: The cluster; it must serve the policy.
            name: Of the policy and its binding.
            runtime_class: Name or object of the class that leads to the NVIDIA runtime, or a list of them. By default
                ``nvidia`` and the further classes of the GPU Operator, ``nvidia-cdi`` and ``nvidia-legacy``.
            require_gpu_request: Refuse a pod with such a runtime class if no container asks for a GPU resource that
                the app's device plugin advertises, or any of NVIDIA's if the app has none. CUDA images set
                NVIDIA_VISIBLE_DEVICES=all themselves, so such a pod sees every GPU of its node and its manifest
                does not show it. Refuse also a pod with such a class that names its node: the kubelet drops a
                request for an extended resource that its node does not have, and starts the pod.
            deny_env_from: Refuse ``envFrom`` in pods with that runtime class, in containers that do not set the
                variable themselves: a policy cannot read the ConfigMap or Secret. Many images are configured so.
            excluded_namespaces: Names or ``GpuNamespace`` objects to leave alone; by default the system's and the
                plugin's, whose pods have to see every GPU.
            validation_actions: ``Deny`` refuses, ``Warn`` tells the client, ``Audit`` writes to the audit log.

        Raises:
            GpuConstructsError: The platform serves no such policy, a name is none, or the actions are none, twice
                the same, or Deny beside Warn, which Kubernetes refuses.

        Source:
            NVIDIA/nvidia-container-toolkit@v1.20.0:internal/config/image,
            kubernetes/kubernetes:pkg/kubelet/kubelet_pods.go (the plugin's variables come before the pod's),
            kubernetes/kubernetes:pkg/kubelet/lifecycle/predicate.go, removeMissingExtendedResources
        """
        fields.dns_subdomain("name", name)
        given = runtime_class if isinstance(runtime_class, list | tuple) else [runtime_class]
        classes = tuple(references.name_of("runtime_class", each, "RuntimeClass") for each in given)
        if not classes:
            raise GpuConstructsError("runtime_class must name at least one class; got []; leave it out for the default")
        # kubernetes/enhancements, KEP-3488: stable in 1.30.
        require_kubernetes("ValidatingAdmissionPolicy", "1.30", platform, "leave this policy out there")
        excluded = [namespace_name(each) for each in excluded_namespaces]
        actions = list(validation_actions)
        if not actions or len(set(actions)) < len(actions) or {"Deny", "Warn"} <= set(actions):
            raise GpuConstructsError(
                "validation_actions must hold at least one action, each once, and not Deny beside Warn; "
                f"got {actions!r}; ['Deny', 'Audit'] refuses and logs"
            )
        super().__init__(scope, id)
        self.name = name
        guard = DeviceGuard(
            variable=cel.VISIBLE_DEVICES,
            harmless_values=cel.HARMLESS_DEVICES,
            runtime_classes=classes,
            requires_gpu=require_gpu_request,
            forbids_env_from=deny_env_from,
            excluded_namespaces=tuple(excluded),
            allow_label=ALLOW_LABEL,
        )
        self.provides = Provided(device_guard=guard if "Deny" in actions else None)

        def spec() -> dict[str, Any]:
            resources = _advertised(cast(Construct, self.node.root)) if require_gpu_request else ()
            return _spec(classes, resources, deny_env_from=deny_env_from)

        selector = namespace_selector(None, excluded, unless_label=ALLOW_LABEL)
        bound = {"validationActions": actions, "matchResources": {"namespaceSelector": selector}}
        emit_policy(self, "ValidatingAdmissionPolicy", name, spec, bound)


def _advertised(app: Construct) -> Sequence[str]:
    """Return the GPU resources of the app's device plugins, or all of NVIDIA's if the app has none."""
    names = {
        name
        for construct in app.node.find_all()
        if isinstance(construct, Provider)
        for name in construct.provides.gpu_resources
    }
    return sorted(names) or cel.GPU_RESOURCES


def _spec(classes: Sequence[str], resources: Sequence[str], *, deny_env_from: bool) -> dict[str, Any]:
    *others, last = classes
    listed = f"{', '.join(others)} or {last}" if others else last
    rules = (
        (
            True,
            cel.KEEPS_ALLOCATED_DEVICES,
            f"{cel.VISIBLE_DEVICES} must be left out, or be void or none: it overrides the GPUs that were allocated",
        ),
        (
            resources,
            cel.asks_if_it_uses(classes, resources),
            f"runtimeClassName {listed} needs a container with a GPU: otherwise the image decides which it sees",
        ),
        (
            resources,
            cel.is_scheduled_if_it_uses(classes),
            f"nodeName must be left out with runtimeClassName {listed}: the kubelet may drop the GPU request",
        ),
        (
            deny_env_from,
            cel.takes_no_environment_unseen(classes),
            f"envFrom can bring {cel.VISIBLE_DEVICES}; with runtimeClassName {listed} write env instead",
        ),
    )
    way_out = f"; for a namespace whose pods must see every GPU set its label {ALLOW_LABEL}=true"
    return {
        "matchConstraints": {
            "resourceRules": [pods("CREATE"), pods("UPDATE", resource="pods/ephemeralcontainers")],
        },
        "variables": [{"name": "containers", "expression": cel.CONTAINERS}],
        "validations": [
            {"expression": expression, "message": message + way_out, "reason": "Forbidden"}
            for holds, expression, message in rules
            if holds
        ],
        # A guard that lets pods through when it breaks is none; it runs in the API server, with no webhook to miss.
        "failurePolicy": "Fail",
    }
