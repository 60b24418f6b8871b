"""What the GPU Operator's chart is told: by the platform, by typed keywords, by the user's own values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from gpu_constructs import placement
from gpu_constructs._config_map import sha256
from gpu_constructs.device_plugin.config import Flags, MigStrategy, PluginConfig
from gpu_constructs.device_plugin.configs import Configs
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.placement import Toleration
from gpu_constructs.platforms import Platform
from gpu_constructs.versions import DevicePluginRelease

Values = dict[str, Any]

NFD = "node-feature-discovery"
"""The key of the sub-chart's values."""

CONFIG_MAP = "nvidia-device-plugin-configs"
_CONFIG = "devicePlugin.config"
KEYWORDS: Mapping[str, str] = {
    "driver.enabled": "driver",
    "toolkit.enabled": "toolkit",
    "cdi.enabled": "cdi",
    "migManager.enabled": "mig_manager",
    "nfd.enabled": "node_feature_discovery",
    "gfd.enabled": "gpu_feature_discovery",
    "dcgmExporter.enabled": "dcgm_exporter",
    "dcgmExporter.serviceMonitor.enabled": "service_monitor",
    "devicePlugin.env": "device_list_strategy",
    _CONFIG: "config",
    "mig.strategy": "mig_strategy",
    "daemonsets.tolerations": "tolerations",
    "node-feature-discovery.worker.tolerations": "tolerations",
}
"""What says the same as a keyword of ``GpuOperator``."""

_ONLY_CONFIG = "default"
_CONTROL_PLANE = Toleration(key="node-role.kubernetes.io/control-plane", effect="NoSchedule")

# The operator states these as variables of its containers, which beat the file: NVIDIA/gpu-operator@v26.7.0,
# assets/state-device-plugin and assets/gpu-feature-discovery, 0500_daemonset.yaml; the roots are sourced from
# driver-ready.
_OVERRIDDEN: Mapping[str, tuple[str, str, object]] = {
    "flags.fail_on_init_error": ("FAIL_ON_INIT_ERROR", "devicePlugin", True),
    "flags.plugin.pass_device_specs": ("PASS_DEVICE_SPECS", "devicePlugin", True),
    "flags.plugin.device_id_strategy": ("DEVICE_ID_STRATEGY", "devicePlugin", "uuid"),
    "flags.plugin.device_list_strategy": ("DEVICE_LIST_STRATEGY", "devicePlugin", None),
    "flags.mps_root": ("MPS_ROOT", "devicePlugin", "/run/nvidia/mps"),
    "flags.nvidia_driver_root": ("NVIDIA_DRIVER_ROOT", "devicePlugin", None),
    "flags.nvidia_dev_root": ("NVIDIA_DEV_ROOT", "devicePlugin", None),
    "flags.plugin.container_driver_root": ("DRIVER_ROOT_CTR_PATH", "devicePlugin", None),
    "flags.gfd.sleep_interval": ("GFD_SLEEP_INTERVAL", "gfd", None),
}


def of_platform(platform: Platform, *, driver_install_dir: str | None, has_bridge: bool = False) -> Values:
    """Give what a platform decides; the user's own values may say otherwise where the rules allow it.

    Args:
        platform: Where driver and toolkit belong to the nodes' image, the operator installs neither.
        driver_install_dir: Where the driver's files were staged for the validator.
        has_bridge: Whether something answers for the nodes' own driver in the validator's place.
    """
    values: Values = {}
    if platform.brings_driver or has_bridge:
        values = {"driver": {"enabled": False}, "toolkit": {"enabled": False}}
    if has_bridge or not platform.supports_cdi:
        values["cdi"] = {"enabled": False}
    directory = driver_install_dir or platform.driver_install_dir
    if directory:
        values["hostPaths"] = {"driverInstallDir": directory}
    if platform.brings_driver:
        # It stops and starts services of a host with systemd (NVIDIA/gpu-operator#2501).
        values["migManager"] = {"enabled": False}
    return values


