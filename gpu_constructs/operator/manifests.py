"""The Flux or Argo CD objects that install the Helm chart of the GPU Operator.

A delivery is the method by which the chart reaches the cluster. ``Delivery`` describes the methods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from gpu_constructs.catalog import versions
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube.plain_data import at
from gpu_constructs.operator.delivery import (
    NVIDIA_OCI,
    NVIDIA_REPOSITORY,
    Made,
    check_release_name,
    flux_duration,
    is_oci,
)
from gpu_constructs.records import dataclass

Manifest = dict[str, Any]

FIRST_IN_NVIDIA_OCI = "26.7.0"
"""First release of the chart in the OCI registry of NVIDIA (NVIDIA/gpu-operator#2520)."""

_IN_CLUSTER = "https://kubernetes.default.svc"
_HELM_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_PRIVILEGED = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
_DRIFTS: Mapping[str, tuple[str, str]] = {
    "/spec/cdi/default": ("25.10", ""),
    "/spec/cdi/nriPluginEnabled": ("26.3", ""),
    "/spec/hostPaths/kubeletRootDir": ("26.7", ""),
    "/spec/operator/defaultRuntime": ("", "26.3"),
}
"""Fields that the API server adds to the ClusterPolicy, by JSON pointer, with the range of releases.

The range is the first release that has the field, and the first later release that does not have it. An empty text
means no limit.

The fields come from a comparison of the CRD of the chart with its output for the default values. For the first and the
last field, see NVIDIA/gpu-operator#2795 and #1986.
"""


@dataclass(frozen=True, kw_only=True)
class Release:
    """A Helm release of the GPU Operator.

    Attributes:
        name: Name of the Helm release.
        namespace: Namespace of the operator.
        chart_version: Version of the chart, with or without a leading v.
        values: Helm values for the chart.
        labels: Labels of the Flux or Argo CD objects.
    """

    name: str
    namespace: str
    chart_version: str
    values: Mapping[str, Any]
    labels: Mapping[str, str]


def manifests(delivery: Made, release: Release) -> list[Manifest]:
    """Return the objects with which Flux or Argo CD installs the Helm chart of the GPU Operator.

    The last item is the HelmRelease or the Application. The list is empty for ``Delivery.values()``.

    Raises:
        GpuConstructsError: Helm would reject the release name, NVIDIA's OCI registry does not contain this version of
            the chart, or one of the Helm values is None.
    """
    check_release_name(release.name)
    where = f"delivery.{delivery.kind}"
    if delivery.kind == "values":
        return []
    for path in _nones("values", release.values):
        raise GpuConstructsError(
            f"{path} must not be None with {where}, because a manifest drops null values and the default of the chart "
            "would stay. Set a value, or use Delivery.helm(...) or Delivery.values()"
        )
    version = _published(where, delivery.options, release.chart_version)
    return (_flux if delivery.kind == "flux" else _argo_cd)(delivery.options, release, version)


def namespaces_of_others(delivery: Made, namespace: str) -> tuple[str, ...]:
    """Return the namespaces that a delivery needs, but that the app does not create.

    For Argo CD, the result contains the namespace of the Application. If Argo CD creates the namespace of the operator,
    the result also contains that namespace. For Flux, the result contains the namespace of the Flux objects, unless
    they are in the namespace of the operator.
    """
    own = delivery.options.get("namespace") or namespace
    if delivery.kind == "argo_cd":
        return (own, namespace) if delivery.options["create_namespace"] else (own,)
    return (own,) if own != namespace else ()


def _flux(options: Mapping[str, Any], release: Release, version: str) -> list[Manifest]:
    own = options["namespace"] or release.namespace
    in_registry = is_oci(options["source"])
    source = {"kind": "OCIRepository" if in_registry else "HelmRepository", "name": release.name}
    metadata = {"name": release.name, "namespace": own, "labels": dict(release.labels)}
    repository = {
        "interval": _duration(options, "source_interval"),
        "url": options["source"],
        "secretRef": {"name": options["secret_ref"]} if options["secret_ref"] else None,
        "ref": _stated({"tag": version, "digest": options["digest"]}) if in_registry else None,
        "layerSelector": {"mediaType": _HELM_LAYER, "operation": "copy"} if in_registry else None,
    }
    chart = {"chart": options["chart"], "version": version, "sourceRef": source}
    crds = {"crds": options["crds"], "remediation": {"retries": options["retries"]}}
    elsewhere = release.namespace if own != release.namespace else None
    spec = {
        "interval": _duration(options, "interval"),
        "chartRef": source if in_registry else None,
        "chart": None if in_registry else {"spec": chart},
        "releaseName": release.name,
        "install": crds,
        "upgrade": crds,
        "driftDetection": {"mode": options["drift_detection"]},
        "values": release.values,
        "targetNamespace": elsewhere,
        "storageNamespace": elsewhere,
        "timeout": _duration(options, "timeout"),
        "serviceAccountName": options["service_account_name"],
        "dependsOn": [_dependency(one) for one in options["depends_on"]] or None,
        "suspend": options["suspend"] or None,
    }
    kinds = {
        "source.toolkit.fluxcd.io/v1": (source["kind"], repository),
        "helm.toolkit.fluxcd.io/v2": ("HelmRelease", spec),
    }
    return [
        deepcopy({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": _stated(content)})
        for version, (kind, content) in kinds.items()
    ]


def _argo_cd(options: Mapping[str, Any], release: Release, version: str) -> list[Manifest]:
    repository, chart, creates = options["source"], options["chart"], options["create_namespace"]
    if is_oci(repository):
        repository, _, chart = repository.removeprefix("oci://").rpartition("/")
    cluster, automated, deletion = options["destination_name"], options["automated"], options["deletion"]
    destination = {"name": cluster} if cluster is not None else {"server": options["destination_server"] or _IN_CLUSTER}
    metadata = {
        "name": options["name"] or release.name,
        "namespace": options["namespace"],
        "labels": release.labels,
        "annotations": {"argocd.argoproj.io/compare-options": "ServerSideDiff=true"},
        "finalizers": None if deletion == "orphan" else [f"resources-finalizer.argocd.argoproj.io/{deletion}"],
    }
    sync = {
        "syncOptions": [
            *(["CreateNamespace=true"] if creates else []),
            "ServerSideApply=true",
            *options["sync_options"],
        ],
        "retry": {"limit": options["retries"]},
        "automated": None
        if automated is None
        else {"prune": "prune" in automated, "selfHeal": "self-heal" in automated},
        "managedNamespaceMetadata": {"labels": _PRIVILEGED} if creates else None,
    }
    drifts = drifts_of(release.chart_version, release.values)
    spec = {
        "project": options["project"],
        "source": {
            "repoURL": repository,
            "chart": chart,
            "targetRevision": version,
            "helm": {"releaseName": release.name, "valuesObject": release.values},
        },
        "destination": {**destination, "namespace": release.namespace},
        "syncPolicy": _stated(sync),
        "ignoreDifferences": [{"group": "nvidia.com", "kind": "ClusterPolicy", "jsonPointers": drifts}],
    }
    head = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
    return [deepcopy({**head, "metadata": _stated(metadata), "spec": spec})]


def _stated(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if value is not None}


def _duration(options: Mapping[str, Any], member: str) -> str | None:
    return None if options[member] is None else flux_duration(f"delivery.flux.{member}", options[member])


def _dependency(release: str) -> dict[str, str]:
    namespace, _, name = release.rpartition("/")
    return {"name": name, **({"namespace": namespace} if namespace else {})}


def _published(where: str, options: Mapping[str, Any], chart_version: str) -> str:
    """Return the version of the chart as the Helm repository or registry writes it, such as ``v26.7.0``.

    Args:
        where: Method of ``Delivery`` that the user called, such as ``delivery.flux``, for messages.
        options: Arguments of that call, by keyword.
        chart_version: Version of the chart, with or without a leading v.

    Raises:
        GpuConstructsError: The source is the OCI registry of NVIDIA, which does not contain this version.
    """
    release = chart_version.removeprefix("v")
    if options["source"] == NVIDIA_OCI and versions.comparable(release) < versions.comparable(FIRST_IN_NVIDIA_OCI):
        raise GpuConstructsError(
            f"{where}.source must be {NVIDIA_REPOSITORY!r} for release {release}, got {options['source']!r}: the "
            f"registry of NVIDIA contains charts from {FIRST_IN_NVIDIA_OCI} on only"
        )
    return f"{options['version_prefix']}{release}"


def drifts_of(chart_version: str, values: Mapping[str, Any]) -> list[str]:
    """Return JSON pointers of the fields that the API server adds to the ClusterPolicy of a GPU Operator release.

    Argo CD must ignore these fields when it compares objects. The list omits fields that the Helm values set, because
    Argo CD does not apply changes of a field that it ignores.
    """
    release = versions.comparable(chart_version)
    return sorted(
        pointer
        for pointer, (since, before) in _DRIFTS.items()
        if release >= versions.comparable(since)
        and (not before or release < versions.comparable(before))
        and not at(values, pointer.removeprefix("/spec/").split("/"))
    )


def _nones(path: str, value: Any) -> Iterator[str]:
    if value is None:
        yield path
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _nones(f"{path}.{key}", item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _nones(f"{path}[{index}]", item)
