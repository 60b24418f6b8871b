"""Conversion of those Helm values of Node Feature Discovery for which a table is not enough.

The table of chart keys describes the conversion of all other values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from gpu_constructs.catalog import versions
from gpu_constructs.catalog.nfd_labels import enabled_sources
from gpu_constructs.catalog.versions import NodeFeatureDiscoveryRelease
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.feature_discovery import config as files
from gpu_constructs.feature_discovery import manifests as nfd
from gpu_constructs.feature_discovery.node_feature_discovery import (
    NfdGarbageCollector,
    NfdMaster,
    NfdNetworkPolicy,
    NfdPodDisruptionBudget,
    NfdPodMonitor,
    NfdProbe,
    NfdServiceAccount,
    NfdTopologyUpdater,
    NfdWorker,
    NodeFeatureDiscovery,
)
from gpu_constructs.kube import fields, plain_data
from gpu_constructs.migration.chart import Reading, chart
from gpu_constructs.migration.chart_values import coalesced
from gpu_constructs.migration.converters import Converter, update_strategy
from gpu_constructs.migration.problems import Installation, Problems, reported_at_once

_CHART, _ALIAS = "node-feature-discovery", "nfd"
_KEYWORD = "node_feature_discovery"
_STRUCTS: Mapping[str, Any] = {
    "master": NfdMaster,
    "worker": NfdWorker,
    "gc": NfdGarbageCollector,
    "topologyUpdater": NfdTopologyUpdater,
}
_PARTS: Mapping[str, Any] = {
    "startupProbe": NfdProbe,
    "livenessProbe": NfdProbe,
    "readinessProbe": NfdProbe,
    "networkPolicy": NfdNetworkPolicy,
    "serviceAccount": NfdServiceAccount,
    "podDisruptionBudget": NfdPodDisruptionBudget,
}
_SWITCHES = {"networkPolicy": "enabled", "podDisruptionBudget": "enable"}

WITHOUT_THE_OUTER_CHARTS: Mapping[str, Any] = {
    "nameOverride": None,
    "master": {"config": None, "serviceAccount": {"name": None}},
    "worker": {"config": None},
}
"""Values for ``nfd: null``: the defaults of the NFD sub-chart, but not the values that NVIDIA's chart sets for NFD."""

_Install = Callable[..., NodeFeatureDiscovery]


CONVERTERS: Mapping[str, Converter] = {
    # The values can contain the gate that is always on.
    "feature gates": lambda field, given: {k: on for k, on in given.items() if (k, on) != ("NodeFeatureAPI", True)},
    "update interval": lambda field, text: text or "3s",
    "worker update strategy": lambda field, given: update_strategy(field, given or {"type": "RollingUpdate"}),
}
"""Converters for the rows of Node Feature Discovery."""


def node_feature_discovery(
    read: Reading,
    *,
    release_name: str,
    namespace: str,
    gpu_namespace: str,
    release: NodeFeatureDiscoveryRelease,
    is_own_chart: bool = False,
) -> NodeFeatureDiscovery | None:
    """Return the options of Node Feature Discovery for Helm values. Return None if they disable all components.

    Args:
        read: Values of the chart.
        release_name: Name of the Helm release.
        namespace: Namespace of the Helm release, where the chart installs the components.
        gpu_namespace: Namespace of the GPU pods.
        release: Release of Node Feature Discovery.
        is_own_chart: Whether the values belong to the chart of Node Feature Discovery, whose worker does not mark GPU
            nodes.
    """
    for component in ("master", "worker", "topologyUpdater"):
        _drop_what_is_skipped(read, component)
    marks_no_nodes = is_own_chart or _leaves_nodes_unmarked(read)
    fixed: Mapping[str, Mapping[str, Any]] = {"worker": {"marks_gpu_nodes": False}} if marks_no_nodes else {}
    lives_in = read.get("nfd.namespaceOverride") or namespace

    def install(**members: Any) -> NodeFeatureDiscovery:
        """Return the options of Node Feature Discovery. Raise an error if the library cannot install them."""
        given = NodeFeatureDiscovery(**members)
        nfd.node_feature_discovery(
            given, release=release, namespace=lives_in, default_prefix="nfd", instance="nfd", tolerations=()
        )
        if given.denies_features_of_others and read.get("gfd.enabled"):
            raise GpuConstructsError(
                "master.config.restrictions.denyNodeFeatureLabels must not be True with GPU Feature Discovery, whose "
                "labels the master would silently drop"
            )
        return given

    whole = read.struct(
        _KEYWORD,
        partial(install, master=None, worker=None),
        namespace=("nfd.namespaceOverride", None if lives_in == gpu_namespace else lives_in),
        image=("nfd.image", _image(read, release)),
        image_pull_secrets=_secrets(read),
        prometheus=("nfd.prometheus", _monitor(read)),
    )
    components: dict[str, Any] = {
        fields.snake(component): _component(read, release, component, install, fixed.get(component, {}))
        if read.get(f"nfd.{component}.enable", component != "topologyUpdater")
        else None
        for component in _STRUCTS
    }
    if not any(components.values()):
        return None
    default = _ALIAS if "nfd.nameOverride" in read and not is_own_chart else _CHART
    longest = 63 - len("-topology-updater")
    fullname = read.name(release_name, default, longest, fields.dns_subdomain, section="nfd.")
    return dataclasses.replace(whole, fullname=fullname, **components)


