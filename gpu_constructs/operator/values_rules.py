"""What values of the GPU Operator's chart contradict each other, the platform or the operator's code.

Everything here renders without a word in at least one release. Each rule was read in NVIDIA/gpu-operator@v25.10.1,
@v26.3.3 and @v26.7.0; below, ``chart/`` is deployments/gpu-operator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, get_args

from gpu_constructs._helm import coalesced
from gpu_constructs.errors import GpuConstructsError, did_you_mean
from gpu_constructs.operator.values import NFD
from gpu_constructs.platforms import NO_VOLUME_MOUNTS, DeviceListStrategy, Platform
from gpu_constructs.versions import GPU_OPERATOR, GpuOperatorRelease

_STRATEGY = "DEVICE_LIST_STRATEGY"
_FLAG = re.compile(r"--?device-list-strategy[= ]+[\"']?([^\s\"']*)")
_ENV = "devicePlugin.env"
_WORKER = f"{NFD}.worker.tolerations"
_TALOS_HAS = "Talos brings it as a system extension and its file system is read-only"
_GPU_CLUSTER_FINDS_NO_DRIVER = (
    "its validator tells the DRA driver the root '/', and the driver lies in /usr/local; install the DRA driver by its "
    "own chart"
)
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
# Starts of names that the container runtime, CUDA, the C library, Go and client-go read in the validator's containers:
# the validator reaches the API server by rest.InClusterConfig, which takes KUBERNETES_SERVICE_HOST and _PORT.
_OTHERS_READ = tuple(
    """NVIDIA_VISIBLE_DEVICES NVIDIA_DRIVER_CAPABILITIES NVIDIA_DISABLE_REQUIRE CUDA_ LD_ KUBERNETES_SERVICE_ GODEBUG
    GOGC GOMAXPROCS GOMEMLIMIT GOTRACEBACK HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy SSL_CERT_
    HOME LANG LC_ PATH TMPDIR TZ""".split()
)


class _Seen:
    """The values as the chart sees them, laid over its defaults."""

    def __init__(self, values: Mapping[str, Any], keywords: Mapping[str, str]) -> None:
        self._stated = values
        self._values = coalesced(_DEFAULTS, values)
        self._keywords = keywords

    def get(self, path: str) -> Any:
        """Give the value of a dotted key; None where there is none."""
        return _at(self._values, path)

    def is_stated(self, path: str) -> bool:
        """Tell whether a key has a value beside the chart's default."""
        return _at(self._stated, path) is not None

    def is_on(self, path: str) -> bool:
        """Tell whether a switch is on that is on where nothing is said, as the operator has it."""
        return self.get(path) is not False

    def list(self, path: str) -> Sequence[Mapping[str, Any]]:
        """Give a list; empty where there is none."""
        return self.get(path) or ()

    def keyword(self, path: str) -> str:
        """Give the keyword that said a key, or what holds it; empty where none did."""
        return next((name for known, name in self._keywords.items() if f"{path}.".startswith(f"{known}.")), "")

    def name(self, path: str) -> str:
        """Give a key as the user wrote it: a keyword, or a place in ``values``."""
        return self.keyword(path) or f"values.{path}"

    def off(self, path: str) -> str:
        """Give what is not on as the user would write it."""
        return "False" if self.keyword(path) else "false"

    def refuse(self, path: str, must: str, why: str) -> None:
        """Raise for the value of a key."""
        name = self.name(path)
        raise GpuConstructsError(f"{name} must be {must}; got {self.get(path)!r}; {why}; leave {name} out")

    def must_be_off(self, path: str, where: str, why: str) -> None:
        """Raise where a switch is on."""
        self.refuse(path, f"{self.off(path)} {where}", why)


def _at(values: Any, path: str) -> Any:
    for name in path.split("."):
        values = values.get(name) if isinstance(values, Mapping) else None
    return values