def of_keywords(
    *,
    tolerations: Sequence[Toleration],
    device_list_strategy: Sequence[str],
    configs: Configs | None,
    mig_strategy: str | None,
    switches: Mapping[str, bool | None],
) -> Values:
    """Give what typed keywords say.

    Args:
        tolerations: Taints of the GPU nodes; the chart's own lists, which a list replaces, are kept.
        device_list_strategy: Empty leaves it to the operator.
        configs: Of the device plugin, as config-manager serves them.
        mig_strategy: None leaves it to the chart, which takes ``single``.
        switches: What is on or off, by its key; None leaves it to the chart.
    """
    values: Values = {}
    for key, is_on in switches.items():
        if is_on is not None:
            _put(values, key, is_on)
    if tolerations:
        _put(values, "daemonsets.tolerations", placement.tolerations((placement.GPU_TAINT,), tolerations))
        worker = placement.tolerations((_CONTROL_PLANE, placement.GPU_TAINT), tolerations)
        if switches.get("nfd.enabled") is not False:
            _put(values, "node-feature-discovery.worker.tolerations", worker)
    if mig_strategy is not None:
        _put(values, "mig.strategy", mig_strategy)
    if device_list_strategy:
        variable = {"name": "DEVICE_LIST_STRATEGY", "value": ",".join(device_list_strategy)}
        _put(values, "devicePlugin.env", [variable])
    if configs is not None:
        _put_configs(values, configs)
    return values


def _put_configs(values: Values, configs: Configs) -> None:
    config: Values = {"name": configs.config_map or CONFIG_MAP, "default": configs.default}
    if configs.default is None:
        del config["default"]
    if configs.configs:
        data = {name: one.to_yaml() for name, one in configs.configs.items()}
        # A hash in an object's name, against our rule: the operator reads no ConfigMap, so nothing else restarts the
        # pods that mount it. These are the plugin's, GPU Feature Discovery's and the MPS daemon's alone
        # (controllers/object_controls.go handleDevicePluginConfig); annotations would restart the driver too.
        digest = sha256("\0".join(text for item in data.items() for text in item))
        config = {"create": True, **config, "name": f"{CONFIG_MAP}-{digest[:8]}", "data": data}
    _put(values, _CONFIG, config)


def plugin_configs(config: PluginConfig | Configs | None, release: DevicePluginRelease) -> Configs | None:
    """Give the configurations as config-manager serves them, one alone under the name ``default``.

    Raises:
        GpuConstructsError: They are meant for one DaemonSet each, a setting came with a later release of the
            plugin, or the operator's own variables would beat it.
    """
    if config is None:
        return None
    configs = (
        Configs.managed({_ONLY_CONFIG: config}, default=_ONLY_CONFIG) if isinstance(config, PluginConfig) else config
    )
    if configs.delivery == "daemonsets":
        raise GpuConstructsError(
            "config must be a PluginConfig, Configs.managed(...) or Configs.external(...): the operator has one "
            "DaemonSet with a config-manager; got Configs.named(...)"
        )
    if configs.delivery == "external" and (configs.flags != Flags() or configs.may_use):
        raise GpuConstructsError(
            "config.flags and config.may_use do nothing here: the operator's pods are privileged, and settings for "
            "every node are values={'devicePlugin': {'env': [...]}}; leave them out"
        )
    for name, one in configs.configs.items():
        one.check_release(release)
        _check_overridden(one, name)
    strategies = {one.mig_strategy for one in configs.configs.values()}
    if len(strategies) > 1:
        raise GpuConstructsError(
            "config must have one flags.mig_strategy in all configurations, since the operator states it for all "
            f"nodes; got {', '.join(map(repr, sorted(strategies)))}"
        )
    return configs


def mig_strategy(configs: Configs | None) -> MigStrategy | None:
    """Give the MIG strategy that the operator must be told, since its variable beats the file; None for any."""
    known = [] if configs is None else list(configs.configs.values())
    stated = {one.flags.mig_strategy for one in known} - {None}
    if stated:
        return stated.pop()
    return "none" if any(one.sharing.strategy == "mps" for one in known) else None


def _check_overridden(config: PluginConfig, name: str) -> None:
    for path, (variable, section, value) in _OVERRIDDEN.items():
        stated: Any = config
        for member in path.split("."):
            stated = getattr(stated, member)
        if stated is None or stated == value:
            continue
        way_out = f"values={{{section!r}: {{'env': [{{'name': {variable!r}, 'value': ...}}]}}}}"
        if variable == "DEVICE_LIST_STRATEGY":
            way_out = "device_list_strategy=..."
        raise GpuConstructsError(
            f"config {name!r} must not state {path}: the operator states {variable} beside it, which wins; got "
            f"{stated!r}; take it out and pass {way_out}"
        )


def _put(values: Values, path: str, value: Any) -> None:
    *sections, last = path.split(".")
    for section in sections:
        values = values.setdefault(section, {})
    values[last] = value


def keywords_of(stated: Mapping[str, Any], *, config: str, mig_strategy: str) -> dict[str, str]:
    """Give the keyword that said a key, for each key that one said.

    Args:
        stated: What ``of_keywords`` gave.
        config: The keyword that the device plugin's configuration came from.
        mig_strategy: The keyword that the MIG strategy came from.
    """
    names = {**KEYWORDS, _CONFIG: config, "mig.strategy": mig_strategy}
    return {path: name for path, name in names.items() if at(stated, path) is not None}


