"""What values of the GPU Operator's chart contradict each other, the platform or the operator's code.

Everything here renders without a word in at least one release. Each rule was read in NVIDIA/gpu-operator@v25.10.1,
@v26.3.3 and @v26.7.0; below, ``chart/`` is deployments/gpu-operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from gpu_constructs._helm import coalesced
from gpu_constructs.errors import GpuConstructsError, did_you_mean
from gpu_constructs.operator.chart_keys import NFD
from gpu_constructs.platforms import DeviceListStrategy, Platform
from gpu_constructs.versions import GPU_OPERATOR, GpuOperatorRelease

_STRATEGY = "DEVICE_LIST_STRATEGY"
_TALOS_HAS = "Talos brings it as a system extension and its file system is read-only"
_GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
_CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "operator": "Equal", "effect": "NoSchedule"}

# chart/values.yaml, what the rules read and no more: the same in all three releases. The tolerations of the oldest
# hold one for the former name of control planes besides.
_DEFAULTS: Mapping[str, Any] = {
    "cdi": {"enabled": True, "nriPluginEnabled": False},
    "clusterPolicy": {"deployCR": True},
    "daemonsets": {"tolerations": [_GPU_TAINT]},
    "devicePlugin": {"enabled": True, "config": {"create": False, "name": "", "default": "", "data": {}}},
    "driver": {"enabled": True, "nvidiaDriverCRD": {"enabled": False}},
    "gpuCluster": {"deployCR": False},
    "hostPaths": {"driverInstallDir": "/run/nvidia/driver"},
    "migManager": {"enabled": True, "config": {"create": False, "name": "", "data": {}}},
    "nfd": {"enabled": True},
    "toolkit": {"enabled": True},
    NFD: {"worker": {"tolerations": [_CONTROL_PLANE, _GPU_TAINT]}},
}

# cmd/nvidia-validator/main.go: flags that have a variable, and what it asks the environment for.
_VALIDATOR_READS = (
    "CLEANUP_ALL",
    "COMPONENT",
    "DEFAULT_GPU_WORKLOAD_CONFIG",
    "DISABLE_DEV_CHAR_SYMLINK_CREATION",
    "DRIVER_INSTALL_DIR",
    "DRIVER_INSTALL_DIR_CTR_PATH",
    "GPU_DIRECT_RDMA_ENABLED",
    "HOST_ROOT",
    "KUBECONFIG",
    "METRICS_PORT",
    "MIG_STRATEGY",
    "NODE_NAME",
    "OPERATOR_NAMESPACE",
    "OUTPUT_DIR",
    "SLEEP_INTERVAL_SECONDS",
    "USE_HOST_MOFED",
    "VALIDATOR_IMAGE",
    "VALIDATOR_IMAGE_PULL_POLICY",
    "VALIDATOR_IMAGE_PULL_SECRETS",
    "VALIDATOR_RUNTIME_CLASS",
    "WITH_WAIT",
    "WITH_WORKLOAD",
)
_VALIDATOR_READS_SINCE_26_7 = ("DRIVER_VALIDATION_SKIP_GPU_INIT",)
# What the container runtime, CUDA or the C library reads in the validator's containers.
_OTHERS_READ = ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_DISABLE_REQUIRE", "CUDA_", "LD_")


class _Seen:
    """The values as the chart sees them, laid over its defaults."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = coalesced(_DEFAULTS, values)

    def get(self, path: str) -> Any:
        """Give the value of a dotted key; None where there is none."""
        found: Any = self._values
        for name in path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        return found

    def is_on(self, path: str) -> bool:
        """Tell whether a switch is on that is on where nothing is said, as the operator has it."""
        return self.get(path) is not False

    def list(self, path: str) -> Sequence[Mapping[str, Any]]:
        """Give a list; empty where there is none."""
        return self.get(path) or ()


