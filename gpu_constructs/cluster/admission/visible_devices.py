"""`DenyVisibleDevicesOverride`: a policy against pods that use GPUs that the kubelet did not allocate to them."""

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
"""Key of a namespace label. If its value is ``true``, the policy does not apply to the pods in the namespace.

Pods that must see every GPU, for example a metrics exporter, can then set ``NVIDIA_VISIBLE_DEVICES``.
"""

RUNTIME_CLASSES = ("nvidia", "nvidia-cdi", "nvidia-legacy")
"""Names of the RuntimeClasses that select the NVIDIA runtime (NVIDIA/gpu-operator@v26.7.0:assets/pre-requisites)."""

ValidationAction = Literal["Deny", "Warn", "Audit"]


class DenyVisibleDevicesOverride(GpuObject):
    """An admission policy that denies pods that would see GPUs beyond those allocated to them.

    The device plugin sets the environment variable NVIDIA_VISIBLE_DEVICES to the GPUs of a container. If the pod also
    sets this variable, the value in the pod overrides the value of the device plugin.

    Emits a ValidatingAdmissionPolicy and its binding. The policy exempts namespaces with the label
    ``gpu-constructs/allow-visible-devices=true``. Users who may label namespaces can therefore bypass the policy.

    Attributes:
        name: Name of the policy and its binding.
        provides: Settings of the policy, by which ``synth`` finds the pods of the app that the policy would deny. Empty
            without the action ``Deny``.
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
        """Create the policy.

        Args:
            scope: Chart, or a construct in one.
            id: Construct ID.
            platform: Platform of the cluster. Its Kubernetes release must be 1.30 or later.
            name: Name of the policy and its binding.
            runtime_class: Name or object of a RuntimeClass that selects the NVIDIA runtime, or a list of such
                RuntimeClasses. The default is ``nvidia``, ``nvidia-cdi`` and ``nvidia-legacy``, as in the GPU Operator.
            require_gpu_request: Whether to deny a pod with such a runtime class if no container has a limit on a GPU
                resource. CUDA images set NVIDIA_VISIBLE_DEVICES=all, so a pod without a GPU limit sees every GPU of its
                node. If the app contains a device plugin, only the resources that this device plugin advertises count
                as GPU resources. Otherwise, all NVIDIA GPU resources count.

                If True, the policy also denies a pod that has such a runtime class and sets ``nodeName``. On a node
                without GPU resources, the kubelet starts this pod and ignores its GPU request.
            deny_env_from: Whether to deny containers with ``envFrom`` in pods with such a runtime class. The ConfigMap
                or Secret can set NVIDIA_VISIBLE_DEVICES, and a policy cannot read these objects. The policy accepts
                a container that sets this variable in ``env``. False by default, because many images take their
                configuration from ``envFrom``.
            excluded_namespaces: Names or ``GpuNamespace`` objects of namespaces that the policy exempts. The default is
                ``kube-system`` and ``nvidia-gpu-operator``. The device plugin, which runs in ``nvidia-gpu-operator``,
                must see every GPU.
            validation_actions: Actions of the API server for a pod that breaks the policy. ``Deny`` rejects the pod,
                ``Warn`` warns the client, and ``Audit`` writes to the audit log.

        Raises:
            GpuConstructsError: If the platform does not serve the policy, or if a name is invalid. Also raised if
                ``validation_actions`` is empty, repeats an action, or contains both ``Deny`` and ``Warn``, which
                Kubernetes rejects.

        Source: NVIDIA/nvidia-container-toolkit@v1.20.0:internal/config/image,
        kubernetes/kubernetes:pkg/kubelet/kubelet_pods.go (variables of the device plugin come before those of the pod),
        kubernetes/kubernetes:pkg/kubelet/lifecycle/predicate.go, removeMissingExtendedResources
        """
        fields.dns_subdomain("name", name)
        given = runtime_class if isinstance(runtime_class, list | tuple) else [runtime_class]
        classes = tuple(references.name_of("runtime_class", each, "RuntimeClass") for each in given)
        if not classes:
            raise GpuConstructsError(
                "runtime_class must name at least one class, got []. Leave it out to use the default"
            )
        # kubernetes/enhancements, KEP-3488: stable in 1.30.
        require_kubernetes("ValidatingAdmissionPolicy", "1.30", platform, "Leave out this policy")
        excluded = [namespace_name(each) for each in excluded_namespaces]
        actions = list(validation_actions)
        if not actions or len(set(actions)) < len(actions) or {"Deny", "Warn"} <= set(actions):
            raise GpuConstructsError(
                "validation_actions must contain at least one action, each once, and not both Deny and Warn, "
                f"got {actions!r}. Use ['Deny', 'Audit'] to reject and log"
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
    """Return the names of the GPU resources that the device plugins of the app advertise.

    If the app has no device plugin, return ``GPU_RESOURCES``, which matches all NVIDIA GPU resources.
    """
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
            f"{cel.VISIBLE_DEVICES} must be left out, or be void or none, because it overrides the allocated GPUs",
        ),
        (
            resources,
            cel.asks_if_it_uses(classes, resources),
            f"runtimeClassName {listed} needs a container with a GPU, because otherwise the image determines the "
            "visible GPUs",
        ),
        (
            resources,
            cel.is_scheduled_if_it_uses(classes),
            f"nodeName must be left out with runtimeClassName {listed}, because the kubelet may drop the GPU request",
        ),
        (
            deny_env_from,
            cel.takes_no_environment_unseen(classes),
            f"envFrom can set {cel.VISIBLE_DEVICES}. With runtimeClassName {listed}, use env instead",
        ),
    )
    way_out = f". If the pods of a namespace must see every GPU, set its label {ALLOW_LABEL}=true"
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
        # If the policy fails, it must reject pods. The API server runs the policy, so it depends on no webhook.
        "failurePolicy": "Fail",
    }
