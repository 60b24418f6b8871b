"""The Helm values of the GPU Operator: those of the platform, of the keywords of ``GpuOperator``, and of the user."""

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
"""Key of the Helm values that contains the values of the sub-chart Node Feature Discovery."""

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
"""Keys of the chart that turn a component on or off, by keyword of ``GpuOperator``."""

_CONFIG_MAP = "nvidia-device-plugin-configs"
_CONFIG = "devicePlugin.config"
_CONTROL_PLANE = Toleration(key="node-role.kubernetes.io/control-plane", effect="NoSchedule")


def of_platform(platform: Platform, *, driver_install_dir: str | None, has_bridge: bool) -> Values:
    """Return the Helm values that a platform decides. The user can override them unless ``check_rules`` rejects this.

    Args:
        platform: Platform of the cluster. If its nodes have the driver and the toolkit, the operator does not install
            them.
        driver_install_dir: Folder to which a ``ValidationBridge`` copies ``libnvidia-ml.so.1`` and ``nvidia-smi`` for
            the operator's validator. None: there are no copies.
        has_bridge: Whether the cluster has a ``ValidationBridge``.
    """
    directory = driver_install_dir or platform.driver_install_dir
    decided = {
        "driver.enabled": False if platform.brings_driver or has_bridge else None,
        "toolkit.enabled": False if platform.brings_driver or has_bridge else None,
        "cdi.enabled": False if has_bridge or not platform.supports_cdi else None,
        "hostPaths.driverInstallDir": directory or None,
        # It uses systemd to stop and start services of the host (NVIDIA/gpu-operator#2501).
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
    """Return the Helm values that the keywords of ``GpuOperator`` set.

    Args:
        tolerations: Taints of the GPU nodes to tolerate. The result also contains the default tolerations of the chart,
            because a list in the values replaces the default list.
        device_list_strategy: Device list strategies of the device plugin, such as ``envvar``. Empty: the operator
            decides.
        configs: Configurations of the device plugin, among which its sidecar config-manager selects by a node label.
        mig_strategy: MIG strategy. None: ``single``, the default of the chart.
        switches: Value of each keyword that turns a component on (True) or off (False), by keyword. None: the default
            of the chart.
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
    # The name contains a hash, unlike other names of this library. The operator reads no ConfigMap, so a new name is
    # the
    # only way to restart the pods that mount it: the plugin, GPU Feature Discovery and the MPS daemon
    # (controllers/object_controls.go handleDevicePluginConfig). New annotations would restart the driver too.
    digest = config_map.sha256("\0".join(text for item in data.items() for text in item))
    return {"create": True, **default, "name": f"{_CONFIG_MAP}-{digest[:8]}", "data": data}


def _nested(flat: Mapping[str, Any]) -> Values:
    """Return nested dicts for Helm values by dotted key: ``{"a.b": 1}`` becomes ``{"a": {"b": 1}}``.

    The result omits values that are None.
    """
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
    """Return a dict from each dotted Helm key to the keyword of ``GpuOperator`` that set it, for messages.

    Args:
        stated: Helm values that the keywords set.
        config: Name of the keyword that sets the device plugin's configuration: ``config`` or ``sharing``.
        mig_strategy: Name of the keyword that sets the MIG strategy.
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
    """Merge Helm values: values of keywords and of the user replace values of the platform.

    Args:
        base: Helm values that the platform decides.
        stated: Helm values that keywords of ``GpuOperator`` set.
        own: Helm values of the user, which must not contradict ``stated``.
        keywords: Keyword of ``GpuOperator`` that set each Helm key, by dotted key, for messages.

    Raises:
        GpuConstructsError: The user's values and a keyword set different values of one key.
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
                # The name of the ConfigMap and the checks of its content cover only the keyword.
                raise GpuConstructsError(
                    f"values.{path}.{more[0]} must be absent with the keyword {keyword}, which sets the whole section, "
                    f"got {theirs[more[0]]!r}. Set it with {keyword}, or remove {keyword}"
                )
            values[key] = _agreeing(ours, theirs, f"{path}.", keywords)
        elif path.endswith(".env") and isinstance(theirs, Sequence):
            values[key] = _variables(ours, theirs, path)
        elif ours != theirs:
            raise GpuConstructsError(
                f"values.{path} is {theirs!r}, and the keyword {keyword} sets {ours!r}. Remove one of them"
            )
    return values


def _variables(ours: Sequence[Mapping[str, Any]], theirs: Sequence[Any], path: str) -> list[Any]:
    stated = {variable["name"]: variable for variable in ours}
    for variable in theirs:
        name = variable.get("name") if isinstance(variable, Mapping) else None
        if name in stated and variable != stated[name]:
            raise GpuConstructsError(
                f"values.{path} sets {name} to {variable.get('value')!r}, and the keyword device_list_strategy sets "
                f"{stated[name]['value']!r}. Remove one of them"
            )
    return [*ours, *(variable for variable in theirs if variable not in ours)]


def _laid(base: Mapping[str, Any], over: Mapping[str, Any]) -> Values:
    values = dict(base)
    for key, value in over.items():
        below = values.get(key)
        values[key] = _laid(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return values