def check_rules(
    values: Mapping[str, Any],
    release: GpuOperatorRelease,
    platform: Platform,
    *,
    driver_install_dir: str | None = None,
) -> list[str]:
    """Refuse what contradicts itself, the platform or the operator.

    Args:
        values: For the chart, of keys and types that ``check_keys`` passed.
        release: Of the operator.
        platform: Where it runs.
        driver_install_dir: What ``hostPaths.driverInstallDir`` must be where something else stages the driver's
            files; None for what the platform has.

    Returns:
        What works, or may work, and is likely not what the user wants.

    Raises:
        GpuConstructsError: The first contradiction.
    """
    seen = _Seen(values)
    _driver_and_toolkit(seen, platform)
    _custom_resources(seen, platform)
    _cdi(seen, platform)
    _device_list_strategy(seen)
    _driver_install_dir(seen, platform, driver_install_dir)
    _config_maps(seen)
    _side_containers(seen, platform)
    _operands_without_nfd(seen)
    return list(_warnings(seen, release, platform))


def _refuse(path: str, must: str, got: object, way_out: str) -> None:
    raise GpuConstructsError(f"values.{path} must be {must}; got {got!r}; {way_out}")


def _driver_and_toolkit(seen: _Seen, platform: Platform) -> None:
    """No image of a driver exists for Talos (gpu-operator#647), and the toolkit would write containerd's files.

    assets/state-driver and assets/state-container-toolkit; a switch that is missing is on,
    api/nvidia/v1/clusterpolicy_types.go IsEnabled.
    """
    if not platform.brings_driver:
        return
    if seen.is_on("driver.enabled"):
        _refuse(
            "driver.enabled",
            "false on Talos",
            seen.get("driver.enabled"),
            f"there is no driver image for Talos: {_TALOS_HAS}; no operator code looks at Talos' extensions",
        )
    if seen.is_on("toolkit.enabled"):
        _refuse("toolkit.enabled", "false on Talos", seen.get("toolkit.enabled"), f"set it to false: {_TALOS_HAS}")
    if seen.get("driver.nvidiaDriverCRD.enabled"):
        _refuse("driver.nvidiaDriverCRD.enabled", "false on Talos", True, "there is no driver image for Talos")


def _custom_resources(seen: _Seen, platform: Platform) -> None:
    """chart/templates/validations.yaml@v26.7.0, and the API that DRA needs."""
    if not seen.get("gpuCluster.deployCR"):
        return
    if seen.get("clusterPolicy.deployCR"):
        _refuse("clusterPolicy.deployCR", "false beside gpuCluster.deployCR", True, "the chart takes one of the two")
    if seen.get("driver.enabled") and not seen.get("driver.nvidiaDriverCRD.enabled"):
        _refuse(
            "driver.nvidiaDriverCRD.enabled",
            "true beside gpuCluster.deployCR and driver.enabled",
            seen.get("driver.nvidiaDriverCRD.enabled"),
            "set it, or driver.enabled to false where the nodes have the driver",
        )
    why = platform.refusal_of("dra")
    if why:
        _refuse("gpuCluster.deployCR", f"false on {platform}", True, why)


def _cdi(seen: _Seen, platform: Platform) -> None:
    """chart/templates/validations.yaml@v26.7.0; controllers/state_manager.go validateClusterPolicySpec@v26.3.3."""
    if seen.is_on("cdi.enabled") and not platform.supports_cdi:
        _refuse(
            "cdi.enabled",
            f"false on {platform}",
            seen.get("cdi.enabled"),
            "CDI specs name paths that this Talos does not have; set it to false, or go to Talos 1.13 or later",
        )
    if not seen.get("cdi.nriPluginEnabled"):
        return
    for needed in ("cdi.enabled", "toolkit.enabled"):
        if not seen.is_on(needed):
            _refuse(
                "cdi.nriPluginEnabled",
                f"false without {needed}",
                True,
                "the plugin runs in the operator's toolkit container and hands out CDI devices; leave it out",
            )


