"""Which fields of the chart's objects a key of its values decides, for keys that this library drops with a warning.

Source: NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0, deployments/helm/nvidia-device-plugin/templates, and the
templates of node-feature-discovery 0.17.3 and 0.19.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from parity_cases import UnreadableCase, load
from parity_fields import Path, matches

_GPU = "plugin|gfd|mps DaemonSet"
_MAIN = "nvidia-device-plugin-ctr|gpu-feature-discovery-ctr|mps-control-daemon-ctr"


@dataclass(frozen=True)
class Field:
    """A field that a key decides: on which objects, where, and what it then says besides what was given."""

    objects: str
    path: str
    says: Any = None


_DRIVER_ROOT = f"pod.containers[{_MAIN}].mounts[/driver-root]"
_SELECTOR = (
    Field("plugin|configs *", "metadata.labels[*]"),
    Field(_GPU, "metadata.labels[*]"),
    Field(_GPU, "pod.labels[*]"),
    Field(_GPU, "spec.selector.matchLabels[*]"),
)
_PODS_OF_GPU: Mapping[str, str] = {
    "imagePullSecrets": "pod.imagePullSecrets",
    "updateStrategy": "spec.updateStrategy",
    "podAnnotations": "pod.annotations",
    "podSecurityContext": "pod.securityContext",
    "nodeSelector": "pod.nodeSelector",
    "tolerations": "pod.tolerations",
    "priorityClassName": "pod.priorityClassName",
    "runtimeClassName": "pod.runtimeClassName",
    "image": "pod.*[*].image",
    "image.repository": "pod.*[*].image",
    "image.tag": "pod.*[*].image",
    "image.pullPolicy": "pod.*[*].imagePullPolicy",
    "resources": "pod.*[*].resources",
}
_OF_COMPONENT: Mapping[str, tuple[str, ...]] = {
    "extraArgs": ("pod.containers[*].args",),
    "extraEnvs": ("pod.containers[*].env",),
    "hostNetwork": ("pod.hostNetwork", "pod.dnsPolicy"),
    "hostUsers": ("pod.hostUsers",),
    "dnsPolicy": ("pod.dnsPolicy",),
    "port": ("pod.containers[*].ports", "pod.containers[*].args[-port]"),
    "metricsPort": ("pod.containers[*].ports", "pod.containers[*].args[-metrics]"),
    "healthPort": ("pod.containers[*].ports", "pod.containers[*].args[-grpc-health]", "pod.containers[*].*.grpc"),
    "annotations": ("pod.annotations",),
    "labels": ("pod.labels",),
    "podSecurityContext": ("pod.securityContext",),
    "securityContext": ("pod.containers[*].securityContext",),
    "initContainers": ("pod.initContainers[*]",),
    "revisionHistoryLimit": ("spec.revisionHistoryLimit",),
    "resources": ("pod.containers[*].resources",),
    "nodeSelector": ("pod.nodeSelector",),
    "tolerations": ("pod.tolerations",),
    "affinity": ("pod.affinity", "pod.nodes", "pod.preferred nodes"),
    "deploymentAnnotations": ("metadata.annotations",),
    "daemonsetAnnotations": ("metadata.annotations",),
    "replicaCount": ("spec.replicas", "spec.strategy.type", "pod.containers[*].args[-enable-leader-election]"),
    "startupProbe": ("pod.containers[*].startupProbe",),
    "livenessProbe": ("pod.containers[*].livenessProbe",),
    "readinessProbe": ("pod.containers[*].readinessProbe",),
    "instance": ("pod.containers[*].args[-instance]",),
    "resyncPeriod": ("pod.containers[*].args[-resync-period]",),
    "denyLabelNs": ("pod.containers[*].args[-deny-label-ns]",),
    "extraLabelNs": ("pod.containers[*].args[-extra-label-ns]",),
    "enableTaints": ("pod.containers[*].args[-enable-taints]",),
    "nfdApiParallelism": ("pod.containers[*].args[-nfd-api-parallelism]",),
    "featureRulesController": ("pod.containers[*].args[-featurerules-controller]",),
    "interval": ("pod.containers[*].args[-gc-interval]",),
    "ownerRefs": ("pod.containers[*].args[-owner-refs]",),
    "updateStrategy": ("spec.updateStrategy",),
    "priorityClassName": ("pod.priorityClassName",),
    "mountUsrSrc": ("pod.containers[*].mounts[/host-usr/src]",),
    "updateInterval": ("pod.containers[*].args[-sleep-interval]",),
    "watchNamespace": ("pod.containers[*].args[-watch-namespace]",),
    "podSetFingerprint": ("pod.containers[*].args[-pods-fingerprint]",),
    "kubeletStateDir": (
        "pod.containers[*].mounts[/host-var/lib/kubelet]",
        "pod.containers[*].args[-kubelet-state-dir]",
    ),
    "kubeletConfigPath": (
        "pod.containers[*].mounts[/host-var/kubelet-config]",
        "pod.containers[*].args[-kubelet-config-uri]",
    ),
    "kubeletPodResourcesSockPath": (
        "pod.containers[*].mounts[/host-var/lib/kubelet-podresources]",
        "pod.containers[*].mounts[/host-var/lib/kubelet-podresources/kubelet.sock]",
    ),
}
SETTINGS_OF_VALUES: Mapping[str, Path] = {
    key: tuple(path.split("."))
    for key, path in {
        "migStrategy": "flags.migStrategy",
        "failOnInitError": "flags.failOnInitError",
        "deviceDiscoveryStrategy": "flags.deviceDiscoveryStrategy",
        "nvidiaDriverRoot": "flags.nvidiaDriverRoot",
        "nvidiaDevRoot": "flags.nvidiaDevRoot",
        "gdrcopyEnabled": "flags.gdrcopyEnabled",
        "gdsEnabled": "flags.gdsEnabled",
        "mofedEnabled": "flags.mofedEnabled",
        "deviceListStrategy": "flags.plugin.deviceListStrategy",
        "deviceIDStrategy": "flags.plugin.deviceIDStrategy",
        "compatWithCPUManager": "flags.plugin.passDeviceSpecs",
        "cdi.nvidiaHookPath": "flags.plugin.nvidiaCTKPath",
        "noTimestamp": "flags.gfd.noTimestamp",
        "sleepInterval": "flags.gfd.sleepInterval",
        "mps.root": "flags.mpsRoot",
    }.items()
}
"""The settings of the programs that values become variables for."""

_NFD_PODS = "nfd-master|nfd-worker|nfd-gc|nfd-topology-updater DaemonSet|Deployment"
_COMPONENTS = {"master": "master", "worker": "worker", "gc": "gc", "topologyUpdater": "topology-updater"}


def _governed() -> Iterator[tuple[str, Field]]:
    for key, path in (*SETTINGS_OF_VALUES.items(), ("nvidiaDriverRoot", ("flags", "nvidiaDevRoot"))):
        yield key, Field(_GPU, ".".join(("settings", *path)))
        yield key, Field("configs ConfigMap", ".".join(("file", *path)))
    yield "nvidiaDriverRoot", Field("plugin DaemonSet", f"{_DRIVER_ROOT}.hostPath.path")
    yield "nvidiaDriverRoot", Field("plugin DaemonSet", f"{_DRIVER_ROOT}.readOnly", True)
    # Text is true for a template, whatever it says.
    yield "compatWithCPUManager", Field("plugin DaemonSet", "pod.containers[*].securityContext.privileged", True)
    yield "securityContext", Field("plugin DaemonSet", "pod.containers[*].securityContext.**")
    yield "gfd.securityContext", Field("gfd DaemonSet", "pod.containers[*].securityContext.**")
    yield "cdi.featureFlags", Field("plugin DaemonSet", f"pod.containers[{_MAIN}].env[CDI_FEATURE_FLAGS]")
    yield "nfd.enableNodeFeatureApi", Field("gfd DaemonSet", "settings.flags.useNodeFeatureAPI")
    for field in _SELECTOR:
        yield "selectorLabelsOverride", field
    for key, path in _PODS_OF_GPU.items():
        yield key, Field(_GPU, path)
        yield key, Field(_GPU, f"{path}.**")
        yield key, Field(_GPU, f"{path}[*].**")
    for key in ("affinity",):
        for path in _OF_COMPONENT[key]:
            yield key, Field(_GPU, f"{path}.**")
            yield key, Field(_GPU, f"{path}[*].**")
    for component, role in _COMPONENTS.items():
        pods = f"nfd-{role} DaemonSet|Deployment"
        for key, paths in _OF_COMPONENT.items():
            for path in paths:
                for below in ("", ".**", "[*].**"):
                    yield f"nfd.{component}.{key}", Field(pods, f"{path}{below}")
        # The API server's own: newest images always.
        yield f"nfd.{component}.initContainers", Field(pods, "pod.initContainers[*].imagePullPolicy", "Always")
        conf = f"data[nfd-{role}.conf]"
        yield f"nfd.{component}.config", Field(f"nfd-{role} ConfigMap", conf)
        yield f"nfd.{component}.config", Field(f"nfd-{role} ConfigMap", f"{conf}.**")
        yield f"nfd.{component}.serviceAccount", Field(pods, "pod.serviceAccountName")
        bindings = f"nfd-{role} RoleBinding|ClusterRoleBinding"
        yield f"nfd.{component}.serviceAccount", Field(bindings, "subjects[*].**")
        yield f"nfd.{component}.serviceAccount", Field(f"nfd-{role} ServiceAccount", "**")
    for key in ("nfd.image", "nfd.image.repository", "nfd.image.tag"):
        yield key, Field(_NFD_PODS, "pod.*[*].image")
    yield "nfd.image.pullPolicy", Field(_NFD_PODS, "pod.*[*].imagePullPolicy")
    for key in ("nfd.imagePullSecrets", "nfd.global.imagePullSecrets", "global.imagePullSecrets"):
        yield key, Field(_NFD_PODS, "pod.imagePullSecrets[*].**")
    yield "nfd.priorityClassName", Field(_NFD_PODS, "pod.priorityClassName")
    yield "nfd.featureGates", Field(_NFD_PODS, "pod.containers[*].args[-feature-gates]")
    yield "nfd.prometheus", Field("nfd PodMonitor", "spec.podMetricsEndpoints[*].interval")
    yield "nfd.prometheus", Field("nfd PodMonitor", "metadata.labels[*]")


@lru_cache(maxsize=1)
def _by_key() -> Mapping[str, tuple[Field, ...]]:
    found: dict[str, list[Field]] = {}
    for key, field in _governed():
        found.setdefault(key, []).append(field)
    return {key: tuple(fields) for key, fields in found.items()}


def fields_decided_by(key: str) -> tuple[Field, ...]:
    """Give the fields that a key decides; ``tolerations[0]`` and ``affinity.x`` decide what their key does."""
    table = _by_key()
    while key and key not in table:
        key = key.rpartition("[" if key.endswith("]") else ".")[0]
    return table.get(key, ())


def decides_path(key: str, objects: str, path: Path) -> bool:
    """Whether a key decides a field, whatever the chart says there."""
    return any(_is_at(field, objects, path) for field in fields_decided_by(key))


def decides(key: str, objects: str, path: Path, chart: Any, given: Any) -> bool:
    """Whether a key decides a field, and what the chart says there is made of what was given."""
    fields = [field for field in fields_decided_by(key) if _is_at(field, objects, path)]
    says = any(field.says is not None and chart == field.says for field in fields)
    return says or (bool(fields) and follows(chart, path[-1], given))


def _is_at(field: Field, objects: str, path: Path) -> bool:
    role, _, kind = objects.partition(" ")
    roles, _, kinds = field.objects.partition(" ")
    is_object = role in roles.split("|") and (kinds == "*" or kind in kinds.split("|"))
    return is_object and matches(field.path, path)


_REPOSITORIES = ("nvcr.io/nvidia/k8s-device-plugin", "registry.k8s.io/nfd/node-feature-discovery", "")


def follows(chart: Any, last: str, given: Any) -> bool:
    """Whether a value of the chart, or the key it stands under, is made of what was given."""
    words = set(_words(given))
    key, text = last.strip("[]"), _text(chart)
    if key == "image":
        repository, _, tag = text.rpartition(":")
        return (repository in words and (tag in words or re.match(r"v[0-9]", tag) is not None)) or (
            repository in _REPOSITORIES and tag in words
        )
    if chart is True and key.startswith("{"):
        return set(_words(load(key))) <= words | {"operator", "Equal"}
    return (
        text in words
        or (chart is True and key in words)
        or (f"{key}={text}" in words or (text == "" and key in words))
        or set(re.split("[=,]", text)) <= words
        or any(text.endswith(f":{word}") or text.startswith(f"{word}:") for word in words)
        or _is_yaml_of(text, given)
        or any(_is_yaml_of(word, chart) for word in words)
    )


def _is_yaml_of(text: str, given: Any) -> bool:
    try:
        return bool(load(text) == given)
    except UnreadableCase:
        return False


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _words(given: Any) -> Iterator[str]:
    if isinstance(given, Mapping):
        for key, value in given.items():
            yield str(key)
            yield from _words(value)
    elif isinstance(given, list | tuple):
        for value in given:
            yield from _words(value)
    elif isinstance(given, int | float) and not isinstance(given, bool):
        yield str(given)
        # Go writes the numbers of a values file as floating point.
        mantissa, _, exponent = f"{Decimal(str(given)).normalize():e}".partition("e")
        yield f"{mantissa}e{int(exponent):+03}"
    elif given is not None:
        yield _text(given)