def at(values: Mapping[str, Any], path: str) -> Any:
    """Give the value of a dotted key; None where there is none."""
    found: Any = values
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def merged(
    base: Mapping[str, Any],
    stated: Mapping[str, Any],
    own: Mapping[str, Any],
    keywords: Mapping[str, str] = KEYWORDS,
) -> Values:
    """Lay the keywords over what the platform decides, and the user's own values over both.

    Args:
        base: What the platform decides.
        stated: What keywords say.
        own: The user's values.
        keywords: Which keyword said which key; those of the table by default.

    Raises:
        GpuConstructsError: The user's values and a keyword say different things of one key.
    """
    return _laid(_laid(base, stated), _agreeing(stated, own, "", keywords))


def _agreeing(stated: Mapping[str, Any], own: Mapping[str, Any], prefix: str, keywords: Mapping[str, str]) -> Values:
    values = dict(own)
    for key, ours in stated.items():
        if key not in own:
            continue
        theirs, path = own[key], f"{prefix}{key}"
        keyword = next((name for known, name in keywords.items() if f"{path}.".startswith(f"{known}.")), "")
        if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
            more = [name for name, value in theirs.items() if value and name not in ours]
            if more and f"{path}.".startswith(f"{_CONFIG}."):
                # Its name, and our checks, are of what the keyword says alone.
                raise GpuConstructsError(
                    f"values.{path}.{more[0]} must not stand beside the keyword {keyword}, which writes the whole "
                    f"section; got {theirs[more[0]]!r}; say it there, or leave {keyword} out"
                )
            values[key] = _agreeing(ours, theirs, f"{path}.", keywords)
        elif path.endswith(".env") and isinstance(theirs, Sequence):
            values[key] = _variables(ours, theirs, path)
        elif ours != theirs:
            raise GpuConstructsError(
                f"values.{path} is {theirs!r}, and the keyword {keyword} says {ours!r}; leave one of the two out"
            )
    return values


def _variables(ours: Sequence[Mapping[str, Any]], theirs: Sequence[Any], path: str) -> list[Any]:
    stated = {variable["name"]: variable for variable in ours}
    for variable in theirs:
        name = variable.get("name") if isinstance(variable, Mapping) else None
        if name in stated and variable != stated[name]:
            raise GpuConstructsError(
                f"values.{path} sets {name} to {variable.get('value')!r}, and the keyword device_list_strategy says "
                f"{stated[name]['value']!r}; leave one of the two out"
            )
    return [*ours, *(variable for variable in theirs if variable not in ours)]


def config_warnings(told: Mapping[str, Any], release: DevicePluginRelease) -> list[str]:
    """Say what is doubtful in configurations of the device plugin that the user wrote as text.

    Raises:
        GpuConstructsError: One of them is no YAML.
    """
    warnings = []
    for name, text in _config_texts(told).items():
        path = f"values.devicePlugin.config.data[{name!r}]"
        try:
            yaml.safe_load(text)
        except (yaml.YAMLError, ValueError) as error:
            raise GpuConstructsError(
                f"{path} must be YAML; got {' '.join(str(error).split())}; mend it, or pass config=PluginConfig(...)"
            ) from None
        try:
            config = PluginConfig.from_yaml(text)
            config.check_release(release)
            _check_overridden(config, name)
        except GpuConstructsError as error:
            warnings.append(f"{path} may not do what it says: {error.problem}")
    return warnings


def values_configs(told: Mapping[str, Any]) -> Configs | None:
    """Give the configurations that are written as text; one that says nothing where none is.

    Args:
        told: What the chart is told.

    Returns:
        None where nobody can know: the ConfigMap is somebody else's, or one of its entries cannot be read.
    """
    texts = _config_texts(told)
    if not texts:
        return None if at(told, f"{_CONFIG}.name") else Configs.managed({"default": PluginConfig()}, default="default")
    try:
        configs = {name: PluginConfig.from_yaml(text) for name, text in texts.items()}
        given = at(told, f"{_CONFIG}.default")
        return Configs.managed(configs, default=given if given in configs else next(iter(configs)))
    except GpuConstructsError:
        return None


def _config_texts(told: Mapping[str, Any]) -> dict[str, str]:
    """Give the entries of the ConfigMap that the chart makes."""
    config = at(told, _CONFIG) or {}
    data = (config.get("data") or {}) if config.get("create") else {}
    return {name: text for name, text in data.items() if text is not None}


def _laid(base: Mapping[str, Any], over: Mapping[str, Any]) -> Values:
    values = dict(base)
    for key, value in over.items():
        below = values.get(key)
        values[key] = _laid(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return values