def _device_list_strategy(seen: _Seen) -> None:
    """controllers/object_controls.go TransformDevicePlugin: what the user sets comes last and wins over CDI's own."""
    allowed = get_args(DeviceListStrategy)
    for index, variable in enumerate(seen.list("devicePlugin.env")):
        if variable.get("name") != _STRATEGY:
            continue
        path, given = f"devicePlugin.env[{index}].value", variable.get("value") or ""
        words = given.split(",")
        for word in words:
            if word not in allowed:
                raise GpuConstructsError(
                    f"values.{path} must be words of {', '.join(allowed)}, joined by commas alone; got {given!r}"
                    f"{did_you_mean(word, allowed)}"
                )
        has_cdi = any(word.startswith("cdi-") for word in words)
        if has_cdi and not seen.is_on("cdi.enabled"):
            _refuse(path, "'envvar' or 'volume-mounts' while cdi.enabled is false", given, "leave the variable out")
        if not has_cdi and seen.is_on("cdi.enabled"):
            _refuse(
                path,
                "a cdi- strategy while cdi.enabled is true, as it is by default",
                given,
                "set cdi.enabled to false, which alone gives 'envvar'; later operators refuse to reconcile this",
            )


def _driver_install_dir(seen: _Seen, platform: Platform, staged: str | None) -> None:
    """cmd/nvidia-validator: the driver's libraries and nvidia-smi are looked up below this folder."""
    expected = staged or platform.driver_install_dir
    got = seen.get("hostPaths.driverInstallDir")
    if expected and (got or "").rstrip("/") != expected:
        where = "there the driver's files are staged" if staged else f"{platform} has the driver's files there"
        _refuse("hostPaths.driverInstallDir", repr(expected), got, f"{where}, and the operator's validator looks there")


def _config_maps(seen: _Seen) -> None:
    """chart/templates/validations.yaml@v26.7.0, plugin_config.yaml, mig_config.yaml, dcgm_exporter_config.yaml."""
    for operand in ("devicePlugin", "migManager", "dcgmExporter"):
        config = f"{operand}.config"
        if seen.get(f"{config}.create"):
            for key in ("name", "data"):
                if not seen.get(f"{config}.{key}"):
                    got = seen.get(f"{config}.{key}")
                    _refuse(f"{config}.{key}", f"given where {config}.create is true", got, "give it, or drop create")
    config = "devicePlugin.config"
    default, entries = seen.get(f"{config}.default"), seen.get(f"{config}.data") or {}
    if seen.get(f"{config}.create") and default not in (None, "") and str(default) not in entries:
        # NVIDIA/k8s-device-plugin cmd/config-manager: what is named and not there is an error.
        _refuse(
            f"{config}.default",
            f"one of {', '.join(entries)}",
            default,
            f"config-manager fails{did_you_mean(default, entries)}",
        )


def _side_containers(seen: _Seen, platform: Platform) -> None:
    """assets/state-driver holds gdrdrv; TransformDevicePlugin hands its device out either way."""
    if seen.get("gdrcopy.enabled") and not platform.has_gdrdrv:
        way_out = "no extension has its kernel module; the device plugin would hand out a device that is not there"
        _refuse("gdrcopy.enabled", f"false on {platform}", True, way_out)


def _operands_without_nfd(seen: _Seen) -> None:
    """The operator labels only nodes that NFD's worker labelled (controllers/state_manager.go hasGPULabels)."""
    missing = _not_in(seen, "daemonsets.tolerations", f"{NFD}.worker.tolerations")
    if missing:
        raise GpuConstructsError(
            f"values.{NFD}.worker.tolerations must hold what daemonsets.tolerations holds; got no {missing[0]!r}; "
            "add it: a node with that taint would get no GPU label, and so no pod of the operator, without any event"
        )


def _not_in(seen: _Seen, path: str, other: str) -> list[Mapping[str, Any]]:
    if not seen.get("nfd.enabled"):
        return []
    return [one for one in seen.list(path) if not any(_covers(two, one) for two in seen.list(other))]


def _covers(wide: Mapping[str, Any], narrow: Mapping[str, Any]) -> bool:
    """Tell whether one toleration puts up with every taint that another puts up with."""
    if wide.get("effect") and wide.get("effect") != narrow.get("effect"):
        return False
    if wide.get("operator") == "Exists" and not wide.get("key"):
        return True
    if wide.get("key") != narrow.get("key"):
        return False
    if wide.get("operator") == "Exists":
        return True
    same = ((toleration.get("operator") or "Equal", toleration.get("value") or "") for toleration in (wide, narrow))
    return next(same) == next(same)


