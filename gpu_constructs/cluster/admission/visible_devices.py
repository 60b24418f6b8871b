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
"""Label that exempts a namespace if its value is ``true``. Exporters and agents in it can then see every GPU."""

RUNTIME_CLASSES = ("nvidia", "nvidia-cdi", "nvidia-legacy")
"""Runtime classes that select the NVIDIA runtime (NVIDIA/gpu-operator@v26.7.0:assets/pre-requisites)."""

ValidationAction = Literal["Deny", "Warn", "Audit"]


class DenyVisibleDevicesOverride(GpuObject):
    """An admission policy that denies pods that would see GPUs beyond those allocated to them.

    The device plugin sets NVIDIA_VISIBLE_DEVICES to the GPUs of a container, but a value in the pod overrides it. Emits
    a ValidatingAdmissionPolicy and its binding. The policy exempts namespaces with the label
    ``gpu-constructs/allow-visible-devices=true``. Users who may label namespaces can therefore bypass the policy.

    Attributes:
        name: Name of the policy and its binding.
        provides: What the policy denies, as data, so that ``synth`` can report pods of the app that it would deny.
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
            platform: Platform of the cluster, which must serve the policy.
            name: Name of the policy and its binding.
            runtime_class: Name or object of the RuntimeClass that selects the NVIDIA runtime, or a list of them. By
                default ``nvidia`` and the other classes of the GPU Operator, ``nvidia-cdi`` and ``nvidia-legacy``.
            require_gpu_request: Whether to deny a pod with such a runtime class if no container requests a GPU
                resource. The policy accepts the GPU resources that the device plugin of the app advertises. Without a
                device plugin in the app, it accepts all NVIDIA GPU resources. CUDA images set
                NVIDIA_VISIBLE_DEVICES=all, so a pod without a request sees every GPU of its node, and its manifest does
                not show this. The policy then also denies a pod with such a class that sets ``nodeName``: the kubelet
                drops a request for an extended resource that its node does not have, and starts the pod.
            deny_env_from: Whether to deny ``envFrom`` in pods with such a runtime class, in containers that do not set
                NVIDIA_VISIBLE_DEVICES themselves. A policy cannot read the ConfigMap or Secret. False by default,
                because many images take their configuration this way.
            excluded_namespaces: Names or ``GpuNamespace`` objects of namespaces that the policy exempts. By default
                those of the system and of the device plugin, whose pods must see every GPU.
            validation_actions: Actions for a pod that breaks the policy. ``Deny`` rejects it, ``Warn`` warns the
                client, and ``Audit`` writes to the audit log.

        Raises:
            GpuConstructsError: If the platform does not serve the policy, if a name is invalid, or if the actions are
                empty, repeat an action, or combine Deny and Warn, which Kubernetes rejects.

        Source: NVIDIA/nvidia-container-toolkit@v1.20.0:internal/config/image,
        kubernetes/kubernetes:pkg/kubelet/kubelet_pods.go (the plugin's variables come before the pod's),
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
    """Return the GPU resources of the app's device plugins, or all NVIDIA GPU resources if the app has no plugin."""
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