def check_rules(
    values: Mapping[str, Any],
    release: GpuOperatorRelease,
    platform: Platform,
    *,
    driver_install_dir: str | None = None,
    has_bridge: bool = False,
    keywords: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Refuse what contradicts itself, the platform or the operator.

    Args:
        values: For the chart, of keys and types that ``check_keys`` passed.
        release: Of the operator.
        platform: Where it runs.
        driver_install_dir: What ``hostPaths.driverInstallDir`` must be where something else stages the driver's
            files; None for what the platform has.
        has_bridge: Whether a ``ValidationBridge`` answers for the nodes' own driver.
        keywords: The keyword that said a key, for errors to name it.

    Returns:
        What works, or may work, and is likely not what the user wants.

    Raises:
        GpuConstructsError: The first contradiction.
    """
    seen = _Seen(values, keywords)
    _driver_and_toolkit(seen, platform)
    _bridge(seen, has_bridge)
    _custom_resources(seen, platform)
    _cdi(seen, platform)
    _device_list_strategy(seen, platform)
    _arguments(seen, platform)
    _driver_install_dir(seen, platform, driver_install_dir)
    _runtime_class(seen, platform)
    _config_maps(seen)
    _service_monitor(seen)
    _side_containers(seen, platform)
    _operands_without_nfd(seen)
    return list(_warnings(seen, release, platform))


def _driver_and_toolkit(seen: _Seen, platform: Platform) -> None:
    """No image of a driver exists for Talos (gpu-operator#647), and the toolkit would write containerd's files.

    assets/state-driver and assets/state-container-toolkit; a switch that is missing is on,
    api/nvidia/v1/clusterpolicy_types.go IsEnabled.
    """
    if not platform.brings_driver:
        return
    if seen.is_on("driver.enabled"):
        why = f"there is no driver image for Talos: {_TALOS_HAS}; no operator code looks at Talos' extensions"
        seen.must_be_off("driver.enabled", "on Talos", why)
    if seen.is_on("toolkit.enabled"):
        seen.must_be_off("toolkit.enabled", "on Talos", _TALOS_HAS)
    if seen.get("driver.nvidiaDriverCRD.enabled"):
        seen.must_be_off("driver.nvidiaDriverCRD.enabled", "on Talos", "there is no driver image for Talos")


def _bridge(seen: _Seen, has_bridge: bool) -> None:
    for path in ("driver.enabled", "toolkit.enabled", "cdi.enabled") if has_bridge else ():
        if seen.is_on(path):
            why = "the bridge answers for a driver and a toolkit that the nodes have, handed out without CDI"
            seen.must_be_off(path, "beside a ValidationBridge", why)


def _custom_resources(seen: _Seen, platform: Platform) -> None:
    """chart/templates/validations.yaml and gpucluster.yaml@v26.7.0, and the API that DRA needs.

    For Talos: cmd/nvidia-validator/driver.go and manifests/state-dra-driver/0500_daemonset.yaml@v26.7.0. Talos links
    ``/usr/bin/nvidia-smi``, so the validator takes ``/`` for the driver root and writes it to ``driver-ready``.
    """
    if not seen.get("gpuCluster.deployCR"):
        return
    why_not = platform.refusal_of("dra") or (_GPU_CLUSTER_FINDS_NO_DRIVER if platform.brings_driver else None)
    if why_not:
        seen.must_be_off("gpuCluster.deployCR", f"on {platform}", why_not)
    if seen.get("clusterPolicy.deployCR"):
        raise GpuConstructsError(
            "values.clusterPolicy.deployCR must be false beside gpuCluster.deployCR; got True; the chart takes one of "
            "the two; set it to false, or leave gpuCluster.deployCR out"
        )
    if seen.get("driver.enabled") and not seen.get("driver.nvidiaDriverCRD.enabled"):
        raise GpuConstructsError(
            "values.driver.nvidiaDriverCRD.enabled must be true beside gpuCluster.deployCR and driver.enabled; got "
            f"{seen.get('driver.nvidiaDriverCRD.enabled')!r}; set it, or driver.enabled to false where the nodes have "
            "the driver"
        )
    for path in ("devicePlugin.config.name", _ENV):
        if seen.get(path):
            seen.refuse(path, "left out beside gpuCluster.deployCR", "a GPUCluster runs no device plugin")


def _cdi(seen: _Seen, platform: Platform) -> None:
    """chart/templates/validations.yaml@v26.7.0; controllers/state_manager.go validateClusterPolicySpec@v26.3.3."""
    if seen.is_on("cdi.enabled") and not platform.supports_cdi:
        why = "CDI specs name paths that this Talos does not have, which Talos 1.13 and later do"
        seen.must_be_off("cdi.enabled", f"on {platform}", why)
    if not seen.get("cdi.nriPluginEnabled"):
        return
    for needed in ("cdi.enabled", "toolkit.enabled"):
        if not seen.is_on(needed):
            why = "the plugin runs in the operator's toolkit container and hands out CDI devices"
            seen.must_be_off("cdi.nriPluginEnabled", f"without {seen.keyword(needed) or needed}", why)


def _device_list_strategy(seen: _Seen, platform: Platform) -> None:
    """controllers/object_controls.go TransformDevicePlugin: what the user sets comes last and wins over CDI's own."""
    for index, variable in enumerate(seen.list(_ENV)):
        if variable.get("name") == _STRATEGY:
            name = seen.keyword(_ENV) or f"values.{_ENV}[{index}].value"
            _check_strategy(seen, platform, name, variable.get("value") or "")


def _check_strategy(seen: _Seen, platform: Platform, name: str, given: str) -> None:
    allowed = get_args(DeviceListStrategy)
    words = given.split(",")
    for word in words:
        if word not in allowed:
            raise GpuConstructsError(
                f"{name} must be words of {', '.join(allowed)}, joined by commas alone; got {given!r}"
                f"{did_you_mean(word, allowed)}; leave it out for what goes with CDI on or off"
            )
    if "volume-mounts" in words and not platform.accepts_volume_mounts:
        raise GpuConstructsError(
            f"{name} must not hold 'volume-mounts' on {platform}; got {given!r}; {NO_VOLUME_MOUNTS}; use 'envvar'"
        )
    has_cdi = any(word.startswith("cdi-") for word in words)
    is_typed, cdi = name == seen.keyword(_ENV), seen.keyword("cdi.enabled")
    if has_cdi and not seen.is_on("cdi.enabled"):
        off = "CDI is off" if is_typed else "cdi.enabled is false"
        way_out = f"leave {name} out{', or take cdi=False back' if cdi else ''}"
        raise GpuConstructsError(f"{name} must be 'envvar' or 'volume-mounts' while {off}; got {given!r}; {way_out}")
    if not has_cdi and seen.is_on("cdi.enabled"):
        on = "CDI is on" if is_typed or cdi else "cdi.enabled is true"
        off = "pass cdi=False" if is_typed or cdi else "set cdi.enabled to false"
        raise GpuConstructsError(
            f"{name} must be a cdi- strategy while {on}, as it is by default; got {given!r}; {off}, which alone gives "
            f"'envvar', or leave {name} out; later operators refuse to reconcile this"
        )


def _arguments(seen: _Seen, platform: Platform) -> None:
    """assets/state-device-plugin: the container is ``/bin/sh -c``, and the arguments stand for its script."""
    path = "devicePlugin.args"
    arguments = [str(one) for one in seen.list(path)]
    if arguments and arguments[0].startswith("-"):
        raise GpuConstructsError(
            f"values.{path} must open with a command of a shell: the operator runs '/bin/sh -c' with it instead of its "
            f"own script; got {arguments[0]!r}; say flags as variables in values.{_ENV}, like {_STRATEGY}"
        )
    for given in _FLAG.findall(" ".join(arguments)):
        _check_strategy(seen, platform, f"--device-list-strategy in values.{path}", given)


def _driver_install_dir(seen: _Seen, platform: Platform, staged: str | None) -> None:
    """cmd/nvidia-validator: the driver's libraries and nvidia-smi are looked up below this folder."""
    expected, path = staged or platform.driver_install_dir, "hostPaths.driverInstallDir"
    if expected and (seen.get(path) or "").rstrip("/") != expected:
        where = "there the driver's files are staged" if staged else f"{platform} has the driver's files there"
        seen.refuse(path, repr(expected), f"{where}, and the operator's validator looks there")


def _runtime_class(seen: _Seen, platform: Platform) -> None:
    """controllers/object_controls.go getRuntimeClassName: one word names the RuntimeClass and its handler alike."""
    path = "operator.runtimeClass"
    if platform.brings_driver and seen.get(path) not in (None, "", platform.runtime_class):
        why = "it names the handler too, and containerd has no other for NVIDIA's runtime there"
        seen.refuse(path, f"{platform.runtime_class!r} on {platform}", why)


def _config_maps(seen: _Seen) -> None:
    """chart/templates/validations.yaml@v26.7.0, plugin_config.yaml, mig_config.yaml, dcgm_exporter_config.yaml."""
    for operand in ("devicePlugin", "migManager", "dcgmExporter"):
        config = f"{operand}.config"
        for key in ("name", "data") if seen.get(f"{config}.create") else ():
            got = seen.get(f"{config}.{key}")
            if not got:
                raise GpuConstructsError(
                    f"values.{config}.{key} must be given where {config}.create is true; got {got!r}; give it, or drop "
                    "create"
                )
    config = "devicePlugin.config"
    default, entries = seen.get(f"{config}.default"), seen.get(f"{config}.data") or {}
    if seen.get(f"{config}.create") and default not in (None, "") and str(default) not in entries:
        # NVIDIA/k8s-device-plugin cmd/config-manager: what is named and not there is an error.
        raise GpuConstructsError(
            f"values.{config}.default must be one of {', '.join(entries)}; got {default!r}; config-manager fails"
            f"{did_you_mean(default, entries)}; name one of them"
        )


def _service_monitor(seen: _Seen) -> None:
    path, exporter = "dcgmExporter.serviceMonitor.enabled", "dcgmExporter.enabled"
    if seen.get(path) and not seen.is_on(exporter):
        why = "the operator makes it with the exporter alone"
        seen.must_be_off(path, f"while {seen.keyword(exporter) or exporter} is {seen.off(exporter)}", why)


def _side_containers(seen: _Seen, platform: Platform) -> None:
    """assets/state-driver holds gdrdrv; TransformDevicePlugin hands its device out either way."""
    if seen.get("gdrcopy.enabled") and not platform.has_gdrdrv:
        why = "no extension has its kernel module; the device plugin would hand out a device that is not there"
        seen.must_be_off("gdrcopy.enabled", f"on {platform}", why)


def _operands_without_nfd(seen: _Seen) -> None:
    """The operator labels only nodes that NFD's worker labelled (controllers/state_manager.go hasGPULabels)."""
    missing = _not_in(seen, "daemonsets.tolerations", _WORKER)
    if missing and seen.is_stated("daemonsets.tolerations"):
        raise GpuConstructsError(
            f"values.{_WORKER} must hold what {_tolerations(seen)} holds; got no {missing[0]!r}; add it, or pass "
            "tolerations=[...], which writes both: a node with that taint would get no GPU label, and so no pod of the "
            "operator, without any event"
        )


def _tolerations(seen: _Seen) -> str:
    return seen.keyword("daemonsets.tolerations") or "daemonsets.tolerations"


def _not_in(seen: _Seen, path: str, other: str) -> list[Mapping[str, Any]]:
    if not seen.get("nfd.enabled") or seen.get(f"{NFD}.worker.enable") is False:
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
            "values.psa.enabled is needless: the operator would label its namespace 'privileged', which it must be "
            "before the operator's pods are let in; leave it out"
        )
    if seen.get("devicePlugin.config.name") and seen.get("devicePlugin.config.default") in (None, ""):
        # controllers/object_controls.go: DEFAULT_CONFIG is empty and FALLBACK_STRATEGIES is 'empty'.
        yield (
            "values.devicePlugin.config.default is empty: a node without the label nvidia.com/device-plugin.config "
            "runs an empty configuration; name one of the entries"
        )
    if not seen.is_stated("daemonsets.tolerations"):
        for toleration in _not_in(seen, "daemonsets.tolerations", _WORKER):
            yield (
                f"values.{_WORKER} lacks {toleration!r}, which the operands have by default: a node with that taint "
                "gets no GPU label, and so no pod of the operator; add it, if a node has it"
            )
    for toleration in _not_in(seen, _WORKER, "daemonsets.tolerations"):
        if not _covers(_CONTROL_PLANE, toleration) and toleration.get("key") != "node-role.kubernetes.io/master":
            yield (
                f"values.daemonsets.tolerations lacks {toleration!r}, which {_WORKER} holds: a node with that taint is "
                "labelled for its GPU and gets no pod of the operator; add it, or pass tolerations=[...]"
            )
    if seen.get("daemonsets.podSecurityContext") and not seen.get("gpuCluster.deployCR"):
        # chart/templates/gpucluster.yaml copies daemonsets whole, clusterpolicy.yaml key by key.
        yield (
            "values.daemonsets.podSecurityContext goes into a GPUCluster alone: no ClusterPolicy gets it; leave it out"
        )
    if not seen.get("clusterPolicy.deployCR") and not seen.get("gpuCluster.deployCR"):
        yield (
            "values.clusterPolicy.deployCR is false and gpuCluster.deployCR too: the operator has nothing to do; set "
            "one of them to true"
        )


def _of_talos(seen: _Seen, platform: Platform) -> Iterator[str]:
    if not platform.brings_driver:
        return
    if seen.is_on("migManager.enabled"):
        # assets/state-mig-manager: hostPID, and with a host driver it stops and starts services by systemd.
        yield (
            f"{seen.name('migManager.enabled')} is on: the manager stops and starts the host's services by systemd, "
            f"which Talos does not have, and hangs (NVIDIA/gpu-operator#2501); leave {seen.name('migManager.enabled')} "
            "out and partition by other means"
        )
    if seen.get("sandboxWorkloads.enabled"):
        yield (
            "values.sandboxWorkloads.enabled is true: nobody has reported GPUs for virtual machines by it on Talos; "
            "leave it out"
        )


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
                yield (
                    f"values.{path}.env sets {name!r}, which the validator does not read by itself"
                    f"{did_you_mean(name, read)}; leave it out unless another program in its containers reads it; the "
                    f"validator reads {', '.join(read)}"
                )


def _behaves_since(first: str, release: GpuOperatorRelease) -> bool:
    known = tuple(GPU_OPERATOR)
    return known.index(release.behaves_like) >= known.index(first)
