"""The bridge between Talos and the GPU Operator's validation."""

from __future__ import annotations

import re
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
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.namespace import DEFAULT_NAMESPACE, component_namespace
from gpu_constructs.placement import Toleration
from gpu_constructs.platforms import DEFAULT_PLATFORM, GPU_PRESENT, Platform
from gpu_constructs.provided import Provided

NAME = "nvidia-validation-bridge"
VALIDATIONS_DIR = "/run/nvidia/validations"
_SCRIPT = "validation-bridge.sh"
_STATE_DIR = "/tmp"
_DRIVER_VERSION = re.compile(r"[0-9]+(\.[0-9]+)+\Z")
_RESOURCES: Resources = {"requests": {"cpu": "1m", "memory": "8Mi"}, "limits": {"memory": "64Mi"}}


class ValidationBridge(GpuObject):
    """Tells the GPU Operator's operands that driver and toolkit are there, as long as they are.

    The operator's device plugin, GPU Feature Discovery and DCGM exporter wait for marker files that its
    driver and toolkit containers would write. Where Talos brings driver and toolkit as extensions, nobody
    writes them. The bridge checks that the kernel modules are live and a GPU is bound to the driver, then
    writes the files; it writes them again when the operator's validator deletes them, and takes its own back
    when the driver goes.

    Emits ConfigMap and DaemonSet ``nvidia-validation-bridge``. The pods run as root, because the directory
    is root's, and hold nothing else: no capability, no device, no token, one writable host path.

    The node label ``nvidia.com/gpu.deploy.operator-validator=false`` must be set: without it the operator's
    validator keeps deleting the files and never becomes ready.

    Attributes:
        api_object: The DaemonSet.

    Source:
        NVIDIA/gpu-operator@v25.10.1:cmd/nvidia-validator/main.go, assets/state-operator-validation
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        namespace: object = DEFAULT_NAMESPACE,
        platform: Platform = DEFAULT_PLATFORM,
        strategy: Literal["markers"] = "markers",
        expected_driver_version: str | None = None,
        interval_seconds: int = 10,
        retract_on_exit: bool = True,
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
            platform: Talos up to 1.12. Later releases need no bridge: there the operator's own validator
                passes, and a bridge would hide what it finds.
            strategy: ``markers`` writes the files the operands wait for.
            expected_driver_version: Also wait until the driver is this very version, like ``570.211.01``.
            interval_seconds: Seconds between two checks.
            retract_on_exit: Whether a stopped bridge takes its files with it. Running operands do not
                care; those that start meanwhile wait for the next bridge.
            tolerations: Taints of the GPU nodes, on top of ``nvidia.com/gpu``.
            node_selector: Node labels asked for besides.
            image: Any image with a shell and the common small tools.
            resources: By default requests of 1m CPU and 8Mi and a memory limit of 64Mi: the
                container runtime starts each probe within it.

        Raises:
            GpuConstructsError: The platform needs no bridge, or a value above is not allowed.
        """
        _fields.label_value("id", id)
        where = component_namespace(namespace)
        _fields.whole_number("interval_seconds", interval_seconds, minimum=1, maximum=86_400)
        _fields.image("image", image)
        _fields.labels("node_selector", node_selector or {})
        if expected_driver_version is not None and not _DRIVER_VERSION.match(expected_driver_version):
            raise GpuConstructsError(
                f"expected_driver_version must be a driver version like '570.211.01'; got {expected_driver_version!r}"
            )
        if platform.driver_node_labels and not platform.gpu_operator_needs_bridge:
            raise GpuConstructsError(
                f"platform {platform} needs no ValidationBridge: from Talos 1.13 on the operator's own validator "
                "passes with driver.enabled=false, toolkit.enabled=false and "
                "hostPaths.driverInstallDir=/usr/local; leave the bridge out"
            )
        amounts = container_resources(resources, default=_RESOURCES)
        super().__init__(scope, id)
        self.provides = Provided(pod_security_default=platform.pod_security_default)

        script = shell_script("gpu_constructs.operator", "validation_bridge.sh")
        selector = selector_labels(name=NAME, instance=id, component="validation-bridge")
        metadata = {"name": NAME, "namespace": where, "labels": object_labels(selector)}
        labels = platform.driver_node_labels or (GPU_PRESENT,)
        variables = {
            "EXPECTED_DRIVER_VERSION": expected_driver_version,
            "INTERVAL_SECONDS": str(interval_seconds),
            "RETRACT_ON_EXIT": str(retract_on_exit).lower(),
            "STATE_DIR": _STATE_DIR,
            "VALIDATIONS_DIR": VALIDATIONS_DIR,
        }
        Manifest(self, "script", config_map(metadata, {_SCRIPT: script}))
        container = {
            "name": "bridge",
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/bin/sh", f"/script/{_SCRIPT}"],
            "env": [{"name": name, "value": value} for name, value in variables.items() if value is not None],
            "resources": amounts,
            "securityContext": container_security(),
            "readinessProbe": {
                "exec": {"command": ["test", "-f", f"{_STATE_DIR}/ready"]},
                "periodSeconds": 10,
                "failureThreshold": 1,
            },
            # The loop makes the file anew each turn: one that cannot be removed twice means it hangs.
            "livenessProbe": {
                "exec": {"command": ["rm", f"{_STATE_DIR}/alive"]},
                "initialDelaySeconds": 3 * interval_seconds,
                "periodSeconds": max(30, 3 * interval_seconds),
                "failureThreshold": 3,
            },
            "volumeMounts": [
                {"name": "script", "mountPath": "/script", "readOnly": True},
                {"name": "state", "mountPath": _STATE_DIR},
                {"name": "validations", "mountPath": VALIDATIONS_DIR},
            ],
        }
        Manifest(
            self,
            "Default",
            daemonset(
                metadata=metadata,
                selector=selector,
                annotations={"gpu-constructs/script-sha256": sha256(script)},
                rolling_update={"maxUnavailable": 1},
                pod_spec={
                    "affinity": placement.required_node_affinity([[placement.label_exists(label)] for label in labels]),
                    "automountServiceAccountToken": False,
                    "containers": [container],
                    "enableServiceLinks": False,
                    "nodeSelector": node_selector or None,
                    "priorityClassName": "system-node-critical",
                    "securityContext": {**POD, "runAsUser": 0, "runAsGroup": 0},
                    "terminationGracePeriodSeconds": 10,
                    "tolerations": placement.tolerations((placement.GPU_TAINT,), tolerations),
                    "volumes": [
                        {"name": "script", "configMap": {"name": NAME, "defaultMode": SCRIPT_MODE}},
                        {"name": "state", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
                        {
                            "name": "validations",
                            "hostPath": {"path": VALIDATIONS_DIR, "type": "DirectoryOrCreate"},
                        },
                    ],
                },
            ),
        )
