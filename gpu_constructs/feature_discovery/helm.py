"""The values of Node Feature Discovery in NVIDIA's chart (``nfd.*``), key by key, and what becomes of each here.

Source: the node-feature-discovery charts 0.17.3 and 0.19.0 bundled in NVIDIA/k8s-device-plugin@v0.18.2,
@v0.19.3 and @v0.20.0.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from gpu_constructs import _fields, credentials
from gpu_constructs._helm import (
    Key,
    Values,
    coalesced,
    object_name,
    resources,
    secret_names,
    tolerations,
    update_strategy,
)
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.feature_discovery import nfd
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
from gpu_constructs.versions import NodeFeatureDiscoveryRelease
from gpu_constructs.workload.env import EnvValue

_CHART, _ALIAS = "node-feature-discovery", "nfd"
_OLD, _NEW = ("0.18.2", "0.19.3"), ("0.20.0",)  # releases of the outer chart with 0.17.3, and with 0.19.0
_STRUCTS: Mapping[str, Any] = {
    "master": NfdMaster,
    "worker": NfdWorker,
    "gc": NfdGarbageCollector,
    "topologyUpdater": NfdTopologyUpdater,
}
_PROBES = {
    "master": ("startupProbe", "livenessProbe", "readinessProbe"),
    "worker": ("livenessProbe", "readinessProbe"),
    "gc": ("livenessProbe", "readinessProbe"),
    "topologyUpdater": ("livenessProbe", "readinessProbe"),
}
_HARDENED = ("allowPrivilegeEscalation", "capabilities", "readOnlyRootFilesystem", "runAsNonRoot")
_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "failureThreshold", "successThreshold")

# Keys whose value goes to the member of the same name, with the releases of the chart that read it.
_OF_ALL: Mapping[str, tuple[str, Sequence[str]]] = {
    "extraArgs": ("list", ()),
    "hostNetwork": ("bool", ()),
    "hostUsers": ("bool", _NEW),
    "dnsPolicy": ("text", _NEW),
    "port": ("number", _NEW),
    "metricsPort": ("number", _OLD),
    "annotations": ("map", ()),
    "labels": ("map", _NEW),
    "podSecurityContext": ("map", ()),
    "initContainers": ("list", _NEW),
    "revisionHistoryLimit": ("number", ()),
    "nodeSelector": ("map", ()),
}
_OF_SOME: Mapping[str, Mapping[str, tuple[str, Sequence[str]]]] = {
    "master": {
        "config": ("map", ()),
        "healthPort": ("number", _OLD),
        "instance": ("text", ()),
        "resyncPeriod": ("text", ()),
        "denyLabelNs": ("list", ()),
        "extraLabelNs": ("list", ()),
        "enableTaints": ("bool", ()),
        "nfdApiParallelism": ("number", ()),
        "deploymentAnnotations": ("map", ()),
        "replicaCount": ("number", ()),
        "securityContext": ("map", ()),
    },
    "worker": {
        "config": ("map", ()),
        "healthPort": ("number", _OLD),
        "ownerRefs": ("list", _NEW),
        "daemonsetAnnotations": ("map", ()),
        "mountUsrSrc": ("bool", ()),
        "priorityClassName": ("text", ()),
        "securityContext": ("map", ()),
    },
    "gc": {
        "interval": ("text", ()),
        "deploymentAnnotations": ("map", ()),
        "replicaCount": ("number", ()),
    },
    "topologyUpdater": {
        "config": ("map", ()),
        "healthPort": ("number", _OLD),
        "updateInterval": ("text", ()),
        "watchNamespace": ("text", ()),
        "kubeletStateDir": ("text", ()),
        "kubeletConfigPath": ("text", ()),
        "kubeletPodResourcesSockPath": ("text", ()),
        "podSetFingerprint": ("bool", ()),
        "daemonsetAnnotations": ("map", ()),
        "securityContext": ("map", ()),
    },
}
# What a null leaves where the chart has a number of its own.
_KUBERNETES = {"initialDelaySeconds": 0, "failureThreshold": 3}
# What the chart has for keys of a component where a null, or only a part of it, may be given.
_EGRESS = [{"port": port, "protocol": "TCP"} for port in (80, 443, 53)]
_EGRESS += [{"port": 53, "protocol": "UDP"}, {"port": 6443, "protocol": "TCP"}]
_DEFAULTS: Mapping[str, Any] = {
    "master.enable": True,
    "worker.enable": True,
    "gc.enable": True,
    "topologyUpdater.podSetFingerprint": True,
    "topologyUpdater.kubeletStateDir": "/var/lib/kubelet",
    "topologyUpdater.updateInterval": "60s",
    "master.resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "4Gi"}},
    "worker.resources": {"requests": {"cpu": "5m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
    "gc.resources": {"requests": {"cpu": "10m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
    "topologyUpdater.resources": {"requests": {"cpu": "50m", "memory": "40Mi"}, "limits": {"memory": "60Mi"}},
    "worker.updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%"}},
    "worker.ownerRefs": ["pod", "ds"],
    "master.startupProbe.failureThreshold": 30,
    "master.readinessProbe.failureThreshold": 10,
    "gc.livenessProbe.initialDelaySeconds": 10,
    "gc.readinessProbe.initialDelaySeconds": 5,
    **{
        f"{component}.{key}": number
        for component in ("worker", "topologyUpdater")
        for key, number in (
            ("livenessProbe.initialDelaySeconds", 10),
            ("readinessProbe.initialDelaySeconds", 5),
            ("readinessProbe.failureThreshold", 10),
        )
    },
    **{f"{component}.{key}.create": True for component in _STRUCTS for key in ("serviceAccount", "rbac")},
    **{f"{component}.networkPolicy.egress": [{"ports": _EGRESS}] for component in _STRUCTS},
    **{
        f"{component}.networkPolicy.ingress": [{"ports": [{"protocol": "TCP", "port": "http"}]}]
        for component in _STRUCTS
    },
}
# What the struct lays what is given over: a null for the whole takes all of it away.
_LAID_UNDER: Mapping[str, Sequence[str]] = {
    "master.config": ("extraLabelNs",),
    "worker.config": ("sources",),
    "master.securityContext": _HARDENED,
    "worker.securityContext": _HARDENED,
    "topologyUpdater.securityContext": (*_HARDENED, "runAsUser"),
}
# Text that says something where it is empty; elsewhere it says nothing.
_EMPTY: Mapping[str, str] = {"kubeletStateDir": "", "updateInterval": "3s"}


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


_MASTER_AFFINITY = {
    **dict.fromkeys(_OLD, _preferred("master", "control-plane")),
    **dict.fromkeys(_NEW, _preferred("control-plane")),
}
_IS_NOT_READ = "is never read by the chart; leave it out"


def _snake(key: str) -> str:
    """Give a key as the member is called: ``denyLabelNs`` as ``deny_label_ns``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower()


