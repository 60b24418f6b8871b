"""Objects that stand for the operator's Helm release: what a delivery emits, as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
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

Manifest = dict[str, Any]

FIRST_IN_NVIDIA_OCI = "26.7.0"
"""NVIDIA/gpu-operator#2520."""

_IN_CLUSTER = "https://kubernetes.default.svc"
_HELM_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_PRIVILEGED = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
_DRIFTS: Mapping[str, tuple[str, str]] = {
    "/spec/cdi/default": ("25.10", ""),
    "/spec/cdi/nriPluginEnabled": ("26.3", ""),
    "/spec/hostPaths/kubeletRootDir": ("26.7", ""),
    "/spec/operator/defaultRuntime": ("", "26.3"),
}
"""What the API server adds to the ClusterPolicy because the chart leaves it out: from which release, before which.

Read off the chart's own definition and what it renders with its defaults; the first and the last are
NVIDIA/gpu-operator#2795 and #1986.
"""


@dataclass(frozen=True, kw_only=True)
class Release:
    """A Helm release of the operator.

    Attributes:
        name: Name of the release.
        namespace: Namespace of the operator.
        chart_version: Release of the chart, with or without a leading v.
        values: Values that the chart is rendered with.
        labels: Labels of the objects that stand for it.
    """

    name: str
    namespace: str
    chart_version: str
    values: Mapping[str, Any]
    labels: Mapping[str, str]


def manifests(delivery: Made, release: Release) -> list[Manifest]:
    """Return the objects that a controller needs, the main one last.

    Raises:
        GpuConstructsError: A release name that Helm does not take, a release that the source does not have, a value
            of None.
    """
    check_release_name(release.name)
    where = f"delivery.{delivery.kind}"
    if delivery.kind == "values":
        return []
    for path in _nones("values", release.values):
        raise GpuConstructsError(
            f"{path} must not be None with {where}: a manifest drops it, and the chart's default would stay; state a "
            "value, or use Delivery.helm(...) or Delivery.values()"
        )
    version = _published(where, delivery.options, release.chart_version)
    return (_flux if delivery.kind == "flux" else _argo_cd)(delivery.options, release, version)


def namespaces_of_others(delivery: Made, namespace: str) -> tuple[str, ...]:
    """Return the namespaces that exist without the app: the controller's, and the operator's if Argo CD makes it."""
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
    """Return the release as the source writes it."""
    release = chart_version.removeprefix("v")
    if options["source"] == NVIDIA_OCI and versions.numbers(release) < versions.numbers(FIRST_IN_NVIDIA_OCI):
        raise GpuConstructsError(
            f"{where}.source must be {NVIDIA_REPOSITORY!r} for release {release}: NVIDIA has charts in its registry "
            f"from {FIRST_IN_NVIDIA_OCI} on; got {options['source']!r}"
        )
    return f"{options['version_prefix']}{release}"


def drifts_of(chart_version: str, values: Mapping[str, Any]) -> list[str]:
    """Return the fields that the API server fills into a release's ClusterPolicy, as JSON pointers.

    Those that the values switch on are left out: Argo CD would never apply a change to a field it ignores.
    """
    release = versions.numbers(chart_version)
    return sorted(
        pointer
        for pointer, (since, before) in _DRIFTS.items()
        if release >= versions.numbers(since)
        and (not before or release < versions.numbers(before))
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
