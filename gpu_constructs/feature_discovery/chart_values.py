"""What the values of Node Feature Discovery in NVIDIA's chart become: what its table of keys cannot say."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from gpu_constructs.catalog.versions import NodeFeatureDiscoveryRelease
from gpu_constructs.errors import GpuConstructsError
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
from gpu_constructs.kube import fields
from gpu_constructs.migration.chart import Reading
from gpu_constructs.migration.chart_values import coalesced
from gpu_constructs.migration.converters import Converter, update_strategy

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
"""What ``nfd: null`` says: the sub-chart's own defaults, without what NVIDIA's chart has for it."""

_Install = Callable[..., NodeFeatureDiscovery]


CONVERTERS: Mapping[str, Converter] = {
    "update interval": lambda field, text: text or "3s",
    "worker update strategy": lambda field, given: update_strategy(field, given or {"type": "RollingUpdate"}),
}
"""Converters that the rows of Node Feature Discovery need."""


def node_feature_discovery(
    read: Reading, *, release_name: str, namespace: str, gpu_namespace: str, release: NodeFeatureDiscoveryRelease
) -> NodeFeatureDiscovery | None:
    """Return the options that say what the values say; None where they turn every component off.

    Args:
        read: The chart's values.
        release_name: Name of the Helm release.
        namespace: Namespace of the Helm release, where the chart puts it.
        gpu_namespace: Namespace of the GPU pods.
        release: Release of Node Feature Discovery.
    """
    lives_in = read.get("nfd.namespaceOverride") or namespace

    def install(**members: Any) -> NodeFeatureDiscovery:
        """Raise for what could not be installed."""
        given = NodeFeatureDiscovery(**members)
        nfd.node_feature_discovery(
            given, release=release, namespace=lives_in, default_prefix="nfd", instance="nfd", tolerations=()
        )
        if given.denies_features_of_others and read.get("gfd.enabled"):
            raise GpuConstructsError(
                "master.config.restrictions.denyNodeFeatureLabels must not be True beside GPU Feature Discovery, whose "
                "labels the master would drop silently"
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
        fields.snake(component): _component(read, component, install)
        if read.get(f"nfd.{component}.enable", component != "topologyUpdater")
        else None
        for component in _STRUCTS
    }
    if not any(components.values()):
        return None
    default = _ALIAS if "nfd.nameOverride" in read else _CHART
    longest = 63 - len("-topology-updater")
    fullname = read.name(release_name, default, longest, fields.dns_subdomain, section="nfd.")
    return dataclasses.replace(whole, fullname=fullname, **components)


def _image(read: Reading, release: NodeFeatureDiscoveryRelease) -> str | None:
    repository, tag = read.get("nfd.image.repository"), read.get("nfd.image.tag")
    own, _, version = release.image.rpartition(":")
    return f"{repository or own}:{tag or version}" if repository or tag else None


def _secrets(read: Reading) -> tuple[str, Any]:
    # A sub-chart's own global values give way to those of the chart around it.
    paths = ("nfd.imagePullSecrets", "global.imagePullSecrets", "nfd.global.imagePullSecrets")
    path = next((path for path in paths if read.get(path)), paths[0])
    return path, read.converted(path, "secret names", path, read.get(path))


def _monitor(read: Reading) -> NfdPodMonitor | None:
    if not read.get("nfd.prometheus.enable"):
        return None
    return _part(read, f"{_KEYWORD}.prometheus", "nfd.prometheus", NfdPodMonitor) or NfdPodMonitor()


def _part(read: Reading, keyword: str, section: str, make: Callable[..., Any], **more: Any) -> Any:
    """Return an option class of the members that the values name and these; None where there are none."""
    members = {member: value for member, (_, value) in read.members(keyword).items()} | more
    return read.attempt(section, partial(make, **members)) if members else None


def _component(read: Reading, component: str, install: _Install) -> Any:
    struct, at = _STRUCTS[component], f"nfd.{component}"
    keyword = f"{_KEYWORD}.{fields.snake(component)}"
    more: dict[str, tuple[str, Any]] = {"affinity": (f"{at}.affinity", _affinity(read, at))}
    for part, make in _PARTS.items():
        path = f"{at}.{part}"
        if part not in _SWITCHES or read.get(f"{path}.{_SWITCHES[part]}"):
            own = _of_budget(read, path) if part == "podDisruptionBudget" else _of_account(read, path, part)
            made = _part(read, f"{keyword}.{fields.snake(part)}", path, partial(_made, make), **own)
            more[fields.snake(part)] = path, made or (make() if part in _SWITCHES else None)
    if component == "topologyUpdater":
        more["create_crds"] = f"{at}.createCRDs", read.get(f"{at}.createCRDs", False)

    def alone(**members: Any) -> Any:
        made = struct(**members)
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


def _affinity(read: Reading, at: str) -> Any:
    path = f"{at}.affinity"
    roles = ("control-plane",) if read.release == "0.20.0" else ("master", "control-plane")
    given = read.get(path)
    if path not in read or given == {}:
        return None
    return {} if given is None else coalesced(_preferred(*roles) if at == "nfd.master" else {}, given)


def _of_account(read: Reading, path: str, part: str) -> dict[str, Any]:
    """Return the name that the chart has for an account of the user's own."""
    is_own = part == "serviceAccount" and path.startswith("nfd.master.") and read.get(f"{path}.create") is False
    return {"name": _CHART} if is_own and f"{path}.name" not in read else {}


def _of_budget(read: Reading, path: str) -> dict[str, Any]:
    """Return the number of the chart, where the user says none."""
    most = read.get(f"{path}.maxUnavailable")
    if most is not None and f"{path}.minAvailable" not in read:
        read.refuse(
            f"{path}.maxUnavailable", "needs minAvailable: null beside it: the chart has 1, and both are refused"
        )
        return {"max_unavailable": None, "min_available": 1}
    return {"min_available": read.get(f"{path}.minAvailable", 1)} if most is None else {}
