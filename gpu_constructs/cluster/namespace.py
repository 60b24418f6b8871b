"""The namespace that GPU components or workloads live in."""

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
"""On a Chart: neither it nor a workload in it states a namespace."""

PodSecurityLevel = Literal["privileged", "baseline", "restricted"]


class GpuNamespace(GpuObject):
    """A Namespace with its Pod Security level stated, and what its pods may take.

    Emits one Namespace with the labels ``pod-security.kubernetes.io/enforce``, ``audit`` and ``warn``; with
    ``resource_quota`` a ResourceQuota ``namespace-quota`` in it, with ``limit_range`` a LimitRange
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
        """Make the namespace.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            name: Name of the Namespace; by default the one NVIDIA's operator users know.
            pod_security: Pod Security Standards level, set for enforce, audit and warn. ``privileged`` by
                default, since plugin, discovery and exporter mount host paths, which ``baseline`` forbids,
                and Talos enforces ``baseline`` on every namespace that says nothing.
            labels: Further labels.
            resource_quota: The most that all its pods may hold together; a mapping holds Kubernetes' own keys,
                as ``{"requests.nvidia.com/gpu": 4}``. None: no quota. One on cpu or memory makes every pod state
                them, so give ``limit_range`` with defaults beside it.
            limit_range: The most that each container may take, and what one that says nothing gets. None: no
                limits.

        Raises:
            GpuConstructsError: The name is not a DNS label, the level unknown, a label restates the level, or a quota
                key is one that Kubernetes does not count.

        Source:
            Kubernetes documentation, "Pod Security Admission"
        """
        fields.dns_label("name", name)
        fields.labels("labels", labels or {})
        levels = {f"pod-security.kubernetes.io/{mode}": pod_security for mode in ("enforce", "audit", "warn")}
        for key in labels or {}:
            refuse_if(key in levels, "labels", f"not hold {key!r}; set pod_security instead")
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
    """Return the name of a namespace handed over as text or as an object.

    Raises:
        GpuConstructsError: It is not a DNS label, or no namespace at all.
    """
    if isinstance(namespace, str):
        fields.dns_label("namespace", namespace)
    if isinstance(namespace, GpuNamespace):
        return namespace.name
    return references.name_of("namespace", namespace, "Namespace")


def namespace_in(scope: Construct, given: object) -> str:
    """Return the name of a workload's namespace: the one given, else its chart's, else ``default``.

    A chart whose workloads go to ``default`` because nothing states a namespace is remembered: ``synth`` warns of it.

    Raises:
        GpuConstructsError: It is not a DNS label, or no namespace at all.
    """
    if given is not None:
        return namespace_name(given)
    chart = scope if isinstance(scope, Chart) else Chart.of(scope)
    name = chart.namespace
    if not name:
        setattr(chart, STATES_NO_NAMESPACE, True)
    return name or "default"


def component_namespace(namespace: object, *, allow_default: bool = False) -> str:
    """Return the name of the namespace that a GPU component was told to live in.

    Raises:
        GpuConstructsError: It is ``default`` without leave, no DNS label, or no namespace at all.
    """
    name = namespace_name(namespace)
    if name == "default" and not allow_default:
        raise GpuConstructsError(
            "namespace must not be 'default': GPU components need a namespace whose Pod Security level is "
            f"privileged; leave it out for {DEFAULT_NAMESPACE!r} or name one of your own"
        )
    return name


def require_privileged(field: str, namespace: object, why: str) -> None:
    """Raise if the Pod Security level of a ``GpuNamespace`` refuses pods with host paths.

    Raises:
        GpuConstructsError: Its level is ``baseline`` or ``restricted``.
    """
    if isinstance(namespace, GpuNamespace) and namespace.pod_security != "privileged":
        raise GpuConstructsError(
            f"{field} must be privileged, since {why}; got GpuNamespace {namespace.name!r} with "
            f"pod_security={namespace.pod_security!r}; pass pod_security='privileged' there"
        )