def _component_keys(component: str) -> Iterator[tuple[str, Key]]:
    struct, member = _STRUCTS[component].__name__, _snake(component)

    def to(argument: str) -> str:
        return f"node_feature_discovery: {member}={struct}({argument})"

    def mapped(key: str, kind: str, argument: str, releases: Sequence[str] = ()) -> tuple[str, Key]:
        default = _DEFAULTS.get(f"{component}.{key}")
        return f"{at}.{key}", Key(type=kind, to=to(argument), releases=releases, default=default)

    at = f"nfd.{component}"
    is_on = _DEFAULTS.get(f"{component}.enable")
    yield f"{at}.enable", Key(type="bool", to=f"node_feature_discovery: {member}=None leaves it out", default=is_on)
    for key, (kind, releases) in {**_OF_ALL, **_OF_SOME[component]}.items():
        yield mapped(key, kind, f"{_snake(key)}=", releases)
    for key, kind, argument in (
        ("extraEnvs", "list", "extra_envs="),
        ("resources", "map", "resources="),
        ("tolerations", "list", "tolerations=, beside the chart's"),
        ("affinity", "map", "affinity="),
        ("serviceAccount.create", "bool", "service_account=NfdServiceAccount(create=)"),
        ("serviceAccount.name", "text", "service_account=NfdServiceAccount(name=)"),
        ("serviceAccount.annotations", "map", "service_account=NfdServiceAccount(annotations=)"),
        ("rbac.create", "bool", "rbac_create="),
    ):
        yield mapped(key, kind, argument)
    for key, kind in (("enabled", "bool"), ("egress", "list"), ("ingress", "list")):
        argument = "network_policy=NfdNetworkPolicy()" if key == "enabled" else f"NfdNetworkPolicy({key}=)"
        yield mapped(f"networkPolicy.{key}", kind, argument, _NEW)
    for probe in _PROBES[component]:
        read = _NEW if component == "gc" else ()
        for number in _NUMBERS if probe == "readinessProbe" else _NUMBERS[:-1]:
            argument = f"{_snake(probe)}=NfdProbe({_snake(number)}=)"
            yield mapped(f"{probe}.{number}", "number", argument, read)
        if component != "gc":
            yield f"{at}.{probe}.grpc.port", Key(type="number", why_not=_IS_NOT_READ, releases=_OLD, default=8082)
    if component in ("master", "gc"):
        for key, kind in (
            ("enable", "bool"),
            ("minAvailable", "number or text"),
            ("maxUnavailable", "number or text"),
            ("unhealthyPodEvictionPolicy", "text"),
        ):
            argument = "pod_disruption_budget=NfdPodDisruptionBudget"
            argument += "()" if key == "enable" else f"({_snake(key)}=)"
            yield mapped(f"podDisruptionBudget.{key}", kind, argument, _NEW)
    if component == "worker":
        yield mapped("updateStrategy", "map", "update_strategy=", _NEW)
    if component == "master":
        yield f"{at}.featureApi", Key(type="bool", why_not=_IS_NOT_READ, releases=_OLD)
        why_not = "becomes a flag that nfd-master does not know, so it would exit; leave it out"
        yield f"{at}.featureRulesController", Key(type="bool", why_not=why_not, releases=_OLD)
    if component == "topologyUpdater":
        yield mapped("createCRDs", "bool", "create_crds=")


