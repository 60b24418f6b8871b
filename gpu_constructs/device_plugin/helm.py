"""The values of NVIDIA's chart, key by key, and what becomes of each here.

Source: NVIDIA/k8s-device-plugin@v0.18.2, @v0.19.3 and @v0.20.0,
deployments/helm/nvidia-device-plugin/{values.yaml,templates}.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from gpu_constructs import _fields, placement
from gpu_constructs._container_security import POD_SECURITY_CONTEXT
from gpu_constructs._durations import from_go_duration, go_duration
from gpu_constructs._helm import (
    Key,
    Values,
    coalesced,
    named,
    object_name,
    resources,
    secret_names,
    tolerations,
    update_strategy,
)
from gpu_constructs.device_plugin import config_reader
from gpu_constructs.device_plugin.config import Flags, GfdFlags, PluginConfig, PluginFlags
from gpu_constructs.device_plugin.configs import Configs, FallbackStrategy, Use, object_suffix
from gpu_constructs.device_plugin.consistency import check
from gpu_constructs.device_plugin.daemonset import DevicePlugin
from gpu_constructs.device_plugin.delivery import CHECKSUM, DEFAULT_MPS_ROOT, Defaults, uses_of
from gpu_constructs.device_plugin.mps_control_daemon import MpsControlDaemon
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.feature_discovery import helm as nfd_helm
from gpu_constructs.feature_discovery.gfd import GpuFeatureDiscovery
from gpu_constructs.platforms import Kubernetes, Platform
from gpu_constructs.update_strategy import UpdateStrategy
from gpu_constructs.versions import DevicePluginRelease

CHART = "nvidia-device-plugin"
_NEW = ("0.20.0",)
_OLD = ("0.18.2",)
_REPOSITORY = "nvcr.io/nvidia/k8s-device-plugin"

_FLAGS: Mapping[str, tuple[Any, str]] = {
    "migStrategy": (Flags, "mig_strategy"),
    "failOnInitError": (Flags, "fail_on_init_error"),
    "nvidiaDriverRoot": (Flags, "nvidia_driver_root"),
    "nvidiaDevRoot": (Flags, "nvidia_dev_root"),
    "gdrcopyEnabled": (Flags, "gdrcopy_enabled"),
    "gdsEnabled": (Flags, "gds_enabled"),
    "mofedEnabled": (Flags, "mofed_enabled"),
    "deviceDiscoveryStrategy": (Flags, "device_discovery_strategy"),
    "compatWithCPUManager": (PluginFlags, "pass_device_specs"),
    "deviceListStrategy": (PluginFlags, "device_list_strategy"),
    "deviceIDStrategy": (PluginFlags, "device_id_strategy"),
    "cdi.nvidiaHookPath": (PluginFlags, "nvidia_ctk_path"),
    "noTimestamp": (GfdFlags, "no_timestamp"),
    "sleepInterval": (GfdFlags, "sleep_interval"),
}
_SECTIONS: Mapping[Any, str] = {Flags: "flags", PluginFlags: "flags.plugin", GfdFlags: "flags.gfd"}


def _flag(path: str, kind: str) -> dict[str, Key]:
    section, member = _FLAGS[path]
    return {path: Key(type=kind, to=f"config: {_SECTIONS[section]}.{member}")}


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_GPU_NODES = [
    {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    for key, value in (
        ("feature.node.kubernetes.io/pci-10de.present", "true"),
        ("feature.node.kubernetes.io/cpu-model.vendor_id", "NVIDIA"),
        ("nvidia.com/gpu.present", "true"),
    )
]
_AFFINITY = {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": _GPU_NODES}}}
_TOLERATIONS = [
    {"key": "CriticalAddonsOnly", "operator": "Exists"},
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
]
_ALWAYS = (placement.CRITICAL_ADDONS, placement.GPU_TAINT)
_HOST_NETWORK = "host_network=True"

KEYS: dict[str, Key] = {
    "config.name": Key(type="text", to="config=Configs.external(name)"),
    "config.map": Key(type="map", to="config=PluginConfig.from_yaml(text), several: config=Configs.named(...)"),
    "config.default": Key(type="number or text", to="default= of Configs"),
    "config.fallbackStrategies": Key(
        type="list", to="resolved when synthesizing; fallback_strategies= of Configs", default=["named", "single"]
    ),
    **_flag("compatWithCPUManager", "bool"),
    **_flag("migStrategy", "text"),
    **_flag("failOnInitError", "bool"),
    **_flag("deviceListStrategy", "text"),
    **_flag("deviceIDStrategy", "text"),
    **_flag("nvidiaDriverRoot", "text"),
    **_flag("nvidiaDevRoot", "text"),
    **_flag("gdrcopyEnabled", "bool"),
    **_flag("gdsEnabled", "bool"),
    **_flag("mofedEnabled", "bool"),
    **_flag("deviceDiscoveryStrategy", "text"),
    **_flag("noTimestamp", "bool"),
    **_flag("sleepInterval", "text"),
    "nameOverride": Key(type="text", to="name="),
    "fullnameOverride": Key(type="text", to="name="),
    "namespaceOverride": Key(type="text", to="namespace=; Node Feature Discovery stays in the release's"),
    "selectorLabelsOverride": Key(
        type="map",
        why_not="would take away the labels that tell the pods of the programs from each other; leave it out",
    ),
    "allowDefaultNamespace": Key(type="bool", to="allow_default_namespace="),
    "imagePullSecrets": Key(type="list", to="image_pull_secrets="),
    "image.repository": Key(type="text", to="image=", default=_REPOSITORY),
    "image.pullPolicy": Key(type="text", to="image_pull_policy="),
    "image.tag": Key(type="text", to="image="),
    "updateStrategy": Key(type="map", to="update_strategy=", default={"type": "RollingUpdate"}),
    "podAnnotations": Key(type="map", to="pod_annotations="),
    "podSecurityContext": Key(type="map", to="pod_security_context="),
    "securityContext": Key(type="map", to="device_plugin=DevicePlugin(security_context=...)"),
    "resources": Key(type="map", to="resources="),
    "nodeSelector": Key(type="map", to="node_selector="),
    "affinity": Key(type="map", to="affinity=", default=_AFFINITY),
    "tolerations": Key(type="list", to="tolerations=, which reach Node Feature Discovery too", default=_TOLERATIONS),
    "priorityClassName": Key(type="text", to="priority_class_name=", default="system-node-critical"),
    "runtimeClassName": Key(type="text", to="runtime_class="),
    "namespace": Key(type="text", why_not="is refused by the chart too; pass namespace="),
    "devicePlugin.enabled": Key(type="bool", to="device_plugin=", default=True),
    "devicePlugin.enableHostNetwork": Key(
        type="bool", to=f"device_plugin=DevicePlugin({_HOST_NETWORK})", releases=_NEW
    ),
    "gfd.enabled": Key(type="bool", to="gpu_feature_discovery="),
    "gfd.nameOverride": Key(
        type="text", why_not="is never read by the chart; leave it out", default="gpu-feature-discovery"
    ),
    "gfd.namespaceOverride": Key(type="text", why_not="is never read by the chart; leave it out", default=""),
    "gfd.noTimestamp": Key(type="bool", why_not="is never read by the chart; it reads 'noTimestamp'"),
    "gfd.sleepInterval": Key(type="text", why_not="is never read by the chart; it reads 'sleepInterval'"),
    "gfd.securityContext": Key(type="map", to="gpu_feature_discovery=GpuFeatureDiscovery(security_context=...)"),
    "gfd.enableHostNetwork": Key(
        type="bool", to=f"gpu_feature_discovery=GpuFeatureDiscovery({_HOST_NETWORK})", releases=_NEW
    ),
    "nfd.enabled": Key(type="bool", to="node_feature_discovery="),
    "nfd.enableNodeFeatureApi": Key(
        type="bool", to="nothing: GPU Feature Discovery always publishes a NodeFeature", releases=_OLD
    ),
    "mps.root": Key(type="text", to="mps_control_daemon=MpsControlDaemon(root=...)", default=DEFAULT_MPS_ROOT),
    "mps.enableHostPID": Key(type="bool", to="mps_control_daemon=MpsControlDaemon(host_pid=...)", default=True),
    "mps.enableHostNetwork": Key(
        type="bool", to=f"mps_control_daemon=MpsControlDaemon({_HOST_NETWORK})", releases=_NEW
    ),
    **_flag("cdi.nvidiaHookPath", "text"),
    "cdi.featureFlags": Key(type="text", to="device_plugin=DevicePlugin(cdi_feature_flags=...)"),
    **nfd_helm.KEYS,
}

_Served = Callable[[PluginConfig], None]


def chart_options(
    values: Mapping[str, Any],
    *,
    release_name: str,
    namespace: str,
    release: DevicePluginRelease,
    behaves_like: str,
    platform: Platform,
    strict: bool,
) -> dict[str, Any]:
    """Give the keywords of the chart that say what the values say.

    Raises:
        GpuConstructsError: A key that the chart does not read, or a value that it, or the programs, would
            refuse or ignore.
    """
    if isinstance(values, Mapping) and values.get("nfd", {}) is None:
        values = {**values, "nfd": nfd_helm.WITHOUT_THE_OUTER_CHARTS}
    read = Values(values, KEYS, release=behaves_like, strict=strict)
    plugin, labeler, mps = _device_plugin(read), _gpu_feature_discovery(read), _mps(read)
    served = partial(_served, release=release, has_plugin=plugin is not False, has_labeler=labeler is not False)
    config = _configs(read, served, has_mps=release.config_manager_survives_host_pid or not mps.host_pid)
    uses = _uses(config)
    gpu_namespace = named(read, "namespaceOverride", _fields.dns_label) or namespace
    options: dict[str, Any] = {
        "name": _name(read, release_name, config),
        "instance": release_name,
        "namespace": gpu_namespace,
        "config": config,
        "device_plugin": _sufficient(read, "securityContext", plugin, uses, platform),
        "gpu_feature_discovery": _sufficient(read, "gfd.securityContext", labeler, uses, platform),
        "node_feature_discovery": _node_feature_discovery(
            read,
            release_name=release_name,
            namespace=namespace,
            gpu_namespace=gpu_namespace,
            release=release.node_feature_discovery,
        ),
        "mps_control_daemon": mps,
        "allow_default_namespace": read.get("allowDefaultNamespace", False)
        or read.get("namespaceOverride") == "default",
        "runtime_class": named(read, "runtimeClassName", _fields.dns_subdomain),
        **_pods(read),
    }
    if "image.repository" in read or "image.tag" in read:
        image = f"{read.get('image.repository', _REPOSITORY)}:{read.get('image.tag') or f'v{release.version}'}"
        if read.accepts("image", partial(_fields.image, "image", image)):
            options["image"] = image
    if "priorityClassName" in read:
        priority_class = named(read, "priorityClassName", _fields.dns_subdomain)
        if priority_class or not read.get("priorityClassName"):
            options["priority_class_name"] = priority_class
    return options


def _served(config: PluginConfig, *, release: DevicePluginRelease, has_plugin: bool, has_labeler: bool) -> None:
    """Refuse what the programs that are installed would refuse or ignore; the chart warns of what works badly."""
    with warnings.catch_warnings(action="ignore"):
        check(
            Configs.named({"default": config}, default="default"),
            Defaults(
                device_list_strategy=(),
                device_discovery_strategy=None,
                fail_on_init_error=None,
                mps_root=DEFAULT_MPS_ROOT,
            ),
            id="",
            release=release,
            platform=Kubernetes(),
            has_plugin=has_plugin,
            has_gpu_feature_discovery=has_labeler,
        )


# --- pods -----------------------------------------------------------------------------------------------------


def _texts(keyword: str, given: Any) -> None:
    for key, value in given.items():
        for text in (key, value):
            if not isinstance(text, str):
                raise GpuConstructsError(f"{keyword} must hold text, got {text!r}; quote it")


def _labels(keyword: str, given: Any) -> None:
    _texts(keyword, given)
    _fields.labels(keyword, given)


def _annotations(keyword: str, given: Any) -> None:
    _texts(keyword, given)
    _fields.labels(keyword, dict.fromkeys(given, ""))
    for key in given:
        if key.endswith(CHECKSUM):
            raise GpuConstructsError(f"{keyword} must not hold {key!r}: this library sets it; leave it out")


def _pod_security_context(keyword: str, given: Any) -> None:
    for key in given:
        _fields.one_of(f"{keyword} key", key, POD_SECURITY_CONTEXT)


def _pull_policy(keyword: str, given: Any) -> None:
    _fields.one_of(keyword, given, ("Always", "IfNotPresent", "Never"))


def _affinity(keyword: str, given: Any) -> None:
    for key, rules in given.items():
        _fields.one_of(f"{keyword} key", key, ("nodeAffinity", "podAffinity", "podAntiAffinity"))
        _fields.of_type(f"{keyword}[{key!r}]", rules, Mapping[str, Any])
    required = given.get("nodeAffinity", {}).get(_REQUIRED, {"nodeSelectorTerms": [{}]})
    _fields.of_type(_REQUIRED, required, Mapping[str, Sequence[Mapping[str, Any]]])
    if not required.get("nodeSelectorTerms"):
        raise GpuConstructsError(f"{_REQUIRED} must hold nodeSelectorTerms; got {required!r}")


def _update_strategy(given: Mapping[str, Any]) -> UpdateStrategy:
    strategy = update_strategy(given)
    if strategy.max_surge not in (None, 0, "0%"):
        raise GpuConstructsError("maxSurge must be left out: two plugins on a node would share one socket")
    return strategy


_OF_PODS: Mapping[str, tuple[str, Callable[[str, Any], None]]] = {
    "nodeSelector": ("node_selector", _labels),
    "podAnnotations": ("pod_annotations", _annotations),
    "podSecurityContext": ("pod_security_context", _pod_security_context),
    "image.pullPolicy": ("image_pull_policy", _pull_policy),
    "affinity": ("affinity", _affinity),
}


def _pods(read: Values) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for path, (keyword, accepted) in _OF_PODS.items():
        value = read.get(path)
        # A null takes the chart's affinity away; elsewhere nothing is what the chart has.
        is_said = bool(value) or (path == "affinity" and path in read)
        if is_said and read.accepts(path, partial(accepted, keyword, value)):
            options[keyword] = value
    amounts = resources(read, "resources", read.get("resources", {}))
    if amounts is not None:
        options["resources"] = amounts
    made: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
        "imagePullSecrets": ("image_pull_secrets", secret_names),
        "updateStrategy": ("update_strategy", _update_strategy),
    }
    for path, (keyword, make) in made.items():
        value = read.attempt(path, partial(make, read.get(path))) if read.get(path) else None
        if value is not None:
            options[keyword] = value
    if "tolerations" in read:
        # Ours come on top of the chart's own, and reach Node Feature Discovery, which the chart's own never do.
        options["tolerations"] = [one for one in tolerations(read, "tolerations") if one not in _ALWAYS]
    return options


def _device_plugin(read: Values) -> bool | DevicePlugin:
    if not read.get("devicePlugin.enabled", True):
        return False
    flags = [word.strip() for word in read.get("cdi.featureFlags", "").split(",") if word.strip()]
    return read.made_of(
        DevicePlugin,
        {
            "security_context": ("securityContext", read.get("securityContext") or None),
            "host_network": _at(read, "devicePlugin.enableHostNetwork"),
            "cdi_feature_flags": ("cdi.featureFlags", flags),
        },
    )


def _gpu_feature_discovery(read: Values) -> bool | GpuFeatureDiscovery:
    if not read.get("gfd.enabled", False):
        return False
    # The chart's own is laid under what is given, and does not count where nothing is.
    given = read.get("gfd.securityContext")
    return read.made_of(
        GpuFeatureDiscovery,
        {
            "security_context": (
                "gfd.securityContext",
                coalesced({"privileged": True}, given) or None if given else None,
            ),
            "host_network": _at(read, "gfd.enableHostNetwork"),
        },
    )


def _mps(read: Values) -> MpsControlDaemon:
    return read.made_of(
        MpsControlDaemon,
        {
            "root": _at(read, "mps.root"),
            "host_pid": _at(read, "mps.enableHostPID"),
            "host_network": _at(read, "mps.enableHostNetwork"),
        },
    )


def _at(read: Values, path: str) -> tuple[str, Any]:
    return path, read.get(path)


def _sufficient(read: Values, path: str, component: Any, uses: frozenset[str], platform: Platform) -> Any:
    """Drop a security context that lacks what the configuration needs: the pods would fail."""
    if isinstance(component, bool) or component.security_context is None:
        return component
    needed = component.rights(uses, platform)
    if needed.are_in(component.security_context):
        return component
    read.refuse(path, f"lacks {needed}, which the configuration needs, got {dict(component.security_context)!r}")
    return dataclasses.replace(component, security_context=None)


def _node_feature_discovery(read: Values, **given: Any) -> Any:
    is_bundled = read.get("nfd.enabled", read.get("gfd.enabled", False))
    # The chart's affinity asks for the labels of a Node Feature Discovery either way.
    made = nfd_helm.node_feature_discovery(read, **given) if is_bundled else None
    return made or "external"


def _name(read: Values, release_name: str, config: PluginConfig | Configs) -> str:
    """Give the name as the chart does, short enough for what stands behind it, which the chart cuts off instead."""
    others = [] if isinstance(config, PluginConfig) else [c for c in config.configs if c != config.default]
    suffix = max([len(f"-{object_suffix(other)}") for other in others], default=0)
    return object_name(
        read,
        "",
        release_name=release_name,
        default=CHART,
        longest=63 - len("-gpu-feature-discovery") - suffix,
        check=_fields.dns_subdomain,
    )


# --- configurations -------------------------------------------------------------------------------------------


def _overrides(read: Values, served: _Served) -> dict[str, tuple[Any, str, Any]]:
    """Give the values that the chart writes as environment variables, which override every file."""
    found: dict[str, tuple[Any, str, Any]] = {}
    for path, (section, member) in _FLAGS.items():
        value = read.get(path)
        if value is None:
            continue
        if path == "deviceListStrategy":
            words = tuple(word.strip() for word in value.split(","))
            value = words[0] if len(words) == 1 else words
        elif path == "sleepInterval" and value != "infinite":
            value = read.attempt(path, partial(from_go_duration, "sleepInterval", value))
            if value is None:
                continue
        alone = partial(_with, PluginConfig(), section, member, value)
        if read.accepts(path, lambda alone=alone: served(alone())):  # type: ignore[misc]
            found[path] = (section, member, value)
    return found


def _section(config: PluginConfig, section: Any) -> Any:
    return {Flags: config.flags, PluginFlags: config.flags.plugin, GfdFlags: config.flags.gfd}[section]


def _with(config: PluginConfig, section: Any, member: str, value: Any) -> PluginConfig:
    changed = dataclasses.replace(_section(config, section), **{member: value})
    if section is not Flags:
        changed = dataclasses.replace(config.flags, **{"plugin" if section is PluginFlags else "gfd": changed})
    return dataclasses.replace(config, flags=changed)


def _laid_over(
    read: Values, config: PluginConfig, file: str, overrides: Mapping[str, tuple[Any, str, Any]]
) -> PluginConfig:
    """Lay the overriding values over a file, as the environment would without a word."""
    for path, (section, member, value) in overrides.items():
        stated = getattr(_section(config, section), member)
        if stated is not None and _comparable(stated) != _comparable(value):
            read.contradict(path, file, f"{_SECTIONS[section]}.{member}", _plain(stated), _plain(value))
        config = read.attempt(path, partial(_with, config, section, member, value)) or config
    root = read.get("mps.root", DEFAULT_MPS_ROOT)
    if config.flags.mps_root not in (None, root):
        read.contradict("mps.root", file, "flags.mps_root", config.flags.mps_root, root)
    return _with(config, Flags, "mps_root", None)


def _comparable(value: Any) -> Any:
    return frozenset((value,) if isinstance(value, str) else value) if isinstance(value, str | tuple) else value


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return go_duration(value)
    return ",".join(value) if isinstance(value, tuple) else value


def _uses(config: PluginConfig | Configs) -> frozenset[str]:
    if isinstance(config, PluginConfig):
        return uses_of(config)
    known = [uses_of(one) for one in (*config.configs.values(), PluginConfig(flags=config.flags))]
    return frozenset(config.may_use).union(*known)


def _configs(read: Values, served: _Served, *, has_mps: bool) -> PluginConfig | Configs:
    overrides = _overrides(read, served)
    external, files = named(read, "config.name", _fields.dns_subdomain), read.get("config.map") or {}
    if external and files:
        raise GpuConstructsError("values.config takes either name or map, as in the chart; got both")
    if external:
        return _external(read, external, overrides, has_mps=has_mps)
    configs = {
        name: _laid_over(read, _file(read, f"config.map.{name}", text, served), f"config.map.{name}", overrides)
        for name, text in _named_files(read, files).items()
    }
    if not configs:
        return _laid_over(read, PluginConfig(), "", overrides)
    default = _default(read, configs)
    if default is None:
        default = "empty" if "empty" not in configs else "empty-fallback"
        configs[default] = _laid_over(read, PluginConfig(), "", overrides)
    return configs[default] if len(configs) == 1 else Configs.named(configs, default=default)


def _external(
    read: Values, config_map: str, overrides: Mapping[str, tuple[Any, str, Any]], *, has_mps: bool
) -> Configs:
    make = partial(
        Configs.external,
        config_map,
        fallback_strategies=_strategies(read),
        flags=_laid_over(read, PluginConfig(), "", overrides).flags,
        may_use=_may_use(overrides, has_mps=has_mps),
    )
    default = str(read.get("config.default", ""))
    is_name = default != "" and read.accepts("config.default", partial(make, default=default))
    return make(default=default if is_name else None)


def _strategies(read: Values) -> list[FallbackStrategy]:
    path = "config.fallbackStrategies"
    return [
        strategy
        for strategy in read.get(path, ("named", "single"))
        if read.accepts(path, partial(_fields.one_of, path, strategy, ("named", "single", "empty")))
    ]


def _may_use(overrides: Mapping[str, Any], *, has_mps: bool) -> tuple[Use, ...]:
    """Give what files unseen may turn on, unless a value decides it for all of them.

    MPS is left out where config-manager would die of it, so it cannot have worked.
    """
    decided: dict[Use, str] = {"mig": "migStrategy", "volume-mounts": "deviceListStrategy", "cdi": "deviceListStrategy"}
    mps: tuple[Use, ...] = ("mps",) if has_mps else ()
    return (*mps, *(use for use, path in decided.items() if path not in overrides))


def _named_files(read: Values, files: Mapping[Any, Any]) -> dict[str, Any]:
    """Give the files by name: a key that YAML reads as a number or as true is text in the ConfigMap."""
    found: dict[str, Any] = {}
    for key, text in files.items():
        name = str(key).lower() if isinstance(key, bool) else str(key)
        path = f"config.map.{name}"
        if key is None or name in found:
            read.refuse(path, "is given twice; keep one" if name in found else "must have a name")
        elif read.accepts(path, partial(Configs.named, dict.fromkeys((*found, name), PluginConfig()), default=name)):
            found[name] = text
    return found


def _file(read: Values, path: str, text: Any, served: _Served) -> PluginConfig:
    if not isinstance(text, str):
        read.refuse(path, f"must be text, got {type(text).__name__}: the chart would fail")
        return PluginConfig()
    if not text.strip():
        return PluginConfig()
    config = config_reader.read_without(text, lambda problem: read.refuse(path, f"cannot be taken over: {problem}"))
    return config if read.accepts(path, partial(served, config)) else PluginConfig()


def _default(read: Values, configs: Mapping[str, PluginConfig]) -> str | None:
    """Give the configuration of nodes without a label, as config-manager would find it; None for an empty one."""
    name = str(read.get("config.default", ""))
    if name:
        if name in configs:
            return name
        allowed = ", ".join(map(repr, configs))
        read.refuse("config.default", f"must be a key of config.map ({allowed}), got {name!r}: the pods would fail")
    for strategy in _strategies(read):
        if strategy == "named" and "default" in configs:
            return "default"
        if strategy == "single" and len(configs) == 1:
            return next(iter(configs))
        if strategy == "empty":
            return None
    raise GpuConstructsError(
        f"values.config.default is required, as in the chart, for nodes without a label; name one of "
        f"{', '.join(map(repr, configs))}"
    )
