"""The limit of what each GPU may draw, kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from constructs import Construct

from gpu_constructs import _fields, placement, versions
from gpu_constructs._config_map import config_map, sha256
from gpu_constructs._construct import GpuObject, checked
from gpu_constructs._container_security import POD, container_security
from gpu_constructs._daemonset import daemonset
from gpu_constructs._labels import object_labels, selector_labels
from gpu_constructs._manifest import Manifest
from gpu_constructs._resources import Resources, container_resources
from gpu_constructs._shell_script import SCRIPT_MODE, shell_script
from gpu_constructs.namespace import DEFAULT_NAMESPACE, component_namespace
from gpu_constructs.placement import Toleration
from gpu_constructs.platforms import DEFAULT_PLATFORM, GPU_PRESENT, Platform
from gpu_constructs.provided import Provided
from gpu_constructs.runtime_class import runtime_class_name

NAME = "nvidia-powerlimit"
_SCRIPT = "power-limit.sh"
_STATE_DIR = "/run/power-limit"
_BOARD = "leave the PowerLimit out for the board's own limit"
_OFTEN = "leave it out for a look every 1800 seconds"
_RESOURCES: Resources = {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "128Mi"}}


class PowerLimit(GpuObject):
    """Sets a power limit on every GPU, reads it back, and sets it again when it drifts.

    A limit is lost when the driver is reloaded, a GPU is reset or the node reboots, so a pod on every GPU
    node looks again and again. It uses ``nvidia-smi``, which the nvidia runtime puts into the container; it
    takes no GPU slot.

    Emits ConfigMap and DaemonSet ``nvidia-powerlimit``. The container runs as root with SYS_ADMIN, which the
    driver asks for, and holds nothing else: not privileged, no host path, no token.

    Attributes:
        watts: The limit.
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
        namespace: object = DEFAULT_NAMESPACE,
        platform: Platform = DEFAULT_PLATFORM,
        watts: int = 300,
        interval_seconds: int = 1800,
        out_of_range: Literal["clamp", "refuse"] = "clamp",
        persistence_mode: bool = True,
        restore_on_exit: bool = False,
        runtime_class: object = None,
        tolerations: Sequence[Toleration] = (),
        node_selector: Mapping[str, str] | None = None,
        image: str = versions.DEBIAN_IMAGE,
        resources: Resources | None = None,
    ) -> None:
        """Make the power limit.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            namespace: By name or object; it must be privileged (SYS_ADMIN).
            platform: ``Talos("1.12")`` or ``Kubernetes()``; decides the runtime class.
            watts: Limit of each GPU in whole watts; 300 by default, what an RTX 3090 (350 W) runs stably at.
            interval_seconds: Seconds between two looks, 10 or more; 1800 by default. After a look that
                found a problem the next comes after 15 seconds.
            out_of_range: ``clamp`` takes the nearest limit the board allows, ``refuse`` reports an error.
            persistence_mode: Whether to keep the driver loaded without clients, which keeps the limit.
            restore_on_exit: Whether a stopped pod restores the board's default limit. False by default: an
                update of the DaemonSet would otherwise let power surge.
            runtime_class: Name or object. None: the platform decides.
            tolerations: Taints of the GPU nodes, on top of ``nvidia.com/gpu``.
            node_selector: Node labels, besides ``nvidia.com/gpu.present=true``.
            image: Any glibc image with a POSIX shell; ``nvidia-smi`` does not run on musl.
            resources: By default requests of 10m CPU and 16Mi and a memory limit of 128Mi.

        Raises:
            GpuConstructsError: Watts of 0 or less, an interval under 10 seconds, or another value that is
                not allowed.
        """
        _fields.label_value("id", id)
        where = component_namespace(namespace)
        _fields.whole_number("watts", watts, minimum=1, maximum=9999, way_out=_BOARD)
        _fields.whole_number("interval_seconds", interval_seconds, minimum=10, maximum=9_999_999, way_out=_OFTEN)
        _fields.image("image", image)
        _fields.labels("node_selector", node_selector or {})
        runtime = runtime_class_name(runtime_class, platform)
        amounts = container_resources(resources, default=_RESOURCES)
        super().__init__(scope, id)
        self.watts = watts
        self.provides = Provided(pod_security_default=platform.pod_security_default)

        script = shell_script("gpu_constructs.power", "power_limit.sh")
        selector = selector_labels(name=NAME, instance=id, component="power-limit")
        metadata = {"name": NAME, "namespace": where, "labels": object_labels(selector)}
        variables = {
            "INTERVAL_SECONDS": str(interval_seconds),
            # nvidia-smi and the libraries it needs come from the runtime; every GPU, without taking a slot.
            "NVIDIA_DISABLE_REQUIRE": "true",
            "NVIDIA_DRIVER_CAPABILITIES": "utility",
            "NVIDIA_VISIBLE_DEVICES": "all",
            "OUT_OF_RANGE": out_of_range,
            "PERSISTENCE_MODE": str(int(persistence_mode)),
            "POWER_LIMIT": str(watts),
            "RESTORE_ON_EXIT": str(int(restore_on_exit)),
            "STATE_DIR": _STATE_DIR,
        }
        stale_after = 2 * interval_seconds + 60
        heartbeat = f"[ $(( $(date +%s) - $(cat {_STATE_DIR}/heartbeat) )) -lt {stale_after} ]"
        container = {
            "name": "powerlimit",
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/bin/sh", f"/script/{_SCRIPT}"],
            "env": [{"name": name, "value": value} for name, value in variables.items()],
            "resources": amounts,
            "securityContext": container_security(add=("SYS_ADMIN",)),
            "readinessProbe": {
                "exec": {"command": ["test", "-f", f"{_STATE_DIR}/ready"]},
                "periodSeconds": 10,
                "timeoutSeconds": 5,
            },
            # nvidia-smi has 300 seconds to come up.
            "startupProbe": {
                "exec": {"command": ["test", "-f", f"{_STATE_DIR}/heartbeat"]},
                "periodSeconds": 10,
                "timeoutSeconds": 5,
                "failureThreshold": 36,
            },
            "livenessProbe": {
                "exec": {"command": ["/bin/sh", "-c", heartbeat]},
                "periodSeconds": 60,
                "timeoutSeconds": 5,
                "failureThreshold": 3,
            },
            "volumeMounts": [
                {"name": "script", "mountPath": "/script", "readOnly": True},
                {"name": "state", "mountPath": _STATE_DIR},
            ],
        }
        Manifest(self, "script", config_map(metadata, {_SCRIPT: script}))
        Manifest(
            self,
            "Default",
            daemonset(
                metadata=metadata,
                selector=selector,
                annotations={"gpu-constructs/script-sha256": sha256(script)},
                pod_spec={
                    "automountServiceAccountToken": False,
                    "containers": [container],
                    "enableServiceLinks": False,
                    "nodeSelector": {GPU_PRESENT: "true", **(node_selector or {})},
                    "runtimeClassName": runtime,
                    "securityContext": {**POD, "runAsUser": 0},
                    "terminationGracePeriodSeconds": 15,
                    "tolerations": placement.tolerations((placement.CRITICAL_ADDONS, placement.GPU_TAINT), tolerations),
                    "volumes": [
                        {"name": "script", "configMap": {"name": NAME, "defaultMode": SCRIPT_MODE}},
                        {"name": "state", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
                    ],
                },
            ),
        )
