"""What the pods of DevicePluginChart and ValidationBridge hold, option by option, and why: every row is computed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from cdk8s import App, Chart, Testing

import invariants
from gpu_constructs import (
    Configs,
    DevicePlugin,
    DevicePluginChart,
    GpuFeatureDiscovery,
    Kubernetes,
    MpsControlDaemon,
    NodeFeatureDiscovery,
    PluginConfig,
    Sharing,
    Talos,
    ValidationBridge,
)
from gpu_constructs.feature_discovery.node_feature_discovery import NfdMaster, NfdTopologyUpdater, NfdWorker
from held import held, rights

Manifest = dict[str, Any]
Rights = set[tuple[str, str]]

TWO = {"exclusive": PluginConfig(), "shared": PluginConfig(sharing=Sharing.time_slicing(replicas=4))}
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "sharing=Sharing.time_slicing(...)": {"sharing": Sharing.time_slicing(replicas=4)},
    "sharing=Sharing.mps(...)": {"sharing": Sharing.mps(replicas=4)},
    "sharing=Sharing.mps(...), mps_control_daemon=MpsControlDaemon(host_pid=False)": {
        "sharing": Sharing.mps(replicas=4),
        "mps_control_daemon": MpsControlDaemon(host_pid=False),
    },
    'mig_strategy="single" or "mixed"': {"mig_strategy": "mixed"},
    'mig_strategy="single" or "mixed", platform=Talos("1.12") or later': {
        "mig_strategy": "mixed",
        "platform": Talos("1.12"),
    },
    'device_list_strategy="volume-mounts"': {"device_list_strategy": "volume-mounts"},
    'device_list_strategy="cdi-annotations" or "cdi-cri"': {"device_list_strategy": "cdi-cri"},
    'device_list_strategy="cdi-annotations" or "cdi-cri", platform=Talos("1.13") or later': {
        "device_list_strategy": "cdi-cri",
        "platform": Talos("1.13"),
    },
    "config: flags.plugin.pass_device_specs=True": {
        "config": PluginConfig.from_yaml("flags: {plugin: {passDeviceSpecs: true}}")
    },
    "config: imex.channel_ids=[0]": {"config": PluginConfig.from_yaml("imex: {channelIDs: [0]}")},
    "config=Configs.named(...)": {"config": Configs.named(TWO, default="shared")},
    "config=Configs.managed(...)": {"config": Configs.managed(TWO, default="shared")},
    "device_plugin=DevicePlugin(host_network=True)": {"device_plugin": DevicePlugin(host_network=True)},
    "gpu_feature_discovery=GpuFeatureDiscovery(vgpu=True)": {"gpu_feature_discovery": GpuFeatureDiscovery(vgpu=True)},
    "node_feature_discovery: worker=NfdWorker(mount_features_d=True)": {
        "node_feature_discovery": NodeFeatureDiscovery(worker=NfdWorker(mount_features_d=True))
    },
    "node_feature_discovery: worker=NfdWorker(mount_usr_src=True)": {
        "node_feature_discovery": NodeFeatureDiscovery(worker=NfdWorker(mount_usr_src=True))
    },
    'node_feature_discovery: worker=NfdWorker(owner_refs=["node"])': {
        "node_feature_discovery": NodeFeatureDiscovery(worker=NfdWorker(owner_refs=["node"]))
    },
    "node_feature_discovery: master=NfdMaster(replica_count=2)": {
        "node_feature_discovery": NodeFeatureDiscovery(master=NfdMaster(replica_count=2))
    },
    "node_feature_discovery: topology_updater=NfdTopologyUpdater()": {
        "node_feature_discovery": NodeFeatureDiscovery(topology_updater=NfdTopologyUpdater())
    },
}

BRIDGES: Mapping[str, Mapping[str, Any]] = {
    'strategy="markers"': {},
    'strategy="stage"': {"strategy": "stage"},
    'required_devices=["nvidiactl", ...]': {"required_devices": ["nvidiactl"]},
}

PLUGIN, GFD, MPS = "device plugin", "GPU Feature Discovery", "MPS control daemon"
MASTER, WORKER, GC, UPDATER = "NFD master", "NFD worker", "NFD garbage collector", "NFD topology updater"
BRIDGE = "validation bridge"
_COMPONENTS = {
    "device-plugin": PLUGIN,
    "gpu-feature-discovery": GFD,
    "mps-control-daemon": MPS,
    "master": MASTER,
    "worker": WORKER,
    "gc": GC,
    "topology-updater": UPDATER,
    "validation-bridge": BRIDGE,
}


def _manifests(options: Mapping[str, Any]) -> list[Manifest]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chart = DevicePluginChart(App(), "nvidia-device-plugin", **{"platform": Kubernetes(), **options})
        return list(Testing.synth(chart))


def _bridge(options: Mapping[str, Any]) -> list[Manifest]:
    chart = Chart(App(), "gpu-operator")
    ValidationBridge(chart, "bridge", platform=Talos("1.12"), **options)
    return list(Testing.synth(chart))


def held_by(manifests: list[Manifest]) -> Rights:
    """Component and right, pods' and roles' alike."""
    found: Rights = set()
    for manifest in manifests:
        label = manifest["metadata"].get("labels", {}).get("app.kubernetes.io/component", "")
        # The name of a configuration may stand behind the program's.
        component = next((name for program, name in _COMPONENTS.items() if label.startswith(program)), "")
        if invariants.pod_specs(manifest):
            found |= {(component, rule) for _, rule in held([manifest, *_accounts(manifests)])}
        for _, rule in rights([manifest]):
            scope = "in every namespace" if manifest["kind"] == "ClusterRole" else "in its namespace"
            found |= {(component, f"may {verb} {what} {scope}") for verb, what in _grants(rule)}
    return found


def _accounts(manifests: list[Manifest]) -> Iterator[Manifest]:
    return (manifest for manifest in manifests if manifest["kind"] == "ServiceAccount")


def _grants(rule: Manifest) -> Iterator[tuple[str, str]]:
    names = f" {', '.join(rule['resourceNames'])}" if "resourceNames" in rule else ""
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            yield ", ".join(rule["verbs"]), f"{resource}.{group}".rstrip(".") + names


def _without_what_privileged_implies(found: Rights) -> Rights:
    privileged = {component for component, rule in found if rule == "privileged"}
    implied = ("keeps default capabilities", "may escalate privileges")
    return {(component, rule) for component, rule in found if component not in privileged or rule not in implied}


_MPS_FILES = "the pipes and logs of the MPS server, through which containers reach it"
_MPS_MEMORY = "the memory that the MPS server and its clients share"
_LEADER = "several masters agree on the one that works"
_NODE_LABELS = "config-manager looks at its node's label, for which it lists and watches nodes"
_MIG = "the container toolkit shows MIG devices being made and removed to such a container only"
REASONS: Mapping[tuple[str, str], str] = {
    (GFD, "may get pods in its namespace"): "its pod and DaemonSet own the NodeFeature object",
    (
        GFD,
        "may get, create, update, delete nodefeatures.nfd.k8s-sigs.io in its namespace",
    ): "writes the NodeFeature object of its node; delete is asked for by an admission plugin before owners are set",
    (GFD, "may run as root"): "the user NVIDIA's image runs as",
    (GFD, "service account token"): "writes the NodeFeature object of its node",
    (GFD, "adds capability SYS_ADMIN"): _MIG,
    (GFD, "privileged"): f"{_MIG} (MIG on Talos), or the whole PCI configuration space, where vGPUs show",
    (GFD, "may get, list, watch nodes in every namespace"): _NODE_LABELS,
    (PLUGIN, "may run as root"): "the kubelet's socket directory belongs to root",
    (
        PLUGIN,
        "host path /var/lib/kubelet/device-plugins, writable",
    ): "registers at the kubelet's socket and puts its own beside it",
    (PLUGIN, "host path /run/nvidia/mps, writable"): _MPS_FILES,
    (PLUGIN, "host path /run/nvidia/mps/shm, writable"): _MPS_MEMORY,
    (PLUGIN, "adds capability SYS_ADMIN"): f"{_MIG}, and takes a device list from volumes from such a one only",
    (PLUGIN, "privileged"): f"{_MIG} (MIG on Talos), or hands device nodes to the kubelet",
    (PLUGIN, "host path /, read-only"): "finds the driver's files for the CDI specification it writes",
    (PLUGIN, "host path /usr/local, read-only"): "finds the driver's files for the CDI specification it writes",
    (PLUGIN, "host path /var/run/cdi, writable"): "writes the CDI specification where the runtime looks for it",
    (
        PLUGIN,
        "host path /dev/nvidia-caps-imex-channels, read-only",
    ): "hands a channel to containers if it sees the channel's device node",
    (PLUGIN, "may get, list, watch nodes in every namespace"): _NODE_LABELS,
    (PLUGIN, "service account token"): _NODE_LABELS,
    (PLUGIN, "host network namespace"): "asked for, where pod addresses are scarce",
    (MPS, "host PID namespace"): "the MPS server finds itself among the node's processes",
    (MPS, "host path /run/nvidia/mps, writable"): _MPS_FILES,
    (MPS, "host path /run/nvidia/mps/shm, writable"): _MPS_MEMORY,
    (MPS, "may run as root"): "changes the GPUs' compute mode",
    (MPS, "privileged"): "mounts memory into the node's file system and changes the GPUs' compute mode",
    (MPS, "no memory limit"): "every container it serves would die with it",
    (MPS, "writable root file system"): "not tried read-only",
    (MASTER, "service account token"): "turns NodeFeature objects into node labels",
    (MASTER, "may get, list, patch nodes in every namespace"): "writes labels of all nodes",
    (MASTER, "may patch nodes/status in every namespace"): "writes extended resources that rules ask for",
    (MASTER, "may list, watch nodefeaturerules.nfd.k8s-sigs.io in every namespace"): "applies the cluster's own rules",
    (MASTER, "may list, watch nodefeatures.nfd.k8s-sigs.io in every namespace"): "reads what was found on the nodes",
    (MASTER, "may create leases.coordination.k8s.io in its namespace"): _LEADER,
    (
        MASTER,
        "may get, update leases.coordination.k8s.io nfd-master.nfd.kubernetes.io in its namespace",
    ): _LEADER,
    (WORKER, "host path /boot, read-only"): "reads the kernel's build configuration",
    (WORKER, "host path /etc/os-release, read-only"): "labels the node with its operating system",
    (WORKER, "host path /lib, read-only"): "reads the kernel's modules and build configuration",
    (WORKER, "host path /proc/swaps, read-only"): "labels a node that swaps",
    (WORKER, "host path /sys, read-only"): "finds PCI devices, GPUs among them",
    (WORKER, "host path /usr/lib, read-only"): "the same as /lib, where distributions keep it there",
    (WORKER, "host path /usr/src, read-only"): "the same, on distributions that keep the configuration there",
    (
        WORKER,
        "host path /etc/kubernetes/node-feature-discovery/features.d, read-only",
    ): "reads features that files on the node declare",
    (
        WORKER,
        "may create, delete, get, update nodefeatures.nfd.k8s-sigs.io in its namespace",
    ): "writes the NodeFeature object of its node; delete is asked for before owners are set",
    (WORKER, "may get pods in its namespace"): "its pod and DaemonSet own the NodeFeature object",
    (WORKER, "may get nodes in every namespace"): "its node owns the NodeFeature object",
    (WORKER, "service account token"): "writes the NodeFeature object of its node",
    (GC, "service account token"): "deletes what belongs to nodes that are gone",
    (
        GC,
        "may delete, list nodefeatures.nfd.k8s-sigs.io in every namespace",
    ): "deletes what belongs to nodes that are gone",
    (
        GC,
        "may delete, list noderesourcetopologies.topology.node.k8s.io in every namespace",
    ): "looks for them whatever is installed, and logs an error at every look where it may not",
    (GC, "may list, watch nodes in every namespace"): "sees which nodes are gone",
    (UPDATER, "host path /sys, read-only"): "reads NUMA distances",
    (UPDATER, "host path /var/lib/kubelet, read-only"): "publishes at once when the kubelet's state files change",
    (
        UPDATER,
        "host path /var/lib/kubelet/pod-resources, read-only",
    ): "asks the kubelet which pod holds which device; the directory, so that a restarted kubelet is found again",
    (
        UPDATER,
        "may create, get, update noderesourcetopologies.topology.node.k8s.io in every namespace",
    ): "publishes the topology of its node",
    (
        UPDATER,
        "may get customresourcedefinitions.apiextensions.k8s.io noderesourcetopologies.topology.node.k8s.io in every "
        "namespace",
    ): "waits for the definition at its start",
    (UPDATER, "may get namespaces nvidia-gpu-operator in every namespace"): "its namespace owns what it publishes",
    (UPDATER, "may get nodes/configz in every namespace"): "asks the kubelet for its topology manager's policy",
    (UPDATER, "may get, list, watch pods in every namespace"): "tells pods with exclusive CPUs from others",
    (UPDATER, "may run as root"): "the kubelet's socket belongs to root",
    (UPDATER, "service account token"): "publishes the topology of its node",
    (BRIDGE, "may run as root"): "the directories that it writes to belong to root",
    (
        BRIDGE,
        "host path /run/nvidia/validations, writable",
    ): "writes the marker files where the GPU Operator's pods look for them",
    (
        BRIDGE,
        "host path /var/lib/gpu-constructs/driver, writable",
    ): "puts two files of the driver where the operator's validator looks for them",
    (BRIDGE, "host path /usr/local/glibc/usr/lib, read-only"): "copies the driver's library from there",
    (BRIDGE, "host path /usr/local/bin, read-only"): "copies nvidia-smi from there, and does not run it",
    (BRIDGE, "host path /dev, read-only"): "looks whether the named devices are there, and opens none",
}


@cache
def held_by_default() -> Rights:
    """What the pods hold with nothing asked for."""
    return held_by(_manifests({}))


@cache
def added() -> Mapping[str, Rights]:
    """What each option adds to that."""
    return {
        option: _without_what_privileged_implies(held_by(_manifests(given)) - held_by_default())
        for option, given in OPTIONS.items()
    }


@cache
def held_by_bridge() -> Mapping[str, Rights]:
    """What the bridge holds with each option."""
    return {option: held_by(_bridge(given)) for option, given in BRIDGES.items()}


def table_of_defaults() -> str:
    """What each pod holds with nothing asked for."""
    lines = ["| Pod | Holds | Because |", "|---|---|---|"]
    lines += [f"| {component} | {rule} | {REASONS[component, rule]} |" for component, rule in sorted(held_by_default())]
    return "\n".join(lines) + "\n"


def table_of_options() -> str:
    """What each option adds."""
    lines = ["| Option | Pod | Holds besides | Because |", "|---|---|---|---|"]
    for option, more in added().items():
        lines += [f"| `{option}` | {pod} | {rule} | {REASONS[pod, rule]} |" for pod, rule in sorted(more)]
        lines += [f"| `{option}` | | nothing | |"] if not more else []
    return "\n".join(lines) + "\n"


def table_of_the_bridge() -> str:
    """What the bridge holds by either strategy, and what the other option adds to both."""
    lines = ["| With | Holds | Because |", "|---|---|---|"]
    for option, found in held_by_bridge().items():
        besides = found if option.startswith("strategy") else found - held_by_bridge()[next(iter(BRIDGES))]
        lines += [f"| `{option}` | {rule} | {REASONS[pod, rule]} |" for pod, rule in sorted(besides)]
    return "\n".join(lines) + "\n"