def _warnings(seen: _Seen, release: GpuOperatorRelease, platform: Platform) -> Iterator[str]:
    yield from _of_talos(seen, platform)
    yield from _of_the_driver(seen)
    yield from _of_the_validator(seen, release)
    if seen.get("psa.enabled"):
        yield (
            "values.psa.enabled comes too late where Pod Security is enforced: the operator labels its namespace once "
            "it runs, and its pods are refused before; label the namespace 'privileged' beforehand"
        )
    if seen.get("devicePlugin.config.name") and seen.get("devicePlugin.config.default") in (None, ""):
        # controllers/object_controls.go: DEFAULT_CONFIG is empty and FALLBACK_STRATEGIES is 'empty'.
        yield (
            "values.devicePlugin.config.default is empty: a node without the label nvidia.com/device-plugin.config "
            "runs an empty configuration; name one of the entries"
        )
    if not seen.get("nfd.enabled") and _behaves_since("26.3.3", release):
        # controllers/state_manager.go getGPUNodeOSInfo: reconciling fails without them.
        yield (
            "values.nfd.enabled is false: beside the GPU's label, something else must give each GPU node the labels "
            "feature.node.kubernetes.io/system-os_release.ID and .VERSION_ID, or the operator fails"
        )
    for toleration in _not_in(seen, f"{NFD}.worker.tolerations", "daemonsets.tolerations"):
        if not _covers(_CONTROL_PLANE, toleration) and toleration.get("key") != "node-role.kubernetes.io/master":
            yield (
                f"values.daemonsets.tolerations lacks {toleration!r}, which {NFD}.worker.tolerations holds: a node "
                "with that taint is labelled for its GPU and gets no pod of the operator"
            )
    if seen.get("daemonsets.podSecurityContext") and not seen.get("gpuCluster.deployCR"):
        # chart/templates/gpucluster.yaml copies daemonsets whole, clusterpolicy.yaml key by key.
        yield "values.daemonsets.podSecurityContext goes into a GPUCluster alone: no ClusterPolicy gets it"
    if not seen.get("clusterPolicy.deployCR") and not seen.get("gpuCluster.deployCR"):
        yield "values.clusterPolicy.deployCR is false and gpuCluster.deployCR too: the operator has nothing to do"


def _of_talos(seen: _Seen, platform: Platform) -> Iterator[str]:
    if not platform.brings_driver:
        return
    if seen.is_on("migManager.enabled"):
        # assets/state-mig-manager: hostPID, and with a host driver it stops and starts services by systemd.
        yield (
            "values.migManager.enabled is on: the manager stops and starts the host's services by systemd, which Talos "
            "does not have, and hangs (NVIDIA/gpu-operator#2501); set it to false and partition by other means"
        )
    if seen.get("sandboxWorkloads.enabled"):
        yield "values.sandboxWorkloads.enabled is true: nobody has reported GPUs for virtual machines by it on Talos"


def _of_the_driver(seen: _Seen) -> Iterator[str]:
    """TransformDevicePlugin: with the driver off, all that is left of them is what the plugin hands out."""
    if seen.is_on("driver.enabled"):
        return
    for operand, what in (("gds", "nvidia_fs and of the RDMA devices"), ("gdrcopy", "gdrdrv")):
        if seen.get(f"{operand}.enabled"):
            yield (
                f"values.{operand}.enabled installs nothing while driver.enabled is false: it only tells the device "
                f"plugin to hand out the devices of {what}, so every GPU node must have them already"
            )


def _of_the_validator(seen: _Seen, release: GpuOperatorRelease) -> Iterator[str]:
    read = (*_VALIDATOR_READS, *(_VALIDATOR_READS_SINCE_26_7 if _behaves_since("26.7.0", release) else ()))
    validator = seen.get("validator") or {}
    sections = {"validator": validator, **{f"validator.{name}": below for name, below in validator.items()}}
    for path, section in sections.items():
        for variable in (section.get("env") or ()) if isinstance(section, Mapping) else ():
            name = variable.get("name") or ""
            if name not in read and not name.startswith(_OTHERS_READ):
                yield f"values.{path}.env sets {name!r}, which the validator does not read; it reads {', '.join(read)}"


def _behaves_since(first: str, release: GpuOperatorRelease) -> bool:
    known = tuple(GPU_OPERATOR)
    return known.index(release.behaves_like) >= known.index(first)
