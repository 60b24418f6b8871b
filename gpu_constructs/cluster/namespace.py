"""`GpuNamespace`: the namespace of GPU components or workloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from cdk8s import Chart
from constructs import Construct

from gpu_constructs.cluster.namespace_limits import Amounts, ContainerLimits, NamespaceQuota, namespace_quota
from gpu_constructs.errors import GpuConstructsError, refuse_if
from gpu_constructs.kube import fields, references
from gpu_constructs.tree.construct import GpuObject, checked
from gpu_constructs.tree.manifest import Manifest

DEFAULT_NAMESPACE = "nvidia-gpu-operator"

QUOTA_NAME = "namespace-quota"
LIMITS_NAME = "container-limits"

STATES_NO_NAMESPACE = "_gpu_constructs_states_no_namespace"
"""Attribute that marks a cdk8s Chart if neither the Chart nor a workload in it sets a namespace. ``synth`` then warns.
"""

PodSecurityLevel = Literal["privileged", "baseline", "restricted"]


class GpuNamespace(GpuObject):
    """A Namespace with an explicit Pod Security level, and with optional resource limits for its pods.

    Emits a Namespace with the labels ``pod-security.kubernetes.io/enforce``, ``audit`` and ``warn``. With
    ``resource_quota`` it also emits a ResourceQuota ``namespace-quota``, and with ``limit_range`` a LimitRange
    ``container-limits``.
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str = DEFAULT_NAMESPACE,
        pod_security: PodSecurityLevel = "privileged",
        labels: Mapping[str, str] | None = None,
        resource_quota: NamespaceQuota | Amounts | None = None,
        limit_range: ContainerLimits | None = None,
    ) -> None:
        """Create the namespace.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct.
            name: Name of the Namespace. ``nvidia-gpu-operator`` by default, the usual name for the NVIDIA GPU Operator.
            pod_security: Pod Security level for ``enforce``, ``audit`` and ``warn``. ``privileged`` by default, because
                the device plugin, GPU Feature Discovery and the exporter mount host paths. ``baseline`` forbids host
                paths. Talos enforces ``baseline`` on each namespace that sets no level.
            labels: Labels to add to the Namespace.
            resource_quota: Limit for all pods of the namespace together: a ``NamespaceQuota``, or a mapping with the
                keys of a ResourceQuota, for example ``{"requests.nvidia.com/gpu": 4}``. None, the default: no quota.
                With a quota on CPU or memory, Kubernetes rejects pods that do not set CPU or memory. In that case, also
                set a ``limit_range`` with defaults.
            limit_range: Limits for each container, and defaults for a container that sets no resources. None, the
                default: no LimitRange.

        Raises:
            GpuConstructsError: If the name is not a DNS label, if the Pod Security level is unknown, or if ``labels``
                contains a Pod Security label. Also raised if the key of an extended resource in
                ``resource_quota`` does not start with ``requests.``.

        Source:
            Kubernetes documentation, "Pod Security Admission"
        """
        fields.dns_label("name", name)
        fields.labels("labels", labels or {})
        levels = {f"pod-security.kubernetes.io/{mode}": pod_security for mode in ("enforce", "audit", "warn")}
        for key in labels or {}:
            refuse_if(key in levels, "labels", f"not contain {key!r}. Set pod_security instead")
        quota = namespace_quota(resource_quota)
        super().__init__(scope, id)
        self.name = name
        self.pod_security = pod_security
        Manifest(
            self,
            "Default",
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {
                    "name": name,
                    "labels": {
                        **(labels or {}),
                        **levels,
                    },
                },
            },
        )
        specs: dict[str, tuple[str, dict[str, Any]]] = {}
        if quota:
            specs["ResourceQuota"] = QUOTA_NAME, {"hard": quota.to_manifest()}
        if limit_range:
            specs["LimitRange"] = LIMITS_NAME, {"limits": [limit_range.to_manifest()]}
        for kind, (own_name, spec) in specs.items():
            metadata = {"name": own_name, "namespace": name}
            Manifest(self, kind, {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec})


def namespace_name(namespace: object) -> str:
    """Return the name of a namespace that the user passed as its name, a ``GpuNamespace`` or another Namespace object.

    Raises:
        GpuConstructsError: If the name is not a DNS label, or the object is not a Namespace.
    """
    if isinstance(namespace, str):
        fields.dns_label("namespace", namespace)
    if isinstance(namespace, GpuNamespace):
        return namespace.name
    return references.name_of("namespace", namespace, "Namespace")


def namespace_in(scope: Construct, given: object) -> str:
    """Return the name of a workload's namespace.

    If neither the workload nor its cdk8s Chart sets a namespace, return ``default``. ``synth`` then warns that the
    Chart sets no namespace.

    Args:
        scope: Chart, or a construct in a Chart, that contains the workload.
        given: Name or object of the namespace that the user sets for the workload. If None, the function uses the
            namespace of the Chart.

    Raises:
        GpuConstructsError: If the name is not a DNS label, or the object is not a Namespace.
    """
    if given is not None:
        return namespace_name(given)
    chart = scope if isinstance(scope, Chart) else Chart.of(scope)
    name = chart.namespace
    if not name:
        setattr(chart, STATES_NO_NAMESPACE, True)
    return name or "default"


def component_namespace(namespace: object, *, allow_default: bool = False) -> str:
    """Return the name of the namespace for a GPU component, such as the device plugin.

    Args:
        namespace: Name, or construct of the namespace.
        allow_default: Whether the component may run in the namespace ``default``.

    Raises:
        GpuConstructsError: If the name is not a DNS label, the object is not a Namespace, or the name is ``default``
            and ``allow_default`` is False.
    """
    name = namespace_name(namespace)
    if name == "default" and not allow_default:
        raise GpuConstructsError(
            "namespace must not be 'default', because GPU components need the Pod Security level privileged. Leave "
            f"it out for {DEFAULT_NAMESPACE!r} or use another namespace"
        )
    return name


def require_privileged(field: str, namespace: object, why: str) -> None:
    """Raise an error if the Pod Security level of a ``GpuNamespace`` rejects pods that mount host paths.

    Args:
        field: Name of the option in the message.
        namespace: Namespace, as a name or a construct. The function checks only a ``GpuNamespace``, because the level
            of other namespaces is unknown.
        why: Reason why the pods need host paths, for the message.

    Raises:
        GpuConstructsError: If the level is ``baseline`` or ``restricted``.
    """
    if isinstance(namespace, GpuNamespace) and namespace.pod_security != "privileged":
        raise GpuConstructsError(
            f"{field} must be privileged, because {why}, got GpuNamespace {namespace.name!r} with "
            f"pod_security={namespace.pod_security!r}. Set pod_security='privileged' for it"
        )
