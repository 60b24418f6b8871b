"""Effects on the cluster of three kinds of objects: ClusterPolicy, HelmRelease (Flux) and Application (Argo CD)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from gpu_constructs.catalog import versions
from gpu_constructs.catalog.platforms import Kubernetes
from gpu_constructs.cli.seen.agents import EXPORTER, GFD, of_nfd_files
from gpu_constructs.cli.seen.files import Files
from gpu_constructs.cli.seen.plugin_configs import configs_of, of_configs, of_version
from gpu_constructs.device_plugin.chart_values import chart_options
from gpu_constructs.device_plugin.configs import Configs
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.facts.helm_releases import APPLICATION, HELM_RELEASE, Release, releases
from gpu_constructs.facts.provided import Provided
from gpu_constructs.facts.readable import (
    Manifest,
    annotations_of,
    at,
    kind_of,
    labels_of,
    mapping,
    members,
    namespace_of,
)
from gpu_constructs.kube import plain_data
from gpu_constructs.operator import advertising

_CONFIG = "devicePlugin.config"


def of_policy(manifest: Manifest, files: Files) -> Provided:
    """Return a declaration of the effects of a ClusterPolicy of the GPU Operator on the cluster.

    The declaration does not include the effects of Node Feature Discovery, because a ClusterPolicy does not install it.

    Args:
        manifest: ClusterPolicy. Its spec has the keys of the Helm values of the GPU Operator.
        files: Manifests with the ConfigMaps.
    """
    values = {**mapping(manifest.get("spec")), "nfd": {"enabled": False}}
    wanted = at(values, _CONFIG).get("name")
    homes = {namespace_of(one) for one in files.objects if kind_of(one) == ("", "ConfigMap")}
    home = next((one for one in sorted(homes) if files.of_map(one, wanted) is not None), "")
    found = _of_operator(values, labels_of(manifest).get("app.kubernetes.io/version"), home, files)
    return replace(found, privileged_namespaces=())


def of_releases(manifest: Manifest, files: Files) -> Iterator[Provided]:
    """Yield what a HelmRelease of Flux or an Application of Argo CD provides in the cluster, such as a device plugin.

    Args:
        manifest: Object of any kind. If it is neither a HelmRelease nor an Application, yield nothing.
        files: Manifests with the ConfigMaps and the other objects to which the HelmRelease or Application refers.
    """
    if kind_of(manifest) in (HELM_RELEASE, APPLICATION):
        yield Provided(namespaces=_namespaces(manifest))
        for release in releases(manifest, files.named):
            effect = _BY_CHART.get(release.chart)
            if effect is not None and not _is_among(release, files):
                version = _version(manifest, release)
                yield effect if isinstance(effect, Provided) else effect(release, version, files)


def _is_among(release: Release, files: Files) -> bool:
    """Check by annotations of Helm and Argo CD whether the manifests contain an object of a Helm release.

    Args:
        release: Helm release.
        files: All manifests.
    """
    told = [annotations_of(one) for one in files.objects]
    made_by = {(one.get("meta.helm.sh/release-namespace"), one.get("meta.helm.sh/release-name")) for one in told}
    tracked = {str(one.get("argocd.argoproj.io/tracking-id")).partition(":")[0] for one in told}
    return (release.namespace, release.name) in made_by or release.name in tracked


def _namespaces(manifest: Manifest) -> tuple[str, ...]:
    """Return the namespace of a HelmRelease or an Application, and the namespace that the object creates, if any."""
    spec = at(manifest, "spec")
    target = spec.get("targetNamespace") or at(spec, "destination").get("namespace")
    options = at(spec, "syncPolicy").get("syncOptions")
    creates = "CreateNamespace=true" in (options if isinstance(options, list) else ())
    creates = creates or at(spec, "install").get("createNamespace") is True
    return (namespace_of(manifest), *((str(target),) if creates and target else ()))


def _version(manifest: Manifest, release: Release) -> object:
    """Return the version of a Helm chart in a HelmRelease or an Application. Return None if the object states none.

    Args:
        manifest: HelmRelease or Application.
        release: Helm release that the object installs.
    """
    spec = at(manifest, "spec")
    if kind_of(manifest) == HELM_RELEASE:
        return at(spec, "chart.spec").get("version")
    sources = [mapping(spec.get("source")), *members(spec.get("sources"))]
    return next((one.get("targetRevision") for one in sources if str(one.get("chart")).endswith(release.chart)), None)


def _of_operator_release(release: Release, version: object, files: Files) -> Provided:
    if release.unread or release.problem:
        # Values outside of the manifest can change everything. The class and the labels are the same with most values.
        found = _of_operator({**release.values, "devicePlugin": {"config": {"name": "?"}}}, version, "", files)
        return replace(found, runtime_classes=(*found.runtime_classes, "nvidia"), is_alone=False)
    return _of_operator(release.values, version, release.namespace, files)


def _of_operator(values: Mapping[str, Any], version: object, namespace: str, files: Files) -> Provided:
    """Return a declaration of the effects of the GPU Operator on the cluster.

    Args:
        values: Helm values of the GPU Operator.
        version: Version of its Helm chart.
        namespace: Namespace of the GPU Operator.
        files: Manifests with the ConfigMaps.
    """
    release = of_version(versions.GPU_OPERATOR, version, versions.DEFAULT_GPU_OPERATOR)
    section = at(values, _CONFIG)
    texts = at(section, "data") if section.get("create") else files.of_map(namespace, section.get("name"))
    texts = {str(name): str(text) for name, text in (texts or {}).items() if text is not None}
    default = section.get("default")
    strategy = plain_data.at(values, "mig.strategy", "single")
    configs = configs_of(texts, str(default) if default in texts else None, str(strategy)) if texts else None
    if not section.get("name") and not texts:
        configs = configs_of({"default": ""}, "default", str(strategy))
    found = advertising.provided(
        values,
        Kubernetes(),
        release,
        configs=configs if configs is not None and len(configs.configs) > 1 else None,
        of_text=configs,
        namespace=namespace,
        further_namespaces=(),
        has_bridge=False,
    )
    # Without its container toolkit, the operator creates one RuntimeClass.
    classes = found.runtime_classes[:1] if at(values, "toolkit").get("enabled") is False else found.runtime_classes
    return replace(found, runtime_classes=classes)


def _of_plugin_release(release: Release, version: object, files: Files) -> Provided:
    """Return a declaration of the effects of a Helm release of the NVIDIA device plugin on the cluster.

    Args:
        release: Helm release.
        version: Version of the Helm chart.
        files: Manifests with the ConfigMaps.
    """
    row = of_version(versions.DEVICE_PLUGIN, version, versions.DEFAULT_DEVICE_PLUGIN)
    names = {"release_name": release.name, "namespace": release.namespace, "version": row.version}
    try:
        with warnings.catch_warnings(action="ignore"):
            options = chart_options(release.values, **names, platform=Kubernetes(), strict=False)
    except GpuConstructsError:
        options = {"config": None, "gpu_feature_discovery": True}
    config = None if release.unread or release.problem else options["config"]
    if isinstance(config, Configs) and config.delivery == "external":
        texts = files.of_map(release.namespace, config.config_map)
        config = None if texts is None else configs_of(texts, config.default, config.flags.mig_strategy)
    elif config is not None and not isinstance(config, Configs):
        config = Configs.managed({"default": config}, default="default")
    found = of_configs(config, None, row) if options.get("device_plugin") is not False else Provided()
    others = [GFD] if options.get("gpu_feature_discovery") else []
    others += [] if options.get("node_feature_discovery") == "external" else [of_nfd_files(None, None)]
    return replace(
        found,
        components=(*found.components, *(name for one in others for name in one.components)),
        node_labels=(*found.node_labels, *(label for one in others for label in one.node_labels)),
    )


def _of_nfd_release(release: Release, version: object, files: Files) -> Provided:
    worker, master = (at(release.values, f"{part}.config") for part in ("worker", "master"))
    known = not release.unread and not release.problem
    return of_nfd_files(worker if known else None, master if known else None)


_BY_CHART: Mapping[str, Provided | Callable[[Release, object, Files], Provided]] = {
    "dcgm-exporter": EXPORTER,
    "gpu-feature-discovery": GFD,
    "gpu-operator": _of_operator_release,
    "node-feature-discovery": _of_nfd_release,
    "nvidia-device-plugin": _of_plugin_release,
}