def _leaves_nodes_unmarked(read: Reading) -> bool:
    """Check whether the Helm values disable the NFD source ``custom``, which sets the label ``nvidia.com/gpu.present``.

    If they do, the function prints a warning. It also adds the default settings for the labels of PCI devices to the
    values. The result is False if the configuration file of the worker is not valid.
    """
    path, config = "nfd.worker.config", read.get("nfd.worker.config") or {}
    core = config.get("core") or {}
    key = "sources" if "sources" in core else "labelSources"
    try:
        files.document("worker", config, {})
    except GpuConstructsError:
        return False
    if "custom" in enabled_sources(core.get(key, ["all"])):
        return False
    read.replace(path, files.merged({"sources": {"pci": files.WORKER["sources"]["pci"]}}, config))
    read.warn(f"{path}.core.{key}", "lacks 'custom', so nvidia.com/gpu.present marks no node. Select another label")
    return True


def _drop_what_is_skipped(read: Reading, component: str) -> None:
    """Remove the keys of a component's configuration file that the component ignores. Report a problem for each."""
    path, name = f"nfd.{component}.config", fields.snake(component)
    while True:
        try:
            files.document(name, read.get(path) or {}, {})
        except files.Skipped as skipped:
            place = skipped.place.removeprefix(f"{name}.config.")
            read.refuse(f"{path}.{place}", f"is not convertible: {skipped.problem}", is_ignored=True)
            read.replace(path, plain_data.without(read.get(path), place))
        except GpuConstructsError:
            return
        else:
            return


@reported_at_once
def own_chart_options(values: Mapping[str, Any], installation: Installation, problems: Problems) -> dict[str, Any]:
    """Return the keywords of ``NodeFeatureDiscoveryChart`` for the values of the chart of Node Feature Discovery.

    Raises:
        GpuConstructsError: A misspelled key, or a value that the Helm chart or its programs would reject.
    """
    release = versions.release_of(versions.NODE_FEATURE_DISCOVERY, installation.version, "Node Feature Discovery")
    fields.of_type("values", values, Mapping[str, Any])
    read = Reading(
        chart(_CHART, own_releases="node_feature_discovery"),
        {_ALIAS: _laid(WITHOUT_THE_OUTER_CHARTS, values)},
        release=installation.behaves_like,
        strict=problems.below(_ALIAS),
        converters=CONVERTERS,
    )
    made = node_feature_discovery(
        read,
        release_name=installation.release_name,
        namespace=installation.namespace,
        gpu_namespace=installation.namespace,
        release=release,
        is_own_chart=True,
    )
    if made is None:
        raise GpuConstructsError(
            "values must enable one of master, worker, gc and topologyUpdater, got none. Set enable: true for one"
        )
    return {"namespace": installation.namespace, "instance": installation.release_name, "node_feature_discovery": made}


