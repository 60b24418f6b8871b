"""What pods of dist/ hold beyond the security list, and why: plain data, every row of it shown in docs/security.md."""

from __future__ import annotations

from typing import NamedTuple


class Held(NamedTuple):
    """Something one workload holds, in whichever cluster.

    Attributes:
        workload: Its kind and name.
        rule: What the list would not have it hold, in the words of the check.
        reason: Why it holds it.
    """

    workload: str
    rule: str
    reason: str


PLUGIN = "DaemonSet nvidia-device-plugin"
GFD = "DaemonSet nvidia-device-plugin-gpu-feature-discovery"
NFD_MASTER = "Deployment nvidia-device-plugin-node-feature-discovery-master"
NFD_GC = "Deployment nvidia-device-plugin-node-feature-discovery-gc"
NFD_WORKER = "DaemonSet nvidia-device-plugin-node-feature-discovery-worker"
EXPORTER = "DaemonSet dcgm-exporter"
BRIDGE = "DaemonSet nvidia-validation-bridge"
POWER_LIMIT = "DaemonSet nvidia-powerlimit"
COMFYUI = "Deployment comfyui"

EXCEPTIONS = (
    Held(PLUGIN, "may run as root", "the kubelet's socket directory belongs to root"),
    Held(
        PLUGIN,
        "host path /var/lib/kubelet/device-plugins, writable",
        "registers at the kubelet's socket and puts its own beside it",
    ),
    Held(GFD, "may run as root", "the user NVIDIA's image runs as; it gets no capability and no host path"),
    Held(GFD, "service account token", "writes the NodeFeature object of its node"),
    Held(NFD_MASTER, "service account token", "turns NodeFeature objects into node labels"),
    Held(NFD_GC, "service account token", "deletes the NodeFeature objects of nodes that are gone"),
    Held(NFD_WORKER, "service account token", "writes the NodeFeature object of its node"),
    Held(NFD_WORKER, "host path /boot, read-only", "reads the kernel's build configuration"),
    Held(NFD_WORKER, "host path /lib, read-only", "reads the kernel's modules and build configuration"),
    Held(NFD_WORKER, "host path /usr/lib, read-only", "the same, where distributions keep them there"),
    Held(NFD_WORKER, "host path /etc/os-release, read-only", "labels the node with its operating system"),
    Held(NFD_WORKER, "host path /proc/swaps, read-only", "labels a node that swaps"),
    Held(NFD_WORKER, "host path /sys, read-only", "finds PCI devices, GPUs among them"),
    Held(EXPORTER, "may run as root", "the kubelet's socket belongs to root, and only root gets a capability"),
    Held(EXPORTER, "adds capability SYS_ADMIN", "the driver asks for it before it gives profiling metrics"),
    Held(
        EXPORTER,
        "host path /var/lib/kubelet/pod-resources, read-only",
        "asks the kubelet which pod uses which GPU",
    ),
    Held(EXPORTER, "host PID namespace", "tells by its processes how much of a shared GPU each pod uses"),
    Held(EXPORTER, "service account token", "asks whose these processes are: pods by their ids"),
    Held(BRIDGE, "may run as root", "the directory of the marker files belongs to root"),
    Held(
        BRIDGE,
        "host path /run/nvidia/validations, writable",
        "writes the marker files where the GPU Operator's pods look for them",
    ),
    Held(POWER_LIMIT, "may run as root", "only root gets a capability"),
    Held(POWER_LIMIT, "adds capability SYS_ADMIN", "the driver asks for it before it changes a power limit"),
    Held(COMFYUI, "may run as root", "the image keeps everything in root's home directory"),
    Held(COMFYUI, "writable root file system", "the image installs what custom nodes need while it runs"),
    Held("Notebook notebook", "writable root file system", "the image's init system writes to /run when it starts"),
)
