"""Keeps pods from taking GPUs that nobody allocated to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from constructs import Construct

from gpu_constructs import _fields, _references
from gpu_constructs._construct import GpuObject, checked
from gpu_constructs._manifest import Manifest
from gpu_constructs._references import NamedObject
from gpu_constructs.admission import cel
from gpu_constructs.admission.policy import API_VERSION, namespace_selector, pods, require_kubernetes
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.namespace import DEFAULT_NAMESPACE, namespace_name
from gpu_constructs.platforms import DEFAULT_PLATFORM, Platform
from gpu_constructs.provided import DeviceGuard, Provided

ALLOW_LABEL = "gpu-constructs/allow-visible-devices"
"""A namespace with this label set to ``true`` is left alone: for exporters and agents that see every GPU."""

ValidationAction = Literal["Deny", "Warn", "Audit"]

# kubernetes/enhancements, KEP-3488: stable in 1.30.
_FIRST_KUBERNETES = "1.30"


class DenyVisibleDevicesOverride(GpuObject):
    """Refuses pods that would see GPUs beyond those allocated to them.

    The device plugin says by NVIDIA_VISIBLE_DEVICES which GPUs a container gets, and a value in the pod is
    stronger. Emits a ValidatingAdmissionPolicy and its binding. A namespace labelled
    ``gpu-constructs/allow-visible-devices=true`` is left alone; whoever may label namespaces may lift the policy.

    Attributes:
        name: Of the policy and its binding.
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
        runtime_class: str | NamedObject = "nvidia",
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
            runtime_class: Name or object of the class that leads to the NVIDIA runtime.
            require_gpu_request: Refuse a pod with that runtime class of which no container asks for a GPU. CUDA
                images bring NVIDIA_VISIBLE_DEVICES=all themselves, so such a pod sees every GPU of its node
                without a word in its manifest.
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
            kubernetes/kubernetes:pkg/kubelet/kubelet_pods.go (the plugin's variables come before the pod's)
        """
        _fields.dns_subdomain("name", name)
        runtime = _references.name_of("runtime_class", runtime_class, "RuntimeClass")
        way_out = "leave this policy out there"
        require_kubernetes("ValidatingAdmissionPolicy", _FIRST_KUBERNETES, platform, way_out)
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
            runtime_class=runtime,
            requires_gpu=require_gpu_request,
            forbids_env_from=deny_env_from,
            excluded_namespaces=tuple(excluded),
            allow_label=ALLOW_LABEL,
        )
        self.provides = Provided(device_guard=guard if "Deny" in actions else None)
        metadata = {"name": name}
        spec = _spec(runtime, require_gpu_request=require_gpu_request, deny_env_from=deny_env_from)
        bound = {
            "policyName": name,
            "validationActions": actions,
            "matchResources": {"namespaceSelector": namespace_selector(None, excluded, unless_label=ALLOW_LABEL)},
        }
        kind = "ValidatingAdmissionPolicy"
        Manifest(self, "Default", {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec})
        binding = {"apiVersion": API_VERSION, "kind": f"{kind}Binding", "metadata": metadata, "spec": bound}
        Manifest(self, "Binding", binding)


def _spec(runtime_class: str, *, require_gpu_request: bool, deny_env_from: bool) -> dict[str, Any]:
    rules = [
        (
            cel.KEEPS_ALLOCATED_DEVICES,
            f"{cel.VISIBLE_DEVICES} must be left out, or be void or none: it overrides the GPUs that were allocated",
        )
    ]
    if require_gpu_request:
        message = f"runtimeClassName {runtime_class} needs a container with a GPU: else the image decides which it sees"
        rules.append((cel.asks_if_it_uses(runtime_class), message))
    if deny_env_from:
        message = f"envFrom can bring {cel.VISIBLE_DEVICES}; with runtimeClassName {runtime_class} write env instead"
        rules.append((cel.takes_no_environment_unseen(runtime_class), message))
    way_out = f"; for a namespace whose pods must see every GPU set its label {ALLOW_LABEL}=true"
    return {
        "matchConstraints": {
            "resourceRules": [pods("CREATE"), pods("UPDATE", resource="pods/ephemeralcontainers")],
        },
        "variables": [{"name": "containers", "expression": cel.CONTAINERS}],
        "validations": [
            {"expression": expression, "message": message + way_out, "reason": "Forbidden"}
            for expression, message in rules
        ],
        # A guard that lets pods through when it breaks is none; it runs in the API server, with no webhook to miss.
        "failurePolicy": "Fail",
    }
