"""What the operator makes of the GPUs of nodes, by the values of its chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from gpu_constructs.device_plugin.config import MigStrategy
from gpu_constructs.device_plugin.configs import Configs
from gpu_constructs.device_plugin.consistency import advertised_resources, gpu_offers
from gpu_constructs.feature_discovery import nfd_config
from gpu_constructs.feature_discovery.nfd_labels import NfdLabels, nfd_labels
from gpu_constructs.placement import GPU_TAINT, required_node_affinity
from gpu_constructs.provided import GpuOffer
from gpu_constructs.sharing import GPU, Sharing
from gpu_constructs.versions import DevicePluginRelease

# NVIDIA/gpu-operator@v25.10.1, @v26.3.3 and @v26.7.0, deployments/gpu-operator/values.yaml
_NFD_WORKER: Mapping[str, Any] = {
    "sources": {
        "pci": {"deviceClassWhitelist": ["02", "0200", "0207", "0300", "0302"], "deviceLabelFields": ["vendor"]}
    }
}


def value_at(values: Mapping[str, Any], path: str, default: object) -> object:
    """Give a value by its dotted path, and something else where there is none."""
    found: Any = values
    for key in path.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return default if found is None else found


def labels_of_nfd(values: Mapping[str, Any]) -> NfdLabels:
    """Return the node labels that the operator's Node Feature Discovery publishes."""
    worker = value_at(values, "node-feature-discovery.worker.config", {})
    master = value_at(values, "node-feature-discovery.master.config", {})
    document = nfd_config.merged(_NFD_WORKER, worker if isinstance(worker, Mapping) else {})
    return nfd_labels(document, master if isinstance(master, Mapping) else {})


def resources(values: Mapping[str, Any], configs: Configs | None) -> dict[str, Sharing]:
    """Give the resources that the device plugin advertises; of a file unseen all that may be."""
    known = None if configs is None else advertised_resources(configs)
    # A file unseen may say anything.
    resources = dict(known or dict.fromkeys((GPU, f"{GPU}.shared", "nvidia.com/mig-*"), Sharing.none()))
    if value_at(values, "mig.strategy", "") == "mixed":
        resources["nvidia.com/mig-*"] = Sharing.none()
    return resources


def offers(values: Mapping[str, Any], configs: Configs, release: DevicePluginRelease) -> tuple[GpuOffer, ...]:
    """Return how each configuration advertises GPUs, and where."""
    # The chart's own is single, and the operator hands it to the plugin whatever the file says.
    strategy = cast(MigStrategy, value_at(values, "mig.strategy", "single"))
    pods = dict.fromkeys(configs.configs, _plugin_pods(values))
    return tuple(replace(offer, mig_strategy=strategy) for offer in gpu_offers(configs, pods, release))


def _plugin_pods(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give which nodes the device plugin's pods run on.

    Source:
        NVIDIA/gpu-operator@v26.7.0:assets/state-device-plugin/0500_daemonset.yaml, controllers/state_manager.go
    """
    # The operator sets the label of the selector itself, but for nodes with these labels.
    kept_off = [{"key": "nvidia.com/gpu.deploy.operands", "operator": "NotIn", "values": ["false"]}]
    if value_at(values, "sandboxWorkloads.enabled", False) is True:
        runs_containers = value_at(values, "sandboxWorkloads.defaultWorkload", "container") == "container"
        rule = ("NotIn", ["vm-passthrough", "vm-vgpu"]) if runs_containers else ("In", ["container"])
        kept_off.append({"key": "nvidia.com/gpu.workload.config", "operator": rule[0], "values": rule[1]})
    return {
        "nodeSelector": {"nvidia.com/gpu.deploy.device-plugin": "true"},
        "affinity": required_node_affinity([kept_off]),
        "tolerations": tolerations(values) or [GPU_TAINT.to_manifest()],
    }


def tolerations(values: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Give what the pods of the operands tolerate."""
    given = value_at(values, "daemonsets.tolerations", None)
    return given if isinstance(given, Sequence) else [GPU_TAINT.to_manifest()]


def text_or_none(value: object) -> str | None:
    """Give a value that is text."""
    return value if isinstance(value, str) else None
