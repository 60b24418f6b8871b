"""Conversion of Helm values into keyword arguments of `NodeFeatureDiscovery`.

A table in `gpu_constructs.migration` describes the conversion of simple values. This module converts the other values.
NFD is short for Node Feature Discovery.
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
"""Helm values that the library uses if the user's values for the device plugin contain ``nfd: null``.

With ``nfd: null``, Helm applies the defaults of the NFD sub-chart, but not the values that the Helm chart of the device
plugin sets for the sub-chart. None removes such a value.
"""

_Install = Callable[..., NodeFeatureDiscovery]


CONVERTERS: Mapping[str, Converter] = {
    # The values can contain the gate that is always on.
    "feature gates": lambda field, given: {k: on for k, on in given.items() if (k, on) != ("NodeFeatureAPI", True)},
    "update interval": lambda field, text: text or "3s",
    "worker update strategy": lambda field, given: update_strategy(field, given or {"type": "RollingUpdate"}),
}
"""Functions that convert single Helm values of NFD, by the name that the table of Helm keys uses for them."""


def node_feature_discovery(
    read: Reading,
    *,
    release_name: str,
    namespace: str,
    gpu_namespace: str,
    release: NodeFeatureDiscoveryRelease,
    is_own_chart: bool = False,
) -> NodeFeatureDiscovery | None:
    """Return the options of Node Feature Discovery for Helm values. Return None if the values disable all components.

    Args:
        read: Helm values.
        release_name: Name of the Helm release.
        namespace: Namespace of the Helm release, where the Helm chart installs the components.
        gpu_namespace: Namespace of the device plugin and GPU Feature Discovery.
        release: Release of Node Feature Discovery.
        is_own_chart: Whether the values are for the Helm chart of Node Feature Discovery, whose worker does not set the
            label ``nvidia.com/gpu.present``. If False, they are for the Helm chart of the device plugin.
    """
    for component in ("master", "worker", "topologyUpdater"):
        _drop_what_is_skipped(read, component)
    marks_no_nodes = is_own_chart or _leaves_nodes_unmarked(read)
    fixed: Mapping[str, Mapping[str, Any]] = {"worker": {"marks_gpu_nodes": False}} if marks_no_nodes else {}
    lives_in = read.get("nfd.namespaceOverride") or namespace

    def install(**members: Any) -> NodeFeatureDiscovery:
        """Return a ``NodeFeatureDiscovery`` with the given options. Raise an error if an option is invalid."""
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

    If so, the function also warns, and adds the library's default settings of the source ``pci`` to ``read``. If the
    configuration file of the worker is invalid, the function returns False.
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
    read.warn(
        f"{path}.core.{key}",
        "lacks 'custom', so Node Feature Discovery does not set nvidia.com/gpu.present on nodes. Select nodes by "
        "another label",
    )
    return True


def _drop_what_is_skipped(read: Reading, component: str) -> None:
    """Remove the keys in ``nfd.<component>.config`` that the component ignores. Report a problem for each key.

    Args:
        read: Helm values, from which the function removes the keys.
        component: Section of a component in the Helm values, such as ``topologyUpdater``.
    """
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
    """Return the keyword arguments of ``NodeFeatureDiscoveryChart`` for values of the Helm chart of NFD, as a dict.

    Args:
        values: Helm values.
        installation: Release name, namespace and version of the Helm release.
        problems: Record to which the function adds the problems in the Helm values.

    Raises:
        GpuConstructsError: There are problems, or the values enable no component. The error lists all problems.
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
    """Return ``base`` with ``over`` merged into it at all levels of nesting. None in ``over`` replaces a value."""
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
    """Return the options object that ``make`` creates from a section of the Helm values.

    Return None if there are no keyword arguments for ``make``, or if an argument is invalid.

    Args:
        read: Helm values, to which the function reports problems.
        keyword: Dotted keyword of the library that receives the object, such as
            ``node_feature_discovery.master.liveness_probe``.
        section: Dotted key of the section in the Helm values, such as ``nfd.master.livenessProbe``.
        make: Class or function that creates the object from keyword arguments, such as ``NfdProbe``.
        more: Keyword arguments for ``make`` that replace those from the Helm values.
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
    """Return ``{"name": "node-feature-discovery"}`` if the Helm values omit the name of the master's account.

    In this case, the section ``nfd.master.serviceAccount`` contains ``create: false``, for an existing ServiceAccount,
    but no ``name``. For all other values and sections, return an empty dict.

    Args:
        read: Helm values.
        path: Dotted key of a section, such as ``nfd.master.serviceAccount``.
        part: Last word of ``path``, such as ``serviceAccount``.
    """
    is_own = part == "serviceAccount" and path.startswith("nfd.master.") and read.get(f"{path}.create") is False
    return {"name": _CHART} if is_own and f"{path}.name" not in read else {}


def _of_budget(read: Reading, path: str) -> dict[str, Any]:
    """Return ``min_available`` and ``max_unavailable`` of ``NfdPodDisruptionBudget`` for Helm values, as a dict.

    If the Helm values set neither number, ``min_available`` is 1, the default of the Helm chart.

    Args:
        read: Helm values, to which the function reports problems.
        path: Dotted key of the section, such as ``nfd.master.podDisruptionBudget``.
    """
    most = read.get(f"{path}.maxUnavailable")
    if most is not None and f"{path}.minAvailable" not in read:
        read.refuse(
            f"{path}.maxUnavailable", "needs minAvailable: null, because the chart sets minAvailable to 1 by default"
        )
        return {"max_unavailable": None, "min_available": 1}
    return {"min_available": read.get(f"{path}.minAvailable", 1)} if most is None else {}
