"""The limit of what each GPU may draw, kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from constructs import Construct

from gpu_constructs import _fields, _references, placement, versions
from gpu_constructs._config_map import config_map, sha256
from gpu_constructs._construct import GpuObject, checked
from gpu_constructs._container_security import POD, container_security
from gpu_constructs._daemonset import daemonset
from gpu_constructs._labels import object_labels, selector_labels
from gpu_constructs._manifest import Manifest
from gpu_constructs._references import NamedObject
from gpu_constructs._resources import Resources, container_resources
from gpu_constructs._shell_script import SCRIPT_MODE, shell_script
from gpu_constructs.errors import GpuConstructsError, warn
from gpu_constructs.namespace import DEFAULT_NAMESPACE, component_namespace
from gpu_constructs.placement import Toleration
from gpu_constructs.platforms import DEFAULT_PLATFORM, GPU_PRESENT, Platform
from gpu_constructs.power.boards import OutOfRange, check_boards
from gpu_constructs.power.wish import PowerWish, power_wishes
from gpu_constructs.provided import PowerCap, Provided, placement_of
from gpu_constructs.runtime_class import runtime_class_name
from gpu_constructs.update_strategy import UpdateStrategy

NAME = "nvidia-powerlimit"
_SCRIPT = "power-limit.sh"
_STATE_DIR = "/run/power-limit"
_TEXTFILE_DIR = "/textfile"
_CHECKSUM = "gpu-constructs/script-sha256"
_PROBE_SECONDS = 10
# For one nvidia-smi call each on more boards than a node has, at seconds a call.
_RESTORE_SECONDS = 120
# Until the shell hears a signal behind a call of nvidia-smi that is being ended.
_STOP_SECONDS = 10
_OFTEN = "leave it out for a look every 1800 seconds"
_MOST_SECONDS = 9_999_999  # the script reads no more digits
_RESOURCES: Resources = {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "128Mi"}}


class PowerLimit(GpuObject):
    """Sets a power limit on every GPU, reads it back, and sets it again when it drifts.

    A limit is lost when the driver is reloaded, a GPU is reset or the node reboots, so a pod on every GPU
    node looks again and again. It uses ``nvidia-smi``, which the nvidia runtime puts into the container; it
    takes no GPU slot.

    Emits a ConfigMap and a DaemonSet of one name. The container runs as root with SYS_ADMIN, which the driver
    asks for, and holds nothing else: not privileged, no token, and no host path but a ``textfile_directory``.

    Attributes:
        name: Of the ConfigMap and the DaemonSet.
        namespace: They live in.
        watts: The limit of GPUs that ``limits`` does not name, as given.
        wishes: All limits, in the order in which they win: by UUID, PCI bus id, index, name, then ``watts``.
        interval_seconds: Seconds between two looks.
        retry_seconds: Seconds until the next look after one that found a problem.
        out_of_range: What happens to a limit that a board does not take.
        api_object: The DaemonSet.

    Source:
        nvidia-smi manual, "--power-limit"; NVIDIA/open-gpu-kernel-modules:kernel-open/common/inc/nv-linux.h,
        NV_IS_SUSER
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        namespace: str | NamedObject = DEFAULT_NAMESPACE,
        platform: Platform = DEFAULT_PLATFORM,
        name: str = NAME,
        watts: int | str | None = 300,
        limits: Mapping[str, int | str] | None = None,
        interval_seconds: int = 1800,
        retry_seconds: int = 15,
        start_timeout_seconds: int = 300,
        command_timeout_seconds: int = 20,
        out_of_range: OutOfRange = "clamp",
        gpu_models: Sequence[str] = (),
        persistence_mode: bool = True,
        restore_on_exit: bool = False,
        textfile_directory: str | None = None,
        runtime_class: str | NamedObject | None = None,
        tolerations: Sequence[Toleration] = (),
        node_selector: Mapping[str, str] | None = None,
        affinity: Mapping[str, Any] | None = None,
        image: str = versions.DEBIAN_IMAGE,
        image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent",
        image_pull_secrets: Sequence[str | NamedObject] = (),
        resources: Resources | None = None,
        priority_class_name: str | None = None,
        update_strategy: UpdateStrategy | None = None,
        pod_annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Make the power limit.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            namespace: By name or object; it must be privileged (SYS_ADMIN).
            platform: ``Talos("1.12")`` or ``Kubernetes()``; decides the runtime class.
            name: Of the objects. Nodes with other limits get a PowerLimit of their own, with another name and
                another ``node_selector``; the pods' label ``app.kubernetes.io/name`` is the same for all.
            watts: Limit of each GPU: whole watts, a share of the board's default like ``"80%"``, or
                ``"default"``; 300 by default, what an RTX 3090 (350 W) runs stably at. None leaves GPUs alone
                that ``limits`` does not name.
            limits: Limits of some GPUs, by a key that chooses them: ``uuid:GPU-...``, ``pci:0000:01:00.0``,
                ``index:0`` or ``name:*RTX 3090``, a shell pattern for the name that ``nvidia-smi`` gives. Of
                several that fit, the first kind in that order wins; of two by name, the first.
            interval_seconds: Seconds between two looks, 10 or more; 1800 by default.
            retry_seconds: Seconds until the next look after one that found a problem, never more than
                ``interval_seconds``; 15 by default.
            start_timeout_seconds: Seconds without any GPU in the output of ``nvidia-smi``, at the start or later,
                after which the container ends and Kubernetes starts it again; 300 by default.
            command_timeout_seconds: Seconds after which a call of ``nvidia-smi`` that does not end is ended; 20 by
                default. Such a call counts as one that shows no GPU.
            out_of_range: ``clamp`` takes the nearest limit the board allows, ``refuse`` reports an error.
            gpu_models: Names of the boards, as ``nvidia-smi`` prints them, to compare the limits with what is
                known of those boards. The pods take nothing from it: they ask the driver.
            persistence_mode: Whether to keep the driver loaded without clients, which keeps the limit.
            restore_on_exit: Whether a stopped pod restores the board's default limit. False by default: an
                update of the DaemonSet would otherwise let power surge.
            textfile_directory: Directory of the nodes whose ``*.prom`` files their node_exporter reads; gets
                ``<name>.prom`` with the limits wanted and found. None: no such file, and no host path.
            runtime_class: Name or object. None: the platform decides.
            tolerations: Taints of the GPU nodes, on top of ``nvidia.com/gpu``.
            node_selector: Node labels, besides ``nvidia.com/gpu.present=true``.
            affinity: As Kubernetes writes it, besides the node labels.
            image: Any glibc image with a POSIX shell and ``timeout``; ``nvidia-smi`` does not run on musl.
            image_pull_policy: ``IfNotPresent`` by default: the image is pinned.
            image_pull_secrets: Names or objects of Secrets in the namespace, for a registry of your own.
            resources: By default requests of 10m CPU and 16Mi and a memory limit of 128Mi.
            priority_class_name: None by default: the agent must not evict workloads.
            update_strategy: A rolling update, one node after the other, by default. It must not surge.
            pod_annotations: Annotations of the pods.

        Raises:
            GpuConstructsError: A limit that is none, or that a board of ``gpu_models`` does not take under
                ``refuse``; an interval under 10 seconds; or another value that is not allowed.
        """
        _fields.label_value("id", id)
        where = component_namespace(namespace)
        _fields.dns_label("name", name)
        wishes = power_wishes(watts, limits or {})
        _fields.whole_number("interval_seconds", interval_seconds, minimum=10, maximum=_MOST_SECONDS, way_out=_OFTEN)
        _fields.whole_number("retry_seconds", retry_seconds, minimum=1, maximum=_MOST_SECONDS)
        _fields.whole_number("start_timeout_seconds", start_timeout_seconds, minimum=0, maximum=_MOST_SECONDS)
        _fields.whole_number("command_timeout_seconds", command_timeout_seconds, minimum=1, maximum=_MOST_SECONDS)
        _check_textfile_directory(textfile_directory, platform)
        _fields.image("image", image)
        _fields.labels("node_selector", node_selector or {})
        placement.check_affinity(affinity or {})
        pull_secrets = [_references.name_of("image_pull_secrets", secret, "Secret") for secret in image_pull_secrets]
        if priority_class_name is not None:
            _fields.dns_subdomain("priority_class_name", priority_class_name)
        if update_strategy is not None and update_strategy.max_surge not in (None, 0, "0%"):
            raise GpuConstructsError(
                "update_strategy must not surge: two agents of a node would undo each other's limits; got "
                f"max_surge={update_strategy.max_surge!r}; use max_unavailable"
            )
        _fields.labels("pod_annotations", dict.fromkeys(pod_annotations or {}, ""))
        if _CHECKSUM in (pod_annotations or {}):
            raise GpuConstructsError(f"pod_annotations must not hold {_CHECKSUM!r}: this library sets it; leave it out")
        runtime = runtime_class_name(runtime_class, platform)
        amounts = container_resources(resources, default=_RESOURCES)
        for warning in check_boards(wishes, gpu_models, out_of_range=out_of_range):
            warn(f"{scope.node.path}/{id}: {warning}".lstrip("/"))
        placed = {
            "affinity": affinity or None,
            "nodeSelector": {GPU_PRESENT: "true", **(node_selector or {})},
            "tolerations": placement.tolerations((placement.CRITICAL_ADDONS, placement.GPU_TAINT), tolerations),
        }
        super().__init__(scope, id)
        self.name = name
        self.namespace = where
        self.watts = watts
        self.wishes = wishes
        self.interval_seconds = interval_seconds
        self.retry_seconds = retry_seconds
        self.out_of_range: OutOfRange = out_of_range
        self.provides = Provided(
            platform=platform,
            runs_on=(placement_of(placed),),
            power_caps=[PowerCap(limits=_by_board(wishes), node_selector=node_selector or {})],
        )

        script = shell_script("gpu_constructs.power", "power_limit.sh")
        selector = selector_labels(name=NAME, instance=id, component="power-limit")
        metadata = {"name": name, "namespace": where, "labels": object_labels(selector)}
        variables = {
            "COMMAND_TIMEOUT_SECONDS": str(command_timeout_seconds),
            "INTERVAL_SECONDS": str(interval_seconds),
            # nvidia-smi and the libraries it needs come from the runtime; every GPU, without taking a slot.
            "NVIDIA_DISABLE_REQUIRE": "true",
            "NVIDIA_DRIVER_CAPABILITIES": "utility",
            "NVIDIA_VISIBLE_DEVICES": "all",
            "OUT_OF_RANGE": out_of_range,
            "PERSISTENCE_MODE": str(int(persistence_mode)),
            "POWER_LIMIT": "".join(wish.to_rule() for wish in wishes if wish.target is None),
            "POWER_LIMITS": "\n".join(wish.to_rule() for wish in wishes if wish.target is not None),
            "RESTORE_ON_EXIT": str(int(restore_on_exit)),
            "RETRY_SECONDS": str(retry_seconds),
            "START_TIMEOUT_SECONDS": str(start_timeout_seconds),
            "STATE_DIR": _STATE_DIR,
        }
        mounts: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
            "script": (
                {"configMap": {"name": name, "defaultMode": SCRIPT_MODE}},
                {"mountPath": "/script", "readOnly": True},
            ),
            "state": ({"emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}, {"mountPath": _STATE_DIR}),
        }
        if textfile_directory is not None:
            variables["METRICS_FILE"] = f"{_TEXTFILE_DIR}/{name}.prom"
            mounts["textfile"] = (
                {"hostPath": {"path": textfile_directory, "type": "DirectoryOrCreate"}},
                {"mountPath": _TEXTFILE_DIR},
            )
        stale_after = 2 * interval_seconds + 60
        heartbeat = f"[ $(( $(date +%s) - $(cat {_STATE_DIR}/heartbeat) )) -lt {stale_after} ]"
        container = {
            "name": "powerlimit",
            "image": image,
            "imagePullPolicy": image_pull_policy,
            "command": ["/bin/sh", f"/script/{_SCRIPT}"],
            "env": [{"name": name, "value": value} for name, value in sorted(variables.items()) if value],
            "resources": amounts,
            "securityContext": container_security(add=("SYS_ADMIN",)),
            "readinessProbe": {
                "exec": {"command": ["test", "-f", f"{_STATE_DIR}/ready"]},
                "periodSeconds": 10,
                "timeoutSeconds": 5,
            },
            # A minute beyond what nvidia-smi has to come up, for the first look.
            "startupProbe": {
                "exec": {"command": ["test", "-f", f"{_STATE_DIR}/heartbeat"]},
                "periodSeconds": _PROBE_SECONDS,
                "timeoutSeconds": 5,
                "failureThreshold": -(-start_timeout_seconds // _PROBE_SECONDS) + 6,
            },
            "livenessProbe": {
                "exec": {"command": ["/bin/sh", "-c", heartbeat]},
                "periodSeconds": 60,
                "timeoutSeconds": 5,
                "failureThreshold": 3,
            },
            "volumeMounts": [{"name": volume, **mount} for volume, (_, mount) in mounts.items()],
        }
        Manifest(self, "script", config_map(metadata, {_SCRIPT: script}))
        Manifest(
            self,
            "Default",
            daemonset(
                metadata=metadata,
                selector=selector,
                annotations={**(pod_annotations or {}), _CHECKSUM: sha256(script)},
                update_strategy=update_strategy.to_manifest() if update_strategy is not None else None,
                pod_spec={
                    **placed,
                    "automountServiceAccountToken": False,
                    "containers": [container],
                    "enableServiceLinks": False,
                    "imagePullSecrets": [{"name": secret} for secret in pull_secrets] or None,
                    "priorityClassName": priority_class_name,
                    "runtimeClassName": runtime,
                    "securityContext": {**POD, "runAsUser": 0},
                    "terminationGracePeriodSeconds": (
                        _RESTORE_SECONDS if restore_on_exit else command_timeout_seconds + _STOP_SECONDS
                    ),
                    "volumes": [{"name": volume, **source} for volume, (source, _) in mounts.items()],
                },
            ),
        )


def _by_board(wishes: Sequence[PowerWish]) -> dict[str, str]:
    """Give the limits that a board's name decides; which board has an id, nobody knows before it runs."""
    return {wish.pattern or "*": wish.limit for wish in wishes if wish.target in (None, "name")}


def _check_textfile_directory(given: str | None, platform: Platform) -> None:
    if given is None:
        return
    _fields.absolute_path("textfile_directory", given)
    if platform.brings_driver and not given.startswith("/var/"):
        raise GpuConstructsError(
            "textfile_directory must be below /var, the one part of a Talos node that can be written; got "
            f"{given!r}; name the directory that node_exporter's --collector.textfile.directory mounts"
        )