KEYS: dict[str, Key] = {
    "nfd.image.repository": Key(type="text", to="node_feature_discovery: image="),
    "nfd.image.tag": Key(type="text", to="node_feature_discovery: image="),
    "nfd.image.pullPolicy": Key(type="text", to="node_feature_discovery: image_pull_policy="),
    "nfd.imagePullSecrets": Key(type="list", to="node_feature_discovery: image_pull_secrets="),
    "nfd.global.imagePullSecrets": Key(type="list", to="node_feature_discovery: image_pull_secrets=", releases=_NEW),
    "global.imagePullSecrets": Key(type="list", to="node_feature_discovery: image_pull_secrets=", releases=_NEW),
    "nfd.nameOverride": Key(type="text", to="node_feature_discovery: fullname=", default=_CHART),
    "nfd.fullnameOverride": Key(type="text", to="node_feature_discovery: fullname="),
    "nfd.namespaceOverride": Key(type="text", to="node_feature_discovery: namespace="),
    "nfd.featureGates": Key(type="map", to="node_feature_discovery: feature_gates="),
    "nfd.priorityClassName": Key(type="text", to="node_feature_discovery: priority_class_name="),
    "nfd.checksumValuesOnly": Key(
        type="bool",
        why_not="has no meaning here: pods carry the checksum of their file alone; leave it out",
        releases=_NEW,
        default=False,
    ),
    "nfd.postDeleteCleanup": Key(
        type="bool",
        why_not="cannot be True: the hook is a Job that kubectl would start at once, and it takes NFD's labels off the "
        "nodes; leave it out",
        releases=_NEW,
        default=False,
    ),
    "nfd.prometheus.enable": Key(type="bool", to="node_feature_discovery: prometheus=NfdPodMonitor()"),
    "nfd.prometheus.scrapeInterval": Key(type="text", to="node_feature_discovery: NfdPodMonitor(scrape_interval=)"),
    "nfd.prometheus.labels": Key(type="map", to="node_feature_discovery: NfdPodMonitor(labels=)"),
    **{path: key for component in _STRUCTS for path, key in _component_keys(component)},
}


WITHOUT_THE_OUTER_CHARTS: Mapping[str, Any] = {
    "nameOverride": None,
    "master": {"config": None, "serviceAccount": {"name": None}},
    "worker": {"config": None},
}
"""What ``nfd: null`` says: the sub-chart's own defaults, without what NVIDIA's chart has for it."""

_Install = Callable[..., NodeFeatureDiscovery]


