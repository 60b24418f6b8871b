"""The keys that the GPU Operator's chart reads, release by release, and a check of values against them.

The chart has no schema: Helm skips an unknown key without a word, and of what goes whole into the ClusterPolicy the
API server drops the fields it does not know.

Source: NVIDIA/gpu-operator@v25.10.1, @v26.3.3 and @v26.7.0, deployments/gpu-operator: templates/ for what is read,
crds/ for what lies below keys that templates copy whole; kubernetes-sigs/node-feature-discovery@v0.18.2, @v0.18.3 and
@v0.19.0, deployment/helm/node-feature-discovery, for what lies below ``node-feature-discovery``.
``python -m tests.operator_keys`` compares this table with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gpu_constructs import _fields, _helm
from gpu_constructs._helm import Key
from gpu_constructs.errors import GpuConstructsError, did_you_mean
from gpu_constructs.operator.values import NFD
from gpu_constructs.versions import GPU_OPERATOR, GpuOperatorRelease

_RELEASES = tuple(GPU_OPERATOR)
_Tree = Mapping[str, Any]


def _since(first: str, kind: str | _Tree) -> Any:
    return _limited(kind, _RELEASES[_RELEASES.index(first) :])


def _until(last: str, kind: str | _Tree) -> Any:
    return _limited(kind, _RELEASES[: _RELEASES.index(last) + 1])


def _limited(kind: str | _Tree, releases: Sequence[str]) -> Any:
    if isinstance(kind, str):
        return Key(type=kind, releases=releases)
    return {
        name: _limited(below, releases) if isinstance(below, str | Mapping) else below for name, below in kind.items()
    }


def _dead(why_not: str, *, default: Any = None) -> Key:
    return Key(type="any", why_not=why_not, default=default)


# A type is one of _SCALARS, words to choose from ('a|b'), [type] for a list, {type} for a mapping with any keys, or
# one of STRUCTS, mappings with these keys and no other; a key with '!' must be there.
STRUCTS: Mapping[str, Mapping[str, str]] = {
    "env": {"name": "text!", "value": "text"},
    "container env": {"name": "text!", "value": "text", "valueFrom": "map"},
    "secret": {"name": "text!"},
    "toleration": {
        "key": "text",
        "operator": "|Exists|Equal|Lt|Gt",
        "value": "text",
        "effect": "|NoSchedule|PreferNoSchedule|NoExecute",
        "tolerationSeconds": "number",
    },
    "resources": {"limits": "{number or text}", "requests": "{number or text}"},
    "container resources": {"limits": "{quantity}", "requests": "{quantity}", "claims": "[map]"},
    "relabeling": {
        "action": "text",
        "modulus": "number",
        "regex": "text",
        "replacement": "text",
        "separator": "text",
        "sourceLabels": "[text]",
        "targetLabel": "text",
    },
    "kata runtime class": {"name": "text!", "nodeSelector": "{text}", "artifacts": "kata artifacts!"},
    "kata artifacts": {"url": "text!", "pullSecret": "text"},
    "health check": {"enabled": "bool", "port": "number"},
    "sysctl": {"name": "text!", "value": "text!"},
    "profile": {"type": "text!", "localhostProfile": "text"},
    "windows options": {
        "gmsaCredentialSpec": "text",
        "gmsaCredentialSpecName": "text",
        "hostProcess": "bool",
        "runAsUserName": "text",
    },
    "selinux": {"user": "text", "role": "text", "type": "text", "level": "text"},
}
_WHY_NOT_IN: Mapping[tuple[str, str], str] = {
    ("env", "valueFrom"): "ClusterPolicy takes name and value only, and the API server drops the rest; write the value",
}

_PULL_POLICY = "Always|IfNotPresent|Never"
_PROGRAM: _Tree = {"repository": "text", "image": "text", "version": "text", "imagePullPolicy": _PULL_POLICY}
_IMAGE: _Tree = {**_PROGRAM, "imagePullSecrets": "[text]"}
_SIDE_CONTAINER: _Tree = {"enabled": "bool", **_IMAGE, "env": "[env]", "args": "[text]"}
_OPERAND: _Tree = {**_SIDE_CONTAINER, "resources": "resources", "hostNetwork": _since("26.3.3", "bool")}
_OPERAND_WITHOUT_ARGS: _Tree = {key: kind for key, kind in _OPERAND.items() if key != "args"}
_PROBE: _Tree = dict.fromkeys(
    ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"), "number"
)
_SERVICE_MONITOR: _Tree = {
    "enabled": "bool",
    "interval": "duration",
    "scrapeTimeout": _since("26.7.0", "duration"),
    "honorLabels": "bool",
    "additionalLabels": "{text}",
    "relabelings": "[relabeling]",
}
_VALIDATED = ("driver", "toolkit", "cuda", "plugin", "vfioPCI", "vgpuManager", "vgpuDevices")
_NAMED: _Tree = {"name": "text"}
_DRA_CONTAINER: _Tree = {"env": "[env]", "resources": "resources"}
_DRA_PLUGIN: _Tree = {**_DRA_CONTAINER, "healthcheck": "health check"}

_NOT_RENDERED = "is a field of ClusterPolicy that the chart does not render; leave it out"
_POD_SECURITY_CONTEXT: _Tree = {
    "runAsUser": "number",
    "runAsGroup": "number",
    "runAsNonRoot": "bool",
    "fsGroup": "number",
    "fsGroupChangePolicy": "text",
    "supplementalGroups": "[number]",
    "supplementalGroupsPolicy": "text",
    "sysctls": "[sysctl]",
    "seccompProfile": "profile",
    "appArmorProfile": "profile",
    "seLinuxChangePolicy": "text",
    "seLinuxOptions": "selinux",
    "windowsOptions": "windows options",
}

_OPERATOR: _Tree = {
    "nameOverride": "text",
    "fullnameOverride": _dead("names no object: the chart defines it and never uses it; leave it out"),
    "platform": {"openshift": "bool"},
    "nfd": {"enabled": "bool", "nodefeaturerules": "bool"},
    "psa": {"enabled": "bool"},
    "psp": _dead(_NOT_RENDERED),
    "cdi": {
        "enabled": "bool",
        "nriPluginEnabled": _since("26.3.3", "bool"),
        "default": _dead("has had no effect since release 25.10: no controller reads it; leave it out", default=False),
    },
    "sandboxWorkloads": {
        "enabled": "bool",
        "defaultWorkload": "container|vm-passthrough|vm-vgpu",
        "mode": _since("26.3.3", "kubevirt|kata"),
    },
    "hostPaths": {"rootFS": "text", "driverInstallDir": "text", "kubeletRootDir": _since("26.7.0", "text")},
    "daemonsets": {
        "labels": "{text}",
        "annotations": "{text}",
        "priorityClassName": "text",
        "tolerations": "[toleration]",
        "updateStrategy": "RollingUpdate|OnDelete",
        "rollingUpdate": {"maxUnavailable": "number or text"},
        "podSecurityContext": _since("26.7.0", _POD_SECURITY_CONTEXT),
    },
    "validator": {
        **{key: kind for key, kind in _OPERAND.items() if key != "enabled"},
        **{component: {"env": "[env]"} for component in _VALIDATED},
    },
    "operator": {
        **_IMAGE,
        "env": _since("26.7.0", "[container env]"),
        "initContainer": _until("26.3.3", _IMAGE),
        "priorityClassName": "text",
        "runtimeClass": "text",
        "defaultRuntime": _dead(_NOT_RENDERED),
        "defaultGPUMode": _dead("is rendered into a field that ClusterPolicy does not have; leave it out"),
        "nodeSelector": "{text}",
        "use_ocp_driver_toolkit": "bool",
        "cleanupCRD": "bool",
        "upgradeCRD": "bool",
        "tolerations": "[toleration]",
        "annotations": "{text}",
        "labels": "{text}",
        "affinity": "map",
        "logging": {
            "timeEncoding": "epoch|millis|nano|iso8601|rfc3339|rfc3339nano",
            "level": "number or text",
            "develMode": "bool",
        },
        "resources": "container resources",
        "metrics": _since("26.7.0", {"serviceMonitor": _SERVICE_MONITOR}),
    },
    "mig": {"strategy": "none|single|mixed"},
    "driver": {
        **_OPERAND,
        "nvidiaDriverCRD": {
            "enabled": "bool",
            "deployDefaultCR": "bool",
            "driverType": "gpu|vgpu|vgpu-host-manager",
            "nodeSelector": _until("26.3.3", "{text}"),
        },
        "useNvidiaDriverCRD": _dead("is a field of ClusterPolicy; the chart's key is driver.nvidiaDriverCRD.enabled"),
        "useOpenKernelModules": _dead(
            "is a field of ClusterPolicy without effect; the chart's key is driver.kernelModuleType"
        ),
        "kernelModuleType": "auto|open|proprietary",
        "usePrecompiled": "bool",
        "startupProbe": _PROBE,
        "livenessProbe": _PROBE,
        "readinessProbe": _PROBE,
        "rdma": {"enabled": "bool", "useHostMofed": "bool"},
        "upgradePolicy": {
            "autoUpgrade": "bool",
            "maxParallelUpgrades": "number",
            "maxUnavailable": "number or text",
            "waitForCompletion": {"timeoutSeconds": "number", "podSelector": "text"},
            "gpuPodDeletion": {"force": "bool", "timeoutSeconds": "number", "deleteEmptyDir": "bool"},
            "podDeletion": _dead("is a field of ClusterPolicy; the chart's key is driver.upgradePolicy.gpuPodDeletion"),
            "drain": {
                "enable": "bool",
                "force": "bool",
                "podSelector": "text",
                "timeoutSeconds": "number",
                "deleteEmptyDir": "bool",
            },
        },
        "manager": {**_IMAGE, "env": "[env]"},
        "repoConfig": {"configMapName": "text"},
        "certConfig": _NAMED,
        "licensingConfig": {"secretName": "text", "configMapName": "text", "nlsEnabled": "bool"},
        "virtualTopology": {"config": "text"},
        "kernelModuleConfig": _NAMED,
        "secretEnv": "text",
    },
    "toolkit": {**_OPERAND_WITHOUT_ARGS, "args": _dead(_NOT_RENDERED), "installDir": "text"},
    "devicePlugin": {
        **_OPERAND,
        "config": {"create": "bool", "name": "text", "default": "number or text", "data": "{text}"},
        "mps": {
            "root": _dead(
                "is documented by the chart and never read: the folder is always /run/nvidia/mps; leave it out",
                default="/run/nvidia/mps",
            )
        },
    },
    "dcgm": {**_OPERAND, "hostPort": _dead(_NOT_RENDERED)},
    "dcgmExporter": {
        **_OPERAND,
        "annotations": _since("26.3.3", "{text}"),
        "hostPID": "bool",
        "hpcJobMapping": {"enabled": "bool", "directory": "text"},
        "enablePodLabels": _since("26.3.3", "bool"),
        "enablePodUID": _since("26.3.3", "bool"),
        "podLabelAllowlistRegex": _since("26.3.3", "[text]"),
        "service": {"internalTrafficPolicy": "Cluster|Local", "type": "text"},
        "serviceMonitor": _SERVICE_MONITOR,
        "config": {"create": "bool", "name": "text", "data": "text"},
    },
    "gfd": _OPERAND,
    "migManager": {
        **_OPERAND,
        "config": {"create": "bool", "name": "text", "default": "|all-disabled", "data": "{text}"},
        "gpuClientsConfig": _NAMED,
    },
    "nodeStatusExporter": _OPERAND,
    "gds": _SIDE_CONTAINER,
    "gdrcopy": _SIDE_CONTAINER,
    "vgpuManager": {
        **_OPERAND,
        "driverManager": {**_PROGRAM, "env": "[env]", "imagePullSecrets": _dead(_NOT_RENDERED)},
        "kernelModuleConfig": _since("26.3.3", _NAMED),
    },
    "vgpuDeviceManager": {**_OPERAND, "config": {"name": "text", "default": "text"}},
    "vfioManager": {
        **_OPERAND,
        "driverManager": {**_PROGRAM, "env": "[env]", "imagePullSecrets": _dead(_NOT_RENDERED)},
    },
    "kataManager": {**_OPERAND, "config": {"artifactsDir": "text", "runtimeClasses": "[kata runtime class]"}},
    "sandboxDevicePlugin": _OPERAND,
    "kataSandboxDevicePlugin": _since("26.3.3", _OPERAND),
    "ccManager": {**_OPERAND, "defaultMode": "on|off|devtools"},
    "clusterPolicy": _since("26.7.0", {"deployCR": "bool"}),
    "gpuCluster": _since("26.7.0", {"deployCR": "bool"}),
    "draDriver": _since(
        "26.7.0",
        {
            **_IMAGE,
            "featureGates": "{bool}",
            "gpus": {"kubeletPlugin": _DRA_PLUGIN},
            "computeDomains": {"enabled": "bool", "controller": _DRA_CONTAINER, "kubeletPlugin": _DRA_PLUGIN},
        },
    ),
    "extraObjects": _since("26.3.3", "[map or text]"),
    "global": {"imagePullSecrets": "[secret]"},
}

_NFD_PROBE: _Tree = {key: kind for key, kind in _PROBE.items() if key != "successThreshold"}
_NFD_BUDGET: _Tree = {
    "enable": "bool",
    "minAvailable": "number or text",
    "maxUnavailable": "number or text",
    "unhealthyPodEvictionPolicy": "IfHealthyBudget|AlwaysAllow",
}
_NFD_COMPONENT: _Tree = {
    "enable": "bool",
    "extraArgs": "[text]",
    "extraEnvs": "[container env]",
    "hostNetwork": "bool",
    "hostUsers": _since("26.7.0", "bool"),
    "dnsPolicy": "text",
    "port": "number",
    "annotations": "{text}",
    "labels": _since("26.7.0", "{text}"),
    "podSecurityContext": "map",
    "initContainers": _since("26.7.0", "[map]"),
    "livenessProbe": _NFD_PROBE,
    "readinessProbe": _PROBE,
    "networkPolicy": _since("26.7.0", {"enabled": "bool", "egress": "[map]", "ingress": "[map]"}),
    "serviceAccount": {"create": "bool", "name": "text", "annotations": "{text}"},
    "rbac": {"create": "bool"},
    "revisionHistoryLimit": "number",
    "resources": "container resources",
    "nodeSelector": "{text}",
    "tolerations": "[toleration]",
    "affinity": "map",
}
_NODE_FEATURE_DISCOVERY: _Tree = {
    "image": {"repository": "text", "tag": "text", "pullPolicy": _PULL_POLICY},
    "imagePullSecrets": "[secret]",
    "global": {"imagePullSecrets": "[secret]"},
    "nameOverride": "text",
    "fullnameOverride": "text",
    "namespaceOverride": "text",
    "priorityClassName": "text",
    "featureGates": "{bool}",
    "postDeleteCleanup": "bool",
    "checksumValuesOnly": _since("26.7.0", "bool"),
    "prometheus": {"enable": "bool", "scrapeInterval": "duration", "labels": "{text}"},
    "master": {
        **_NFD_COMPONENT,
        "config": "map",
        "instance": "text",
        "resyncPeriod": "text",
        "denyLabelNs": "[text]",
        "extraLabelNs": "[text]",
        "enableTaints": "bool",
        "nfdApiParallelism": "number",
        "deploymentAnnotations": "{text}",
        "replicaCount": "number",
        "securityContext": "map",
        "startupProbe": _NFD_PROBE,
        "podDisruptionBudget": _NFD_BUDGET,
    },
    "worker": {
        **_NFD_COMPONENT,
        "config": "map",
        "ownerRefs": _since("26.7.0", "[text]"),
        "daemonsetAnnotations": "{text}",
        "mountUsrSrc": "bool",
        "priorityClassName": "text",
        "securityContext": "map",
        "updateStrategy": {
            "type": "RollingUpdate|OnDelete",
            "rollingUpdate": {"maxUnavailable": "number or text", "maxSurge": "number or text"},
        },
    },
    "gc": {
        **_NFD_COMPONENT,
        "interval": "text",
        "deploymentAnnotations": "{text}",
        "replicaCount": "number",
        "podDisruptionBudget": _NFD_BUDGET,
    },
    "topologyUpdater": {
        **_NFD_COMPONENT,
        "config": "map",
        "createCRDs": "bool",
        "updateInterval": "text",
        "watchNamespace": "text",
        "kubeletStateDir": "text",
        "kubeletConfigPath": "text",
        "kubeletPodResourcesSockPath": "text",
        "podSetFingerprint": "bool",
        "daemonsetAnnotations": "{text}",
        "securityContext": "map",
    },
}


def _flat(prefix: str, tree: _Tree) -> Iterator[tuple[str, Key]]:
    for name, below in tree.items():
        path = f"{prefix}{name}"
        if isinstance(below, Key):
            yield path, below
        elif isinstance(below, str):
            yield path, Key(type=below)
        else:
            yield from _flat(f"{path}.", below)


KEYS: Mapping[str, Key] = dict(_flat("", {**_OPERATOR, NFD: _NODE_FEATURE_DISCOVERY}))
"""By dotted key its type, the releases that read it where not all do, and why it does nothing."""

_SECTIONS = frozenset(path[:dot] for path in KEYS for dot, letter in enumerate(path) if letter == ".")

MAY_BE_NULL = frozenset(
    {
        *(f"validator.{component}" for component in _VALIDATED),
        *(f"driver.{probe}Probe" for probe in ("startup", "liveness", "readiness")),
        *(f"driver.{config}Config" for config in ("repo", "cert", "licensing", "kernelModule")),
        "driver.virtualTopology",
        "driver.upgradePolicy",
        "daemonsets.rollingUpdate",
        "daemonsets.podSecurityContext",
        "dcgmExporter.config",
        "dcgmExporter.hpcJobMapping",
        "dcgmExporter.service",
        "dcgmExporter.serviceMonitor",
        "migManager.gpuClientsConfig",
        "vgpuManager.kernelModuleConfig",
        "vgpuDeviceManager.config",
        "kataManager.config",
        "gds",
        "gdrcopy",
        "operator.initContainer",
        "operator.metrics",
        "operator.metrics.serviceMonitor",
        "draDriver.gpus.kubeletPlugin",
        "draDriver.computeDomains.controller",
        "draDriver.computeDomains.kubeletPlugin",
        "global",
        NFD,
        f"{NFD}.global",
        f"{NFD}.worker.updateStrategy",
        f"{NFD}.worker.updateStrategy.rollingUpdate",
    }
)
"""Sections that null takes away; without any other the chart fails to render."""

# What an operand has no key for: the operator places all of them alike.
_OPERANDS = frozenset(
    path.removesuffix(".image") for path in KEYS if re.fullmatch(r"(?!operator|draDriver)[A-Za-z]+\.image", path)
)
_OF_ALL_OPERANDS: Mapping[str, str] = {
    "nodeSelector": (
        "the operator places its operands by its own node labels nvidia.com/gpu.deploy.*; leave it out, and keep a "
        "node free of them by its label nvidia.com/gpu.deploy.operands=false"
    ),
    **{
        key: f"what goes for all operands is daemonsets.{key}; move it there"
        for key in ("tolerations", "priorityClassName", "updateStrategy", "labels", "annotations")
    },
    "affinity": "the operator places its operands by its own node labels nvidia.com/gpu.deploy.*; leave it out",
}

_DURATION = re.compile(
    r"(?:0|(?=.)(?:[0-9]+y)?(?:[0-9]+w)?(?:[0-9]+d)?(?:[0-9]+h)?(?:[0-9]+m)?(?:[0-9]+s)?(?:[0-9]+ms)?)\Z"
)
_SCALARS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "bool": ("true or false", lambda got: isinstance(got, bool)),
    "text": ("text", lambda got: isinstance(got, str)),
    "number": ("a whole number", lambda got: isinstance(got, int) and not isinstance(got, bool)),
    "number or text": ("a whole number or text", lambda got: isinstance(got, int | str) and not isinstance(got, bool)),
    "quantity": ("a number or text", lambda got: isinstance(got, int | float | str) and not isinstance(got, bool)),
    "map": ("a mapping", lambda got: isinstance(got, Mapping)),
    "map or text": ("a mapping or text", lambda got: isinstance(got, Mapping | str)),
    "duration": ("a duration like '15s'", lambda got: isinstance(got, str) and _DURATION.match(got) is not None),
}
# Of resources; other mappings may have a key 'memory' too.
_AMOUNTS = ("{number or text}", "{quantity}")


def check_keys(values: Mapping[str, Any], release: GpuOperatorRelease) -> None:
    """Refuse values of the chart that would have no effect, or make it fail.

    Args:
        values: What ``helm install -f`` would be given; null takes a default away.
        release: Of the operator.

    Raises:
        GpuConstructsError: A key that the chart of the release does not read, or a value of a type that the chart, or
            the object it goes into, does not take. The first one is named.
    """
    if not isinstance(values, Mapping):
        raise GpuConstructsError(f"values must be a mapping; got {_shown(values)}; parse a file with yaml.safe_load")
    _section("", values, release)


def _section(prefix: str, values: Mapping[Any, Any], release: GpuOperatorRelease) -> None:
    for name, value in values.items():
        path = f"{prefix}{name}"
        if not isinstance(name, str):
            raise GpuConstructsError(f"values.{path} must have a text for its key; got {name!r}; quote it")
        if "." in name:
            raise GpuConstructsError(
                f"{f'values.{prefix}'.rstrip('.')}[{name!r}] must be nested: Helm takes no key apart at its dots; got "
                f"{_shown(value)}; write it nested: {_nested(name)}"
            )
        if path in KEYS:
            _key(path, value, KEYS[path], release)
        elif path not in _SECTIONS or not _is_read(path, release):
            _refuse_unknown(path, value, release)
        elif isinstance(value, Mapping):
            _section(f"{path}.", value, release)
        elif value is not None or path not in MAY_BE_NULL:
            fails = ": without it the chart fails to render" if value is None else ""
            raise GpuConstructsError(f"values.{path} must be a mapping{fails}; got {_shown(value)}; leave it out")


def _nested(name: str) -> str:
    first, _, rest = name.partition(".")
    return f"{{{first!r}: {_nested(rest) if rest else '...'}}}"


def _key(path: str, value: Any, key: Key, release: GpuOperatorRelease) -> None:
    says_nothing = value in (None, "", {}, [], key.default)
    if key.releases and release.behaves_like not in key.releases:
        if not says_nothing:
            _refuse_unknown(path, value, release)
    elif key.why_not:
        if not says_nothing:
            raise GpuConstructsError(f"values.{path} {key.why_not}; got {_shown(value)}")
    elif value is not None and not (value == [] and path.endswith(".affinity")):
        # Templates write an affinity where it is not empty, whatever it is.
        _check(f"values.{path}", value, key.type)


def _is_read(section: str, release: GpuOperatorRelease) -> bool:
    return any(
        path.startswith(f"{section}.") and (not key.releases or release.behaves_like in key.releases)
        for path, key in KEYS.items()
    )


def _refuse_unknown(path: str, value: Any, release: GpuOperatorRelease) -> None:
    section, _, name = path.rpartition(".")
    near = _in_other_letters(path, release) or _helm.nearest(path, dict(KEYS), release.behaves_like)
    read = [known for known in _RELEASES if _reads(path, known)]
    if section in _OPERANDS and name in _OF_ALL_OPERANDS and not read:
        way_out = _OF_ALL_OPERANDS[name]
    elif read:
        way_out = f"releases {', '.join(read)} read it; leave it out"
    elif path.startswith("nfd."):
        way_out = f"the keys of Node Feature Discovery stand below {NFD!r}"
    else:
        way_out = f"did you mean {near!r}?" if near and not path.startswith(f"{near}.") else "leave it out"
    raise GpuConstructsError(
        f"values.{path} is no key that the chart of GPU Operator {release.version} reads, and Helm would skip it "
        f"without a word; got {_shown(value)}; {way_out}"
    )


def _in_other_letters(path: str, release: GpuOperatorRelease) -> str:
    """Name the key that is written so but for upper case, hyphens and underscores."""
    return next(
        (known for known in (*KEYS, *_SECTIONS) if _bare(known) == _bare(path) and _reads(known, release.behaves_like)),
        "",
    )


def _bare(path: str) -> str:
    return re.sub(r"[-_]", "", path).lower()


def _reads(path: str, release: str) -> bool:
    return any(
        (known == path or known.startswith(f"{path}.")) and not key.why_not and release in (key.releases or _RELEASES)
        for known, key in KEYS.items()
    )


def _check(path: str, got: Any, kind: str) -> None:
    """Refuse a value that is not of a type; see STRUCTS for how types are written."""
    if kind.startswith("["):
        if not isinstance(got, list | tuple):
            raise GpuConstructsError(f"{path} must be a list; got {_shown(got)}; write it as a list")
        for index, item in enumerate(got):
            _check(f"{path}[{index}]", item, kind[1:-1])
    elif kind.startswith("{"):
        if not isinstance(got, Mapping):
            raise GpuConstructsError(f"{path} must be a mapping; got {_shown(got)}; write it as one")
        for name, item in got.items():
            if not isinstance(name, str):
                raise GpuConstructsError(f"{path} must have texts for keys; got {name!r}; quote it")
            # Within a map, as anywhere, null takes away what the chart has there.
            if item is not None:
                _check(f"{path}[{name!r}]", item, kind[1:-1])
                if kind in _AMOUNTS and _fields.counts_bytes(name) and _fields.lacks_unit(item):
                    raise GpuConstructsError(f"{path}[{name!r}] {_fields.without_unit(item)}")
    elif kind in STRUCTS:
        _check_struct(path, got, kind)
    elif "|" in kind:
        _check_word(path, got, kind.split("|"))
    else:
        _check_scalar(path, got, kind)


def _check_struct(path: str, got: Any, kind: str) -> None:
    struct = STRUCTS[kind]
    if not isinstance(got, Mapping):
        raise GpuConstructsError(f"{path} must be a mapping of {', '.join(struct)}; got {_shown(got)}; write it as one")
    for name, value in got.items():
        if name not in struct:
            why = _WHY_NOT_IN.get((kind, name), f"it takes {', '.join(struct)}")
            raise GpuConstructsError(
                f"{path}.{name} is not taken: {why}; got {_shown(value)}{did_you_mean(name, struct)}"
            )
        if value is not None:
            _check(f"{path}.{name}", value, struct[name].removesuffix("!"))
    for name, member in struct.items():
        if member.endswith("!") and got.get(name) in (None, ""):
            raise GpuConstructsError(f"{path}.{name} is required; got {_shown(got)}; add it, or leave the entry out")


def _check_word(path: str, got: Any, words: Sequence[str]) -> None:
    if got not in words:
        near = did_you_mean(got, words) if isinstance(got, str) else "; quote it" if isinstance(got, bool) else ""
        listed = ", ".join(repr(word) for word in words if word)
        raise GpuConstructsError(f"{path} must be one of {listed}; got {_shown(got)}{near}")


def _check_scalar(path: str, got: Any, kind: str) -> None:
    what, is_it = _SCALARS[kind]
    if is_it(got):
        return
    way_out = ""
    if kind in ("bool", "number") and isinstance(got, str):
        way_out = "; write it without quotes"
    elif "text" in kind and isinstance(got, bool | int | float):
        way_out = "; quote it"
    elif kind == "text" and isinstance(got, Mapping) and set(got) == {"name"}:
        way_out = "; write the name alone"
    raise GpuConstructsError(f"{path} must be {what}; got {_shown(got)}{way_out}")


def _shown(value: object) -> str:
    return _helm.shown(value)
