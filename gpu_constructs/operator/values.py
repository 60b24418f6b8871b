"""Values of the GPU Operator's chart: by the platform, by typed keywords, by the user's own values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.device_plugin.configs import Configs
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import config_map, placement, plain_data
from gpu_constructs.kube.placement import Toleration

Values = dict[str, Any]

NFD = "node-feature-discovery"
"""The key of the sub-chart's values."""

SWITCHES: Mapping[str, str] = {
    "driver": "driver.enabled",
    "toolkit": "toolkit.enabled",
    "cdi": "cdi.enabled",
    "mig_manager": "migManager.enabled",
    "node_feature_discovery": "nfd.enabled",
    "gpu_feature_discovery": "gfd.enabled",
    "dcgm_exporter": "dcgmExporter.enabled",
    "service_monitor": "dcgmExporter.serviceMonitor.enabled",
}
"""Keys of the chart that a keyword of ``GpuOperator`` switches, by keyword."""

_CONFIG_MAP = "nvidia-device-plugin-configs"
_CONFIG = "devicePlugin.config"
_CONTROL_PLANE = Toleration(key="node-role.kubernetes.io/control-plane", effect="NoSchedule")


def of_platform(platform: Platform, *, driver_install_dir: str | None, has_bridge: bool) -> Values:
    """Return what a platform decides; the user's own values may state otherwise where the rules allow it.

    Args:
        platform: Platform of the cluster; where driver and toolkit belong to the nodes' image, the operator installs
            neither.
        driver_install_dir: Folder where the driver's files were staged for the validator.
        has_bridge: Whether something answers for the nodes' own driver in the validator's place.
    """
    directory = driver_install_dir or platform.driver_install_dir
    decided = {
        "driver.enabled": False if platform.brings_driver or has_bridge else None,
        "toolkit.enabled": False if platform.brings_driver or has_bridge else None,
        "cdi.enabled": False if has_bridge or not platform.supports_cdi else None,
        "hostPaths.driverInstallDir": directory or None,
        # It stops and starts services of a host with systemd (NVIDIA/gpu-operator#2501).
        "migManager.enabled": False if platform.brings_driver else None,
    }
    return _nested(decided)


def of_keywords(
    *,
    tolerations: Sequence[Toleration],
    device_list_strategy: Sequence[str],
    configs: Configs | None,
    mig_strategy: str | None,
    switches: Mapping[str, bool | None],
) -> Values:
    """Return what typed keywords state.

    Args:
        tolerations: Taints of the GPU nodes; the chart's own lists, which a list replaces, are kept.
        device_list_strategy: Strategies of the device plugin; empty leaves them to the operator.
        configs: Configurations of the device plugin, as config-manager serves them.
        mig_strategy: MIG strategy; None leaves it to the chart, which takes ``single``.
        switches: Values of the switches by keyword; None leaves one to the chart.
    """
    stated: Values = {SWITCHES[keyword]: is_on for keyword, is_on in switches.items()}
    if tolerations:
        stated["daemonsets.tolerations"] = placement.tolerations((placement.GPU_TAINT,), tolerations)
        worker = placement.tolerations((_CONTROL_PLANE, placement.GPU_TAINT), tolerations)
        has_worker = switches.get("node_feature_discovery") is not False
        stated[f"{NFD}.worker.tolerations"] = worker if has_worker else None
    stated["mig.strategy"] = mig_strategy
    if device_list_strategy:
        stated["devicePlugin.env"] = [{"name": "DEVICE_LIST_STRATEGY", "value": ",".join(device_list_strategy)}]
    stated[_CONFIG] = None if configs is None else _config(configs)
    return _nested(stated)


def _config(configs: Configs) -> Values:
    default = {} if configs.default is None else {"default": configs.default}
    data = {name: one.to_yaml() for name, one in configs.configs.items()}
    if not data:
        return {"name": configs.config_map or _CONFIG_MAP, **default}
    # A hash in an object's name, against our rule: the operator reads no ConfigMap, so nothing else restarts the
    # pods that mount it. These are the plugin's, GPU Feature Discovery's and the MPS daemon's alone
    # (controllers/object_controls.go handleDevicePluginConfig); annotations would restart the driver too.
    digest = config_map.sha256("\0".join(text for item in data.items() for text in item))
    return {"create": True, **default, "name": f"{_CONFIG_MAP}-{digest[:8]}", "data": data}


def _nested(flat: Mapping[str, Any]) -> Values:
    """Return values by dotted key as the chart takes them, without those that are None."""
    values: Values = {}
    for path, value in flat.items():
        if value is not None:
            *sections, last = path.split(".")
            section = values
            for name in sections:
                section = section.setdefault(name, {})
            section[last] = value
    return values


def keywords_of(stated: Mapping[str, Any], *, config: str, mig_strategy: str) -> dict[str, str]:
    """Return the keyword that stated a key, for each key that one stated.

    Args:
        stated: Values of ``of_keywords``.
        config: Keyword that the device plugin's configuration came from.
        mig_strategy: Keyword that the MIG strategy came from.
    """
    names = {
        **{path: keyword for keyword, path in SWITCHES.items()},
        "devicePlugin.env": "device_list_strategy",
        _CONFIG: config,
        "mig.strategy": mig_strategy,
        "daemonsets.tolerations": "tolerations",
        f"{NFD}.worker.tolerations": "tolerations",
    }
    return {path: name for path, name in names.items() if plain_data.at(stated, path) is not None}


def merged(
    base: Mapping[str, Any],
    stated: Mapping[str, Any],
    own: Mapping[str, Any],
    keywords: Mapping[str, str] = MappingProxyType({}),
) -> Values:
    """Return what the platform decides, overlaid by the keywords, and both by the user's own values.

    Args:
        base: Values that the platform decides.
        stated: Values that keywords state.
        own: The user's values.
        keywords: Keyword that stated each key.

    Raises:
        GpuConstructsError: The user's values and a keyword state different things of one key.
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


def _laid(base: Mapping[str, Any], over: Mapping[str, Any]) -> Values:
    values = dict(base)
    for key, value in over.items():
        below = values.get(key)
        values[key] = _laid(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return values