def node_feature_discovery(
    read: Values, *, release_name: str, namespace: str, gpu_namespace: str, release: NodeFeatureDiscoveryRelease
) -> NodeFeatureDiscovery | None:
    """Give the options that say what the values say; None where they turn every component off.

    Args:
        read: The chart's values.
        release_name: Of the Helm release.
        namespace: Of the Helm release, where the chart puts it.
        gpu_namespace: Where the GPU pods live.
        release: What runs.
    """
    lives_in = read.get("nfd.namespaceOverride") or namespace

    def install(**members: Any) -> NodeFeatureDiscovery:
        """Refuse what could not be installed."""
        given = NodeFeatureDiscovery(**members)
        nfd.node_feature_discovery(
            given, release=release, namespace=lives_in, default_prefix="nfd", instance="nfd", tolerations=()
        )
        if given.denies_features_of_others and read.get("gfd.enabled"):
            raise GpuConstructsError(
                "master.config.restrictions.denyNodeFeatureLabels must not be True beside GPU Feature Discovery, whose "
                "labels the master would drop without a word"
            )
        return given

    without_files = partial(install, master=None, worker=None)
    whole = read.made_of(without_files, _of_the_whole(read, release, lives_in, gpu_namespace))
    components: dict[str, Any] = {
        _snake(component): _component(read, component, install)
        if read.get(f"nfd.{component}.enable", component != "topologyUpdater")
        else None
        for component in _STRUCTS
    }
    if not any(components.values()):
        return None
    fullname = object_name(
        read,
        "nfd.",
        release_name=release_name,
        default=_ALIAS if "nfd.nameOverride" in read else _CHART,
        longest=63 - len("-topology-updater"),
        check=_fields.dns_subdomain,
    )
    return dataclasses.replace(whole, fullname=fullname, **components)


def _of_the_whole(
    read: Values, release: NodeFeatureDiscoveryRelease, lives_in: str, gpu_namespace: str
) -> dict[str, tuple[str, Any]]:
    """Give what is said for all components: by member the key and the value."""
    found: dict[str, tuple[str, Any]] = {
        "namespace": ("nfd.namespaceOverride", None if lives_in == gpu_namespace else lives_in),
        "feature_gates": ("nfd.featureGates", read.get("nfd.featureGates")),
        "priority_class_name": ("nfd.priorityClassName", read.get("nfd.priorityClassName") or None),
        "image_pull_policy": ("nfd.image.pullPolicy", read.get("nfd.image.pullPolicy")),
    }
    repository, tag = read.get("nfd.image.repository"), read.get("nfd.image.tag")
    if repository or tag:
        own, _, version = release.image.rpartition(":")
        found["image"] = ("nfd.image", f"{repository or own}:{tag or version}")
    # A sub-chart's own global values give way to those of the chart around it.
    for path in ("nfd.imagePullSecrets", "global.imagePullSecrets", "nfd.global.imagePullSecrets"):
        if read.get(path):
            found["image_pull_secrets"] = (path, read.attempt(path, partial(secret_names, read.get(path))))
            break
    if read.get("nfd.prometheus.enable"):
        given = read.below("nfd.prometheus")
        monitor = {_snake(key): value for key, value in given.items() if key != "enable"}
        made = read.attempt("nfd.prometheus", lambda: NfdPodMonitor(**monitor)) or NfdPodMonitor()
        found["prometheus"] = ("nfd.prometheus", made)
    return found


def _component(read: Values, component: str, install: _Install) -> Any:
    struct, at = _STRUCTS[component], f"nfd.{component}"
    given: dict[str, tuple[str, Any]] = {}
    for key in {**_OF_ALL, **_OF_SOME[component]}:
        value = read.get(f"{at}.{key}")
        if value is None and f"{at}.{key}" in read and f"{component}.{key}" in _LAID_UNDER:
            value = dict.fromkeys(_LAID_UNDER[f"{component}.{key}"])
        given[_snake(key)] = (f"{at}.{key}", _EMPTY.get(key) if value == "" else value)
    for key, make in _SPECIAL.items():
        given[_snake(key)] = (f"{at}.{key}", make(read, at))
    for probe in _PROBES[component]:
        numbers = {_snake(k): v for k, v in read.below(f"{at}.{probe}").items() if k in _NUMBERS}
        for key, number in _KUBERNETES.items():
            path = f"{at}.{probe}.{key}"
            if path in read and read.get(path) is None and f"{component}.{probe}.{key}" in _DEFAULTS:
                numbers[_snake(key)] = number
        made = read.attempt(f"{at}.{probe}", partial(NfdProbe, **numbers)) if numbers else None
        given[_snake(probe)] = (f"{at}.{probe}", made)
    if component == "topologyUpdater":
        given["create_crds"] = (f"{at}.createCRDs", read.get(f"{at}.createCRDs", False))

    def alone(**members: Any) -> Any:
        made = struct(**members)
        install(**{**dict.fromkeys(map(_snake, _STRUCTS)), _snake(component): made})
        return made

    return read.made_of(alone, given)


