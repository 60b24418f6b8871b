"""The MPS control daemon: lets containers use a GPU at once, each with its part of memory and threads.

Source: NVIDIA/k8s-device-plugin@v0.20.0:cmd/mps-control-daemon.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpu_constructs import _fields
from gpu_constructs._container_security import container_security
from gpu_constructs.device_plugin.agent import GpuAgent
from gpu_constructs.device_plugin.component import Component
from gpu_constructs.device_plugin.daemonset import mps_volumes
from gpu_constructs.device_plugin.delivery import DEFAULT_MPS_ROOT, Delivery
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.versions import DevicePluginRelease

MPS_CAPABLE = "nvidia.com/mps.capable"
"""Published by GPU Feature Discovery on nodes whose configuration shares GPUs by MPS."""


@dataclass(frozen=True, kw_only=True)
class MpsControlDaemon(Component):
    """The MPS control daemon's own pods, where they differ from what the chart says for all.

    They are there only where a configuration shares GPUs by MPS, and always privileged: they mount memory
    into the node's file system and change the GPUs' compute mode.

    Attributes:
        root: Directory on the node for pipes, logs and shared memory, ``/run/nvidia/mps`` by default.
        host_pid: See the node's processes, by which the MPS server finds itself when the driver runs
            outside containers; True by default, as in NVIDIA's chart.
    """

    root: str = DEFAULT_MPS_ROOT
    host_pid: bool = True

    # No limit: the MPS server keeps a context for each GPU, and with it dies every container it serves.
    _DEFAULT_RESOURCES = {"requests": {"cpu": "10m", "memory": "64Mi"}}  # noqa: RUF012
    _NAME = "mps_control_daemon"

    def __post_init__(self) -> None:
        super().__post_init__()
        _fields.absolute_path("mps_control_daemon.root", self.root)
        if not self.root.strip("/"):
            raise GpuConstructsError(
                "mps_control_daemon.root must be a directory of its own: it is mounted writable into a privileged pod; "
                f"got {self.root!r}; leave it out for '/run/nvidia/mps'"
            )
        if self.security_context is not None and not self.security_context.get("privileged"):
            raise GpuConstructsError(
                "mps_control_daemon.security_context must be privileged: the daemon changes the GPUs' compute mode; "
                f"got {dict(self.security_context)!r}; leave it out"
            )


def mps_control_daemon(
    agent: GpuAgent,
    delivery: Delivery,
    *,
    component: MpsControlDaemon,
    release: DevicePluginRelease,
    service_account: str | None,
) -> dict[str, Any]:
    """Give the daemon's DaemonSet, on the nodes that GPU Feature Discovery found capable.

    Raises:
        GpuConstructsError: config-manager of this release would die of the processes it sees.
    """
    if delivery.config_manager is not None and component.host_pid and not release.config_manager_survives_host_pid:
        raise GpuConstructsError(
            f"config with config-manager cannot share by MPS on release {release.version} of the device plugin: its "
            "sidecar panics on processes without a command line, which host_pid=True shows it; use Configs.named, "
            "release 0.20.0 or MpsControlDaemon(host_pid=False)"
        )
    variables = delivery.variables(besides=["MIG_STRATEGY"])
    main = agent.container(
        component,
        delivery=delivery,
        name="mps-control-daemon-ctr",
        command=["mps-control-daemon"],
        env=agent.environment(component, delivery, variables),
        securityContext=dict(component.security_context or container_security(privileged=True, read_only=False)),
        mounts=[{"name": "mps-root", "mountPath": "/mps"}, {"name": "mps-shm", "mountPath": "/dev/shm"}],
    )
    mount_memory = {
        "name": "mps-control-daemon-mounts",
        "image": agent.image,
        "imagePullPolicy": agent.image_pull_policy,
        "command": ["mps-control-daemon", "mount-shm"],
        "resources": main["resources"],
        "securityContext": container_security(privileged=True, read_only=False),
        # So that the mount it makes is seen by the node, and through it by the plugin and the workloads.
        "volumeMounts": [{"name": "mps-root", "mountPath": "/mps", "mountPropagation": "Bidirectional"}],
    }
    return agent.daemonset(
        component,
        name=f"{agent.name}-mps-control-daemon{delivery.suffix}",
        label="mps-control-daemon",
        delivery=delivery,
        service_account=service_account,
        node_selector={MPS_CAPABLE: "true"},
        host_pid=component.host_pid,
        # Either shows the sidecar the process that it signals; Kubernetes takes one of them.
        shares_processes=not component.host_pid,
        container=main,
        init_containers=[mount_memory],
        volumes=mps_volumes(delivery.mps_root),
    )