def _laid(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``base`` with ``over`` merged over it, at all levels of nesting. None in ``over`` replaces a value."""
    laid = {**base, **over}
    both = (key for key in base if isinstance(base[key], Mapping) and isinstance(laid[key], Mapping))
    return {**laid, **{key: _laid(base[key], laid[key]) for key in both}}


def _image(read: Reading, release: NodeFeatureDiscoveryRelease) -> str | None:
    repository, tag = read.get("nfd.image.repository"), read.get("nfd.image.tag")
    own, _, version = release.image.rpartition(":")
    if read.release == release.version:
        read.warn_of_other_release("nfd.image.tag", tag or "", version)
    return f"{repository or own}:{tag or version}" if repository or tag else None


def _secrets(read: Reading) -> tuple[str, Any]:
    # The global values of a sub-chart have less priority than those of its parent chart.
    paths = ("nfd.imagePullSecrets", "global.imagePullSecrets", "nfd.global.imagePullSecrets")
    path = next((path for path in paths if read.get(path)), paths[0])
    return path, read.converted(path, "secret names", path, read.get(path))


def _monitor(read: Reading) -> NfdPodMonitor | None:
    if not read.get("nfd.prometheus.enable"):
        return None
    return _part(read, f"{_KEYWORD}.prometheus", "nfd.prometheus", NfdPodMonitor) or NfdPodMonitor()


def _part(read: Reading, keyword: str, section: str, make: Callable[..., Any], **more: Any) -> Any:
    """Return the options object that ``make`` creates from Helm values. Return None if the values set no such options.

    Args:
        read: Helm values.
        keyword: Keyword of the construct (or option attribute) that accepts the object, such as ``master``.
        section: Dotted key of the Helm values, for messages.
        make: Function or class that creates the object from keyword arguments.
        more: Keyword arguments that replace those from the Helm values.
    """
    members = {member: value for member, (_, value) in read.members(keyword).items()} | more
    return read.attempt(section, partial(make, **members)) if members else None


def _component(
    read: Reading, release: NodeFeatureDiscoveryRelease, component: str, install: _Install, fixed: Mapping[str, Any]
) -> Any:
    struct, at = _STRUCTS[component], f"nfd.{component}"
    keyword = f"{_KEYWORD}.{fields.snake(component)}"
    more: dict[str, tuple[str, Any]] = {"affinity": (f"{at}.affinity", _affinity(read, release, at))}
    for part, make in _PARTS.items():
        path = f"{at}.{part}"
        if part not in _SWITCHES or read.get(f"{path}.{_SWITCHES[part]}"):
            own = _of_budget(read, path) if part == "podDisruptionBudget" else _of_account(read, path, part)
            made = _part(read, f"{keyword}.{fields.snake(part)}", path, partial(_made, make), **own)
            more[fields.snake(part)] = path, made or (make() if part in _SWITCHES else None)
    if component == "topologyUpdater":
        more["create_crds"] = f"{at}.createCRDs", read.get(f"{at}.createCRDs", False)

    def alone(**members: Any) -> Any:
        made = struct(**members, **fixed)
        install(**{**dict.fromkeys(map(fields.snake, _STRUCTS)), fields.snake(component): made})
        return made

    return read.struct(keyword, alone, **more)


def _made(make: Callable[..., Any], **members: Any) -> Any:
    return make(**{member: value for member, value in members.items() if value is not None})


def _preferred(*roles: str) -> dict[str, Any]:
    terms = [
        {
            "weight": 1,
            "preference": {
                "matchExpressions": [{"key": f"node-role.kubernetes.io/{role}", "operator": "In", "values": [""]}]
            },
        }
        for role in roles
    ]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


def _affinity(read: Reading, release: NodeFeatureDiscoveryRelease, at: str) -> Any:
    path = f"{at}.affinity"
    roles = ("control-plane",) if release.is_at_least("0.18.0") else ("master", "control-plane")
    given = read.get(path)
    if path not in read or given == {}:
        return None
    return {} if given is None else coalesced(_preferred(*roles) if at == "nfd.master" else {}, given)


def _of_account(read: Reading, path: str, part: str) -> dict[str, Any]:
    """Return the default name of the ServiceAccount of the master as ``{"name": …}``, or an empty dict.

    The dict has the name only if the Helm values disable this ServiceAccount and set no name.

    Args:
        read: Helm values.
        path: Dotted key of a section in a component, such as ``nfd.master.serviceAccount``.
        part: Last word of ``path``. For other sections than ``serviceAccount``, the result is empty.
    """
    is_own = part == "serviceAccount" and path.startswith("nfd.master.") and read.get(f"{path}.create") is False
    return {"name": _CHART} if is_own and f"{path}.name" not in read else {}


def _of_budget(read: Reading, path: str) -> dict[str, Any]:
    """Return the keyword arguments for the disruption budget of a component, from Helm values.

    If the Helm values set no number, ``min_available`` has the default of the chart.
    """
    most = read.get(f"{path}.maxUnavailable")
    if most is not None and f"{path}.minAvailable" not in read:
        read.refuse(
            f"{path}.maxUnavailable", "needs minAvailable: null, because the chart sets minAvailable to 1 by default"
        )
        return {"max_unavailable": None, "min_available": 1}
    return {"min_available": read.get(f"{path}.minAvailable", 1)} if most is None else {}