def _extra_envs(read: Values, at: str) -> dict[str, object] | None:
    path = f"{at}.extraEnvs"
    made = [read.attempt(f"{path}[{i}]", partial(_variable, one)) for i, one in enumerate(read.get(path) or ())]
    return dict(variable for variable in made if variable is not None) or None


def _variable(given: Any) -> tuple[str, object]:
    _fields.of_type("variable", given, Mapping)
    if not isinstance(given.get("name"), str):
        raise GpuConstructsError(f"variable must have a name, got {dict(given)!r}")
    if "valueFrom" in given:
        return given["name"], EnvValue(value_from=given["valueFrom"])
    if not isinstance(given.get("value"), str):
        raise GpuConstructsError(f"value must be text, got {given.get('value')!r}")
    credentials.refuse_variable(given["name"], given["name"], given["value"], "use valueFrom.secretKeyRef")
    return given["name"], given["value"]


def _resources(read: Values, at: str) -> Any:
    path = f"{at}.resources"
    given = read.get(path)
    return resources(read, path, given) if given else given


def _affinity(read: Values, at: str) -> Any:
    path = f"{at}.affinity"
    default = _MASTER_AFFINITY[read.release] if at == "nfd.master" else {}
    given = read.get(path)
    if path not in read or given == {}:
        return None
    return {} if given is None else coalesced(default, given)


def _service_account(read: Values, at: str) -> Any:
    given = {key: value for key, value in read.below(f"{at}.serviceAccount").items() if value not in ("", {})}
    if at == "nfd.master" and given.get("create") is False and f"{at}.serviceAccount.name" not in read:
        given["name"] = _CHART
    return read.attempt(f"{at}.serviceAccount", lambda: NfdServiceAccount(**given)) if given else None


def _rbac_create(read: Values, at: str) -> Any:
    return read.get(f"{at}.rbac.create")


def _network_policy(read: Values, at: str) -> Any:
    given = read.below(f"{at}.networkPolicy")
    if not given.pop("enabled", False):
        return None
    return read.attempt(f"{at}.networkPolicy", lambda: NfdNetworkPolicy(**given))


def _budget(read: Values, at: str) -> Any:
    path = f"{at}.podDisruptionBudget"
    given = read.below(path)
    if not given.pop("enable", False):
        return None
    members = {_snake(key): value for key, value in given.items()}
    if "max_unavailable" in members and f"{path}.minAvailable" not in read:
        read.refuse(
            f"{path}.maxUnavailable", "needs minAvailable: null beside it: the chart has 1, and both are refused"
        )
        del members["max_unavailable"]
    if "max_unavailable" not in members:
        members.setdefault("min_available", 1)
    return read.attempt(path, lambda: NfdPodDisruptionBudget(**members))


def _tolerations(read: Values, at: str) -> Any:
    return tolerations(read, f"{at}.tolerations") or None


def _update_strategy(read: Values, at: str) -> Any:
    path = f"{at}.updateStrategy"
    if path not in read:
        return None
    laid = read.get(path)
    if (
        laid.get("type") == "OnDelete"
        and laid.get("rollingUpdate") == _DEFAULTS["worker.updateStrategy"]["rollingUpdate"]
    ):
        laid = {"type": "OnDelete"}  # The chart's number stays below, where it says nothing.
    return read.attempt(path, partial(update_strategy, laid))


_SPECIAL: Mapping[str, Callable[[Values, str], Any]] = {
    "extraEnvs": _extra_envs,
    "resources": _resources,
    "affinity": _affinity,
    "tolerations": _tolerations,
    "serviceAccount": _service_account,
    "rbacCreate": _rbac_create,
    "networkPolicy": _network_policy,
    "podDisruptionBudget": _budget,
    "updateStrategy": _update_strategy,
}
