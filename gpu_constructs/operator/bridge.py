"""The validation bridge as plain data: the checks of its options, its ConfigMap and its DaemonSet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields, labels, pods
from gpu_constructs.kube.config_map import SCRIPT_MODE, config_map, sha256, shell_script
from gpu_constructs.kube.container_security import POD, container_security

Strategy = Literal["markers", "stage"]

DEFAULT_STAGE_DIR = "/var/lib/gpu-constructs/driver"
_MODULE = fields.regex(r"[A-Za-z0-9_]+\Z")
_PATH = fields.regex(r"(/(?!\.{1,2}(/|\Z))[A-Za-z0-9._-]+)+\Z")
_NOEXEC = ("/run", "/var/run")
_TAKEN = ("/var/lib/containerd", "/var/lib/etcd", "/var/lib/kubelet", "/var/log")
_FILES = {"source_lib_dir": "libnvidia-ml.so.1", "source_bin_dir": "nvidia-smi"}

NAME = "nvidia-validation-bridge"
VALIDATIONS_DIR = "/run/nvidia/validations"
_SCRIPT = "validation-bridge.sh"
_STATE_DIR = "/tmp"
_HOST = "/host"
_VOLUMES = {
    "DEV_ROOT": "dev",
    "SOURCE_BIN_DIR": "driver-programs",
    "SOURCE_LIB_DIR": "driver-libraries",
    "STAGE_DIR": "stage",
    "VALIDATIONS_DIR": "validations",
}


# --- options ---------------------------------------------------------------------------------------------------


check_driver_version = fields.matching(r"[0-9]+(\.[0-9]+)+\Z", "be a driver version like '570.211.01'")


def modules(given: Sequence[str] | None) -> str | None:
    """Return the names of the required kernel modules, separated by spaces, for the script of the validation bridge.

    The bridge is a DaemonSet that lets the pods of the GPU Operator start on Talos. ``given`` is the option
    ``required_modules`` of ``ValidationBridge``. If ``given`` is None, return None: the script then requires ``nvidia``
    and ``nvidia_uvm``.
    """
    if given is None:
        return None
    fields.refuse_first(
        [
            (
                not given,
                "required_modules must contain a kernel module, got an empty list. Remove required_modules to use "
                "nvidia and nvidia_uvm",
            ),
            *(
                (
                    not _MODULE.match(name),
                    f"required_modules[{index}] must be a kernel module's name as in /proc/modules (letters, digits, "
                    f"'_'), got {name!r}{fields.did_you_mean(name, [name.replace('-', '_')] if name else [])}",
                )
                for index, name in enumerate(given)
            ),
        ]
    )
    return " ".join(given)


def devices(given: Sequence[str]) -> str:
    """Return the names of the required character devices, separated by spaces, for the script of the validation bridge.

    The bridge is a DaemonSet that lets the pods of the GPU Operator start on Talos. ``given`` contains names below
    ``/dev``, such as ``nvidiactl``, with or without the prefix ``/dev/``. The result has no prefixes.
    """
    names = [name.removeprefix("/dev/") for name in given]
    fields.refuse_first(
        (
            not _PATH.match(f"/{name}"),
            f"required_devices[{index}] must be a name below /dev, like 'nvidiactl', got {given[index]!r}",
        )
        for index, name in enumerate(names)
    )
    return " ".join(names)


def staging(strategy: Strategy, platform: Platform, stage: str | None, **folders: str | None) -> dict[str, str]:
    """Return the directories on the node that the script of the validation bridge uses, by name of a shell variable.

    With the strategy ``stage``, the script copies ``libnvidia-ml.so.1`` from ``SOURCE_LIB_DIR`` and ``nvidia-smi`` from
    ``SOURCE_BIN_DIR`` to ``STAGE_DIR``. With the strategy ``markers``, the script copies no files, and the result is
    empty.

    Args:
        strategy: Strategy of the bridge, ``stage`` or ``markers``.
        platform: Platform of the nodes.
        stage: Option ``stage_dir`` of ``ValidationBridge``. None: ``/var/lib/gpu-constructs/driver``.
        folders: Options ``source_lib_dir`` and ``source_bin_dir`` of ``ValidationBridge``, by name. None: the folder of
            the platform.
    """
    if strategy == "stage":
        sources = {name: _source(name, folder, platform) for name, folder in folders.items()}
        stage = _stage_dir(stage, platform, apart_from=sources.values())
        return {"STAGE_DIR": stage, **{name.upper(): folder for name, folder in sources.items()}}
    fields.refuse_first(
        (
            value is not None,
            f"{name} must be absent with strategy 'markers', which copies no files, got "
            f"{value!r}. Remove it, or set strategy='stage'",
        )
        for name, value in {"stage_dir": stage, **folders}.items()
    )
    return {}


def _source(name: str, given: str | None, platform: Platform) -> str:
    of_platform = platform.driver_library_path if name == "source_lib_dir" else platform.driver_program_path
    path = of_platform if given is None else given
    if path is None:
        raise GpuConstructsError(
            f"{name} must have a value with strategy 'stage' on {platform}, because the library does not "
            f"know the folder of the driver. Pass the folder on the nodes that contains {_FILES[name]}"
        )
    _check_path(name, path)
    return path


def _stage_dir(given: str | None, platform: Platform, *, apart_from: Iterable[str]) -> str:
    stage = DEFAULT_STAGE_DIR if given is None else given
    way_out = f"got {stage!r}. Remove stage_dir to use {DEFAULT_STAGE_DIR!r}"
    _check_path("stage_dir", stage)
    fields.refuse_first(
        [
            *(
                (
                    _is_below(stage, mount),
                    f"stage_dir must not be below {mount}, where the operator cannot run programs (noexec), {way_out}",
                )
                for mount in _NOEXEC
            ),
            (
                platform.brings_driver and not _is_below(stage, "/var"),
                "stage_dir must be below /var, the only writable folder of a Talos node that can contain programs, "
                f"{way_out}",
            ),
            *(
                (
                    _is_below(stage, other) or _is_below(other, stage),
                    f"stage_dir must be separate from {other}, {way_out}",
                )
                for other in (*_TAKEN, *_NOEXEC, *apart_from)
            ),
        ]
    )
    return stage


def _is_below(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder}/")


_check_path = fields.matching(
    _PATH.pattern, "be an absolute path of letters, digits, '-', '_' and '.', without '..' and a trailing '/'"
)


# --- objects ---------------------------------------------------------------------------------------------------


def script(strategy: Strategy) -> str:
    """Return the shell script of the validation bridge for a strategy.

    With ``stage``, the script copies driver files. With ``markers``, it writes marker files.
    """
    own = shell_script("gpu_constructs.operator", f"validation_bridge_{strategy}.sh")
    shared = shell_script("gpu_constructs.operator", "validation_bridge.sh")
    return own + shared.partition("\n")[2]


def manifests(
    id: str,
    *,
    namespace: str,
    strategy: Strategy,
    variables: Mapping[str, str | None],
    directories: Mapping[str, str],
    placed: Mapping[str, Any],
    image: str,
    resources: Mapping[str, Any],
    interval_seconds: int,
) -> dict[str, dict[str, Any]]:
    """Return the ConfigMap and the DaemonSet of the validation bridge, by construct ID.

    Args:
        id: Construct ID of the bridge.
        namespace: Namespace of the objects.
        strategy: What the script does: ``stage`` copies driver files, and ``markers`` writes marker files.
        variables: Environment variables of the script, by name. If a value is None or empty, the script uses its own
            default.
        directories: Directories on the node, by the environment variable with which the script gets the path.
        placed: Fields of the pod spec that decide on which nodes the pods run.
        image: Image of the container, which must have a shell.
        resources: Requests and limits of the container.
        interval_seconds: Time between two checks, in seconds.
    """
    text = script(strategy)
    selector = labels.selector_labels(name=NAME, instance=id, component="validation-bridge")
    metadata = {"name": NAME, "namespace": namespace, "labels": labels.object_labels(selector)}
    written = {name: path for name, path in directories.items() if name == "STAGE_DIR"}
    if strategy == "markers":
        written = {"VALIDATIONS_DIR": VALIDATIONS_DIR}
    read = {name: path for name, path in directories.items() if name != "STAGE_DIR"}
    environment = {
        **variables,
        "INTERVAL_SECONDS": str(interval_seconds),
        "STATE_DIR": _STATE_DIR,
        **written,
        **{name: _HOST + path for name, path in read.items()},
    }
    mounts = _mounts(written, read)
    container = {
        "name": "bridge",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", f"/script/{_SCRIPT}"],
        "env": [{"name": name, "value": value} for name, value in sorted(environment.items()) if value],
        "resources": resources,
        "securityContext": container_security(),
        "readinessProbe": _probe(["test", "-f", f"{_STATE_DIR}/ready"], period=10, failures=5),
        # The loop creates this file again each turn. If the probe cannot remove it three times, the loop hangs.
        "livenessProbe": {
            **_probe(["rm", f"{_STATE_DIR}/alive"], period=max(30, 3 * interval_seconds), failures=3),
            "initialDelaySeconds": 3 * interval_seconds,
        },
        "volumeMounts": [{"name": name, **mount} for name, (_, mount) in sorted(mounts.items())],
    }
    pod_spec = {
        **placed,
        "automountServiceAccountToken": False,
        "containers": [container],
        "enableServiceLinks": False,
        "priorityClassName": "system-node-critical",
        "securityContext": {**POD, "runAsUser": 0, "runAsGroup": 0},
        "terminationGracePeriodSeconds": 10,
        "volumes": [{"name": name, **volume} for name, (volume, _) in sorted(mounts.items())],
    }
    return {
        "script": config_map(metadata, {_SCRIPT: text}),
        "Default": pods.daemonset(
            metadata=metadata,
            selector=selector,
            annotations={"gpu-constructs/script-sha256": sha256(text)},
            rolling_update={"maxUnavailable": 1},
            pod_spec=pod_spec,
        ),
    }


def _mounts(written: Mapping[str, str], read: Mapping[str, str]) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return a dict from the name of each volume to a pair: the volume source, and the volume mount.

    The volumes are the script, a directory in memory for its state, and directories of the node (``hostPath``). For
    read-only directories, the volumes set no ``type``, because the kubelet of Talos would check the type in its own
    container. Read-only directories have mount paths that begin with ``/host``, so that the shell in the container does
    not run programs of the node.

    Args:
        written: Directories of the node to which the script writes, by name of a shell variable.
        read: Directories of the node that the script only reads, by name of a shell variable.
    """
    script_file = {"configMap": {"name": NAME, "defaultMode": SCRIPT_MODE}}
    state = {"emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
    by_path = {path: _VOLUMES[name] for name, path in read.items()}
    return {
        "script": (script_file, {"mountPath": "/script", "readOnly": True}),
        "state": (state, {"mountPath": _STATE_DIR}),
        **{
            _VOLUMES[name]: ({"hostPath": {"path": path, "type": "DirectoryOrCreate"}}, {"mountPath": path})
            for name, path in written.items()
        },
        **{
            name: ({"hostPath": {"path": path}}, {"mountPath": _HOST + path, "readOnly": True})
            for path, name in by_path.items()
        },
    }


def _probe(command: list[str], *, period: int, failures: int) -> dict[str, Any]:
    return {
        "exec": {"command": command},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }
