"""What the pods of the device plugin and of GPU Feature Discovery have in common, as plain manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_constructs._container_security import POD, container_security
from gpu_constructs._daemonset import daemonset
from gpu_constructs._labels import object_labels
from gpu_constructs.device_plugin.config import CONFIG_FILE, MigStrategy
from gpu_constructs.platforms import Platform


@dataclass(frozen=True, kw_only=True)
class GpuAgent:
    """What the plugin's and GPU Feature Discovery's pods have in common.

    Attributes:
        namespace: Where the DaemonSet lives.
        image: ``repository:tag`` of both programs.
        version: Release, for the label.
        runtime_class: ``runtimeClassName``, or None for the nodes' default runtime.
        affinity: Node affinity, or None.
        node_selector: Node labels asked for besides.
        tolerations: As Kubernetes writes them.
        priority_class_name: ``priorityClassName``.
        resources: Of the container.
        config_map: Name of the ConfigMap with the configuration file.
        config_sha256: Its checksum: a changed file restarts the pods.
        mig_strategy: ``none``, ``single`` or ``mixed``.
        device_discovery_strategy: None leaves it to the program.
        fail_on_init_error: None leaves it to the program, which fails.
        platform: Decides what MIG needs.
    """

    namespace: str
    image: str
    version: str
    runtime_class: str | None
    affinity: Mapping[str, Any] | None
    node_selector: Mapping[str, str]
    tolerations: Sequence[Mapping[str, Any]]
    priority_class_name: str
    resources: Mapping[str, Any]
    config_map: str
    config_sha256: str
    mig_strategy: MigStrategy
    device_discovery_strategy: str | None
    fail_on_init_error: bool | None
    platform: Platform

    def security_context(self, *, add: tuple[str, ...] = (), privileged: bool = False) -> dict[str, Any]:
        """Give the container's rights: none, unless MIG is watched.

        Watching MIG devices takes SYS_ADMIN; the container toolkit of Talos 1.12 and later grants its MIG
        monitor to privileged containers only (NVIDIA/nvidia-container-toolkit#1740).
        """
        if self.mig_strategy != "none":
            add = tuple(dict.fromkeys((*add, "SYS_ADMIN")))
            privileged = privileged or self.platform.mig_needs_privileged
        return container_security(add=add, privileged=privileged)

    def environment(self) -> list[dict[str, Any]]:
        """Give the variables both programs read."""
        variables: dict[str, str | None] = {
            "CONFIG_FILE": CONFIG_FILE,
            "DEVICE_DISCOVERY_STRATEGY": self.device_discovery_strategy,
            "FAIL_ON_INIT_ERROR": None if self.fail_on_init_error is None else str(self.fail_on_init_error).lower(),
            "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
            # These pods look at every GPU without taking one, so they ask for no resource.
            "NVIDIA_VISIBLE_DEVICES": "all",
            "NVIDIA_MIG_MONITOR_DEVICES": "all" if self.mig_strategy != "none" else None,
        }
        return [{"name": name, "value": value} for name, value in variables.items() if value is not None]

    def daemonset(
        self,
        *,
        name: str,
        selector: dict[str, str],
        container: Mapping[str, Any],
        volumes: Sequence[Mapping[str, Any]] = (),
        service_account: str | None = None,
    ) -> dict[str, Any]:
        """Give the DaemonSet around one container."""
        return daemonset(
            metadata={
                "name": name,
                "namespace": self.namespace,
                "labels": object_labels(selector, version=self.version),
            },
            selector=selector,
            annotations={"gpu-constructs/config-sha256": self.config_sha256},
            pod_spec={
                "affinity": self.affinity,
                "automountServiceAccountToken": service_account is not None,
                "containers": [
                    {
                        "image": self.image,
                        "imagePullPolicy": "IfNotPresent",
                        "resources": self.resources,
                        **container,
                        "volumeMounts": [
                            {"name": "config", "mountPath": "/config", "readOnly": True},
                            *container.get("volumeMounts", ()),
                        ],
                    }
                ],
                "enableServiceLinks": False,
                "nodeSelector": self.node_selector or None,
                "priorityClassName": self.priority_class_name,
                "runtimeClassName": self.runtime_class,
                "securityContext": POD,
                "serviceAccountName": service_account,
                "tolerations": list(self.tolerations),
                "volumes": [{"name": "config", "configMap": {"name": self.config_map}}, *volumes],
            },
        )
