"""What both policies share: the API they need, the namespaces they hold in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from constructs import Construct

from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.catalog.versions import KUBERNETES_RELEASES
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.tree.manifest import Manifest

API_VERSION = "admissionregistration.k8s.io/v1"
NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""Set by the API server on every namespace, to its name."""


def require_kubernetes(kind: str, first: str, platform: Platform, way_out: str) -> None:
    """Raise if the Kubernetes of a platform does not serve a kind yet.

    Raises:
        GpuConstructsError: With the first release that does.
    """
    if KUBERNETES_RELEASES.index(platform.kubernetes) < KUBERNETES_RELEASES.index(first):
        raise GpuConstructsError(
            f"platform must have Kubernetes {first} or later, which serves {kind}; got {platform} with Kubernetes "
            f"{platform.kubernetes}; {way_out}"
        )


def emit_policy(
    owner: Construct, kind: str, name: str, spec: Callable[[], Mapping[str, Any]], bound: Mapping[str, Any]
) -> None:
    """Emit a policy and its binding.

    Args:
        owner: The construct that they belong to.
        kind: Kind of the policy.
        name: Name of both.
        spec: Returns the spec of the policy; called at synth, too.
        bound: Spec of the binding, without the name of the policy.
    """

    def policy() -> dict[str, Any]:
        return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec()}

    binding = {"apiVersion": API_VERSION, "kind": f"{kind}Binding", "metadata": {"name": name}}
    Manifest(owner, "Default", policy)
    Manifest(owner, "Binding", {**binding, "spec": {"policyName": name, **bound}})


def namespace_selector(
    only: Sequence[str] | None, excluded: Sequence[str], *, unless_label: str = ""
) -> dict[str, Any]:
    """Select namespaces by name: those named, or all but the excluded ones, less those labelled ``true``."""
    terms: list[dict[str, Any]] = []
    if only:
        terms.append({"key": NAMESPACE_NAME, "operator": "In", "values": list(only)})
    if excluded:
        terms.append({"key": NAMESPACE_NAME, "operator": "NotIn", "values": list(excluded)})
    if unless_label:
        terms.append({"key": unless_label, "operator": "NotIn", "values": ["true"]})
    return {"matchExpressions": terms}


def pods(*operations: str, resource: str = "pods") -> dict[str, Any]:
    """Return the rule that matches operations on pods, or on a part of them."""
    return {"apiGroups": [""], "apiVersions": ["v1"], "operations": list(operations), "resources": [resource]}
