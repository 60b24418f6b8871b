"""The bridge between Talos and the GPU Operator's validation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from constructs import Construct

from gpu_constructs import _fields, placement, versions
from gpu_constructs._config_map import config_map, sha256
from gpu_constructs._construct import GpuObject, checked
from gpu_constructs._container_security import POD, container_security
from gpu_constructs._daemonset import daemonset
from gpu_constructs._labels import object_labels, selector_labels
from gpu_constructs._manifest import Manifest
from gpu_constructs._references import NamedObject
from gpu_constructs._resources import Resources, container_resources
from gpu_constructs._shell_script import SCRIPT_MODE, shell_script
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.namespace import DEFAULT_NAMESPACE, component_namespace, require_privileged
from gpu_constructs.placement import Toleration
from gpu_constructs.platforms import DEFAULT_PLATFORM, GPU_PRESENT, Platform, require
from gpu_constructs.provided import Provided, placement_of

Strategy = Literal["markers", "stage"]

NAME = "nvidia-validation-bridge"
VALIDATIONS_DIR = "/run/nvidia/validations"
DEFAULT_STAGE_DIR = "/var/lib/gpu-constructs/driver"
_SCRIPT = "validation-bridge.sh"
_STATE_DIR = "/tmp"
_HOST = "/host"
_DRIVER_VERSION = re.compile(r"[0-9]+(\.[0-9]+)+\Z")
_MODULE = re.compile(r"[A-Za-z0-9_]+\Z")
_PATH = re.compile(r"(/(?!\.{1,2}(/|\Z))[A-Za-z0-9._-]+)+\Z")
_NOEXEC = ("/run", "/var/run")
_TAKEN = ("/var/lib/containerd", "/var/lib/etcd", "/var/lib/kubelet", "/var/log")
# Each probe starts a process: on a busy node it ends in time only if its container has a share of the CPU.
_RESOURCES: Resources = {"requests": {"cpu": "10m", "memory": "8Mi"}, "limits": {"memory": "64Mi"}}

_VALIDATOR_OFF = "nvidia.com/gpu.deploy.operator-validator=false"
_WANTED: Mapping[Strategy, Mapping[str, str]] = {
    "markers": {
        _VALIDATOR_OFF: (
            "the operator's validator, which can never pass here, deletes what the bridge writes whenever it starts or "
            "stops; add TalosGpuNode(app, 'gpu-node', platform=..., operator_validator=False), or declare it with "
            "External(app, 'existing', node_labels=['nvidia.com/gpu.deploy.operator-validator'])"
        )
    },
    "stage": {},
}
_UNWANTED: Mapping[Strategy, Mapping[str, str]] = {
    "markers": {},
    "stage": {
        _VALIDATOR_OFF: (
            "the operator's validator must run to write the files that its operands wait for; leave "
            "operator_validator=False out"
        )
    },
}


class ValidationBridge(GpuObject):
    """Lets the GPU Operator's operands start where Talos brings driver and toolkit, as long as a driver is live.

    The operator's device plugin, GPU Feature Discovery and DCGM exporter wait for marker files that its
    validator writes, and until Talos 1.12 the validator never finds the driver: no folder holds both the
    library and nvidia-smi at the places it looks at. The bridge checks that the kernel modules are live and a
    GPU is bound to the driver, and then helps in one of two ways:

    - ``stage`` copies ``libnvidia-ml.so.1`` and ``nvidia-smi`` to ``<stage_dir>/usr/lib64`` and ``/usr/bin``.
      The operator, told ``hostPaths.driverInstallDir=<stage_dir>`` (``driver_install_dir`` below), then
      validates the node in earnest, writes the files itself, and its ClusterPolicy can become ready. The node
      label ``nvidia.com/gpu.deploy.operator-validator`` must not be set: the validator has to run. The copies
      are the bytes of the node, made anew when those change; nothing that is copied is run by the bridge.
    - ``markers`` writes the marker files in the validator's place, and again when they are deleted. The node
      label ``nvidia.com/gpu.deploy.operator-validator=false`` must be set: else the validator keeps deleting
      them, and never becomes ready.

    Both need ``driver.enabled=false``, ``toolkit.enabled=false`` and ``cdi.enabled=false`` of the operator.
    When the driver goes, the bridge takes back what it made, and its log says why.

    Emits ConfigMap and DaemonSet ``nvidia-validation-bridge``. The pods run as root, because the directory
    is root's, and hold nothing else: no capability, no device, no token, one writable host path.

    Attributes:
        api_object: The DaemonSet.
        strategy: What was chosen.
        driver_install_dir: What the operator's ``hostPaths.driverInstallDir`` must be; None with ``markers``,
            where nobody reads it.
        namespace: Name of the namespace it lives in.

    Source:
        NVIDIA/gpu-operator@v25.10.1, v26.3.3, v26.7.0: cmd/nvidia-validator/main.go, driver.go, find.go,
        internal/driver/root.go, assets/state-operator-validation, controllers/object_controls.go
        (transformForDriverInstallDir); siderolabs/extensions@v1.12.11:nvidia-gpu/nvidia-container-toolkit
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        namespace: str | NamedObject = DEFAULT_NAMESPACE,
        platform: Platform = DEFAULT_PLATFORM,
        strategy: Strategy = "markers",
        expected_driver_version: str | None = None,
        required_modules: Sequence[str] | None = None,
        required_devices: Sequence[str] = (),
        interval_seconds: int = 10,
        retract_on_exit: bool = True,
        stage_dir: str | None = None,
        source_lib_dir: str | None = None,
        source_bin_dir: str | None = None,
        tolerations: Sequence[Toleration] = (),
        node_selector: Mapping[str, str] | None = None,
        image: str = versions.BUSYBOX_IMAGE,
        resources: Resources | None = None,
    ) -> None:
        """Make the bridge.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            namespace: The operator's namespace, by name or object; it must be privileged (host path).
            platform: Talos up to 1.12, or ``Kubernetes()`` where the nodes' driver lies apart. Later Talos
                needs no bridge: there the operator's own validator passes, and a bridge would hide what it
                finds.
            strategy: ``markers`` writes the files the operands wait for, ``stage`` puts the driver's files
                where the operator's validator looks for them.
            expected_driver_version: Also wait until the driver is this very version, like ``570.211.01``.
            required_modules: Kernel modules that must be live; by default ``nvidia`` and ``nvidia_uvm``.
            required_devices: Names below /dev that must be character devices, like ``nvidiactl``; none by
                default. With any, the pods mount the node's /dev read-only, and open nothing in it.
            interval_seconds: Seconds between two checks.
            retract_on_exit: Whether a stopped bridge takes its files with it. Running operands do not
                care; those that start meanwhile wait for the next bridge.
            stage_dir: With ``stage``: the directory of the node that gets the copies, made when missing; by
                default ``/var/lib/gpu-constructs/driver``. The bridge owns the two names in it, so give one
                that nothing else uses. It must be below /var, the one part of a Talos node that can be
                written; not below /run, which is mounted noexec.
            source_lib_dir: With ``stage``: where ``libnvidia-ml.so.1`` lies on the node. None: the platform
                says it for Talos; elsewhere it must be given.
            source_bin_dir: With ``stage``: where ``nvidia-smi`` lies on the node; as above.
            tolerations: Taints of the GPU nodes, on top of ``nvidia.com/gpu``.
            node_selector: Node labels asked for besides.
            image: Any image with a shell and the common small tools.
            resources: By default requests of 10m CPU and 8Mi and a memory limit of 64Mi: the shell needs some
                4Mi, the container runtime starts each probe within the limit, and of what is copied (3Mi)
                only page cache counts, which the kernel takes back.

        Raises:
            GpuConstructsError: The platform needs no bridge, the namespace is a ``GpuNamespace`` that is not
                privileged, an option belongs to the other strategy, or a value above is not allowed.
        """
        _fields.label_value("id", id)
        where = component_namespace(namespace)
        require_privileged("namespace", namespace, "the bridge mounts a host path")
        require(platform, "gpu-operator-bridge")
        _fields.whole_number("interval_seconds", interval_seconds, minimum=1, maximum=86_400)
        _fields.image("image", image)
        _fields.labels("node_selector", node_selector or {})
        if expected_driver_version is not None and not _DRIVER_VERSION.match(expected_driver_version):
            raise GpuConstructsError(
                f"expected_driver_version must be a driver version like '570.211.01'; got {expected_driver_version!r}"
            )
        modules, devices = _modules(required_modules), _devices(required_devices)
        reads = {"DEV_ROOT": "/dev"} if devices else {}
        stage = None
        if strategy == "stage":
            reads |= _sources(platform, source_lib_dir, source_bin_dir)
            stage = _stage_dir(stage_dir, platform, apart_from=reads.values())
        else:
            _refuse_stage(stage_dir=stage_dir, source_lib_dir=source_lib_dir, source_bin_dir=source_bin_dir)
        amounts = container_resources(resources, default=_RESOURCES)
        labels = platform.driver_node_labels or (GPU_PRESENT,)
        placed = {
            "affinity": placement.required_node_affinity([[placement.label_exists(label)] for label in labels]),
            "nodeSelector": node_selector or None,
            "tolerations": placement.tolerations((placement.GPU_TAINT,), tolerations),
        }
        super().__init__(scope, id)
        self.strategy: Strategy = strategy
        self.driver_install_dir: str | None = stage
        self.namespace = where
        self.provides = Provided(
            platform=platform,
            runs_on=(placement_of(placed),),
            components=("validation-bridge",),
            stages_driver_in=stage,
            wants_node_labels=_WANTED[strategy],
            unwanted_node_labels=_UNWANTED[strategy],
            privileged_namespaces=(where,),
        )

        text = script(strategy)
        selector = selector_labels(name=NAME, instance=id, component="validation-bridge")
        metadata = {"name": NAME, "namespace": where, "labels": object_labels(selector)}
        writes = {"VALIDATIONS_DIR": VALIDATIONS_DIR} if stage is None else {"STAGE_DIR": stage}
        variables = {
            "EXPECTED_DRIVER_VERSION": expected_driver_version,
            "INTERVAL_SECONDS": str(interval_seconds),
            "REQUIRED_DEVICES": devices,
            "REQUIRED_MODULES": modules,
            "RETRACT_ON_EXIT": str(retract_on_exit).lower(),
            "STATE_DIR": _STATE_DIR,
            **writes,
            **{name: _HOST + path for name, path in reads.items()},
        }
        mounts: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
            "script": (
                {"configMap": {"name": NAME, "defaultMode": SCRIPT_MODE}},
                {"mountPath": "/script", "readOnly": True},
            ),
            "state": ({"emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}, {"mountPath": _STATE_DIR}),
            **{
                _VOLUMES[name]: ({"hostPath": {"path": path, "type": "DirectoryOrCreate"}}, {"mountPath": path})
                for name, path in writes.items()
            },
            # No type: Talos' kubelet would look for the folder in its own container. And not at its own place,
            # where the node's programs would come first on the shell's path.
            **{
                name: ({"hostPath": {"path": path}}, {"mountPath": _HOST + path, "readOnly": True})
                for path, name in {path: _VOLUMES[name] for name, path in reads.items()}.items()
            },
        }
        Manifest(self, "script", config_map(metadata, {_SCRIPT: text}))
        container = {
            "name": "bridge",
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/bin/sh", f"/script/{_SCRIPT}"],
            "env": [{"name": name, "value": value} for name, value in sorted(variables.items()) if value],
            "resources": amounts,
            "securityContext": container_security(),
            "readinessProbe": {
                "exec": {"command": ["test", "-f", f"{_STATE_DIR}/ready"]},
                "periodSeconds": 10,
                "timeoutSeconds": 5,
                "failureThreshold": 5,
            },
            # The loop makes the file anew each turn: one that cannot be removed three times means it hangs.
            "livenessProbe": {
                "exec": {"command": ["rm", f"{_STATE_DIR}/alive"]},
                "initialDelaySeconds": 3 * interval_seconds,
                "periodSeconds": max(30, 3 * interval_seconds),
                "timeoutSeconds": 5,
                "failureThreshold": 3,
            },
            "volumeMounts": [{"name": name, **mount} for name, (_, mount) in sorted(mounts.items())],
        }
        Manifest(
            self,
            "Default",
            daemonset(
                metadata=metadata,
                selector=selector,
                annotations={"gpu-constructs/script-sha256": sha256(text)},
                rolling_update={"maxUnavailable": 1},
                pod_spec={
                    **placed,
                    "automountServiceAccountToken": False,
                    "containers": [container],
                    "enableServiceLinks": False,
                    "priorityClassName": "system-node-critical",
                    "securityContext": {**POD, "runAsUser": 0, "runAsGroup": 0},
                    "terminationGracePeriodSeconds": 10,
                    "volumes": [{"name": name, **volume} for name, (volume, _) in sorted(mounts.items())],
                },
            ),
        )


_VOLUMES = {
    "DEV_ROOT": "dev",
    "SOURCE_BIN_DIR": "driver-programs",
    "SOURCE_LIB_DIR": "driver-libraries",
    "STAGE_DIR": "stage",
    "VALIDATIONS_DIR": "validations",
}


def script(strategy: Strategy) -> str:
    """Give the script of a strategy: its own part, then the one that all share, less its first line."""
    own = shell_script("gpu_constructs.operator", f"validation_bridge_{strategy}.sh")
    shared = shell_script("gpu_constructs.operator", "validation_bridge.sh")
    return own + shared.partition("\n")[2]


def _modules(given: Sequence[str] | None) -> str | None:
    if given is None:
        return None
    if not given:
        raise GpuConstructsError(
            "required_modules must name a kernel module; got an empty list; leave it out for nvidia and nvidia_uvm"
        )
    for index, name in enumerate(given):
        if not _MODULE.match(name):
            raise GpuConstructsError(
                f"required_modules[{index}] must be a kernel module's name as in /proc/modules (letters, digits, "
                f"'_'); got {name!r}{_fields.did_you_mean(name, [name.replace('-', '_')] if name else [])}"
            )
    return " ".join(given)


def _devices(given: Sequence[str]) -> str:
    names = [name.removeprefix("/dev/") for name in given]
    for index, name in enumerate(names):
        if not _PATH.match(f"/{name}"):
            raise GpuConstructsError(
                f"required_devices[{index}] must be a name below /dev, like 'nvidiactl'; got {given[index]!r}"
            )
    return " ".join(names)


def _refuse_stage(**given: str | None) -> None:
    for name, value in given.items():
        if value is not None:
            raise GpuConstructsError(
                f"{name} must be left out with strategy 'markers', which copies nothing; got {value!r}; "
                "leave it out, or pass strategy='stage'"
            )


def _sources(platform: Platform, lib_dir: str | None, bin_dir: str | None) -> dict[str, str]:
    lib_dir = platform.driver_library_path if lib_dir is None else lib_dir
    bin_dir = platform.driver_program_path if bin_dir is None else bin_dir
    found = {}
    for name, path, file in (
        ("source_lib_dir", lib_dir, "libnvidia-ml.so.1"),
        ("source_bin_dir", bin_dir, "nvidia-smi"),
    ):
        if path is None:
            raise GpuConstructsError(
                f"{name} is required with strategy 'stage' on {platform}, where nothing is known of the driver's "
                f"place; pass the folder of the nodes that holds {file}"
            )
        _check_path(name, path)
        found[name.upper()] = path
    return found


def _stage_dir(given: str | None, platform: Platform, *, apart_from: Iterable[str]) -> str:
    stage = DEFAULT_STAGE_DIR if given is None else given
    way_out = f"got {stage!r}; leave it out for {DEFAULT_STAGE_DIR!r}"
    _check_path("stage_dir", stage)
    for mount in _NOEXEC:
        if _is_below(stage, mount):
            raise GpuConstructsError(
                f"stage_dir must not be below {mount}, which is mounted nosuid,noexec, so that the operator could not "
                f"run what lies there; {way_out}"
            )
    if platform.brings_driver and not _is_below(stage, "/var"):
        raise GpuConstructsError(
            f"stage_dir must be below /var, the one part of a Talos node that can be written and run from; {way_out}"
        )
    for other in (*_TAKEN, *_NOEXEC, *apart_from):
        if _is_below(stage, other) or _is_below(other, stage):
            raise GpuConstructsError(f"stage_dir must be a directory of its own, apart from {other}; {way_out}")
    return stage


def _is_below(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder}/")


def _check_path(field: str, got: str) -> None:
    if not _PATH.match(got):
        raise GpuConstructsError(
            f"{field} must be an absolute path of letters, digits, '-', '_' and '.', without '..' and a trailing '/'; "
            f"got {got!r}"
        )
