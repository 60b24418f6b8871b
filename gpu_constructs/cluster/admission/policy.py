"""Functions that both admission policies use, for example for their bindings and namespace selectors.

``GpuRuntimeInjection`` sets the runtime class of GPU pods. ``DenyVisibleDevicesOverride`` denies pods that would see
GPUs that the kubelet did not allocate to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from constructs import Construct

from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.catalog.versions import KUBERNETES_RELEASES
from gpu_constructs.errors import GpuConstructsError, then
from gpu_constructs.tree.manifest import Manifest

API_VERSION = "admissionregistration.k8s.io/v1"
NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""Label that the API server sets on every namespace, with the name of the namespace as its value."""


def require_kubernetes(kind: str, first: str, platform: Platform, way_out: str) -> None:
    """Raise if the Kubernetes release of a platform does not serve a kind of admission policy.

    Args:
        kind: Kind of the policy for the message, for example ``ValidatingAdmissionPolicy``.
        first: First Kubernetes release that serves the kind.
        platform: Platform of the cluster.
        way_out: Sentence for the message that states what the user can do instead.

    Raises:
        GpuConstructsError: The release is older than ``first``.
    """
    if KUBERNETES_RELEASES.index(platform.kubernetes) < KUBERNETES_RELEASES.index(first):
        raise GpuConstructsError(
            f"platform must have Kubernetes {first} or later, which serves {kind}, got {platform} with Kubernetes "
            f"{platform.kubernetes}{then(way_out)}"
        )


def emit_policy(
    owner: Construct, kind: str, name: str, spec: Callable[[], Mapping[str, Any]], bound: Mapping[str, Any]
) -> None:
    """Emit an admission policy and its binding.

    Args:
        owner: Construct that contains the policy and its binding.
        kind: Kind of the policy, for example ``ValidatingAdmissionPolicy``.
        name: Name of the policy and its binding.
        spec: Function that returns the spec of the policy. The function runs during ``synth``, because the spec can
            depend on objects that the app adds later.
        bound: Fields of the spec of the binding besides ``policyName``, such as ``validationActions``.
    """

    def policy() -> dict[str, Any]:
        return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec()}

    binding = {"apiVersion": API_VERSION, "kind": f"{kind}Binding", "metadata": {"name": name}}
    Manifest(owner, "Default", policy)
    Manifest(owner, "Binding", {**binding, "spec": {"policyName": name, **bound}})


def namespace_selector(
    only: Sequence[str] | None, excluded: Sequence[str], *, unless_label: str = ""
) -> dict[str, Any]:
    """Return the label selector for the namespaces in which a policy applies.

    Args:
        only: Names of the namespaces. If None or empty, the selector matches all namespaces except ``excluded``.
        excluded: Names of namespaces that the selector never matches.
        unless_label: Key of a label. The selector does not match a namespace in which this label is ``true``. If empty,
            the selector checks no label.
    """
    terms: list[dict[str, Any]] = []
    if only:
        terms.append({"key": NAMESPACE_NAME, "operator": "In", "values": list(only)})
    if excluded:
        terms.append({"key": NAMESPACE_NAME, "operator": "NotIn", "values": list(excluded)})
    if unless_label:
        terms.append({"key": unless_label, "operator": "NotIn", "values": ["true"]})
    return {"matchExpressions": terms}


def pods(*operations: str, resource: str = "pods") -> dict[str, Any]:
    """Return a rule for the field ``resourceRules`` of an admission policy. The rule matches operations on pods.

    Args:
        operations: Operations, such as ``CREATE``.
        resource: ``pods``, or a subresource, such as ``pods/ephemeralcontainers``.
    """
    return {"apiGroups": [""], "apiVersions": ["v1"], "operations": list(operations), "resources": [resource]}
