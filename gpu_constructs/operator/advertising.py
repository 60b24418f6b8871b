"""What a GPU Operator adds to the cluster according to its Helm values, such as node labels and GPU resources.

``synth`` uses this information to check the other constructs of the app.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from gpu_constructs.catalog.nfd_labels import NfdLabels, nfd_labels
from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.catalog.sharing import GPU, Sharing
from gpu_constructs.catalog.versions import DevicePluginRelease, GpuOperatorRelease
from gpu_constructs.device_plugin.config import MigStrategy
from gpu_constructs.device_plugin.configs import NODE_LABEL, Configs, advertised_resources, gpu_offers
from gpu_constructs.device_plugin.manifests import GFD_LABELS
from gpu_constructs.facts.provided import Component, GpuOffer, Provided
from gpu_constructs.feature_discovery import config as nfd_config
from gpu_constructs.kube.placement import GPU_PRESENT, GPU_TAINT, required_node_affinity
from gpu_constructs.kube.plain_data import at

_COMPONENTS: Mapping[Component, str] = {
    "device-plugin": "devicePlugin.enabled",
    "gpu-feature-discovery": "gfd.enabled",
    "node-feature-discovery": "nfd.enabled",
    "dcgm-exporter": "dcgmExporter.enabled",
}
_VALIDATOR_OFF = "nvidia.com/gpu.deploy.operator-validator=false"
_MUST_VALIDATE = "all operands wait for marker files of the validator. Remove operator_validator=False"
_NEEDS_BRIDGE = (
    "its own validator never passes on {}. Add ValidationBridge(chart, 'validation-bridge', platform=..., "
    "namespace=...) and set bridge=..., or declare one with External(app, 'existing', "
    "components=['validation-bridge'])"
)
# NVIDIA/gpu-operator@v25.3.0 to @v26.7.0, deployments/gpu-operator/values.yaml
_NFD_WORKER: Mapping[str, Any] = {
    "sources": {
        "pci": {"deviceClassWhitelist": ["02", "0200", "0207", "0300", "0302"], "deviceLabelFields": ["vendor"]}
    }
}


def labels_of_nfd(values: Mapping[str, Any]) -> NfdLabels:
    """Return patterns for the node labels that Node Feature Discovery publishes if the GPU Operator installs it.

    ``values`` contains the Helm values of the operator.
    """
    worker = at(values, "node-feature-discovery.worker.config", {})
    master = at(values, "node-feature-discovery.master.config", {})
    document = nfd_config.merged(_NFD_WORKER, worker if isinstance(worker, Mapping) else {})
    return nfd_labels(document, master if isinstance(master, Mapping) else {})


def resources(values: Mapping[str, Any], configs: Configs | None) -> dict[str, Sharing]:
    """Return a ``Sharing`` for each extended resource of the operator's device plugin, by name of the resource.

    The ``Sharing`` describes how pods share the GPUs of the resource.

    Args:
        values: Helm values of the operator.
        configs: Configurations of the device plugin. None: they are unknown, and the result contains all resources that
            the plugin can advertise.
    """
    known = None if configs is None else advertised_resources(configs)
    # An unknown file can contain any setting.
    resources = dict(known or dict.fromkeys((GPU, f"{GPU}.shared", "nvidia.com/mig-*"), Sharing.none()))
    if at(values, "mig.strategy", "") == "mixed":
        resources["nvidia.com/mig-*"] = Sharing.none()
    return resources


def offers(values: Mapping[str, Any], configs: Configs, release: DevicePluginRelease) -> tuple[GpuOffer, ...]:
    """Return a ``GpuOffer`` for each configuration of the operator's device plugin.

    A ``GpuOffer`` describes the nodes with this configuration, and the extended resources that they advertise.

    Args:
        values: Helm values of the operator.
        configs: Configurations of the device plugin.
        release: Release of the device plugin.
    """
    # The default of the chart is single. The operator passes it to the plugin, and it overrides the file.
    strategy = cast(MigStrategy, at(values, "mig.strategy", "single"))
    pods = dict.fromkeys(configs.configs, _plugin_pods(values))
    return tuple(replace(offer, mig_strategy=strategy) for offer in gpu_offers(configs, pods, release))


def _plugin_pods(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of the device plugin's pod spec that decide where its pods run, such as ``tolerations``.

    Source: NVIDIA/gpu-operator@v26.7.0:assets/state-device-plugin/0500_daemonset.yaml, controllers/state_manager.go
    """
    # The operator sets the label of the node selector itself, except on nodes with these labels.
    kept_off = [{"key": "nvidia.com/gpu.deploy.operands", "operator": "NotIn", "values": ["false"]}]
    if at(values, "sandboxWorkloads.enabled", False) is True:
        runs_containers = at(values, "sandboxWorkloads.defaultWorkload", "container") == "container"
        rule = ("NotIn", ["vm-passthrough", "vm-vgpu"]) if runs_containers else ("In", ["container"])
        kept_off.append({"key": "nvidia.com/gpu.workload.config", "operator": rule[0], "values": rule[1]})
    return {
        "nodeSelector": {"nvidia.com/gpu.deploy.device-plugin": "true"},
        "affinity": required_node_affinity([kept_off]),
        "tolerations": tolerations(values) or [GPU_TAINT.to_manifest()],
    }


def tolerations(values: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the tolerations of the operands, which are the programs that the operator runs on GPU nodes."""
    given = at(values, "daemonsets.tolerations", None)
    return given if isinstance(given, Sequence) else [GPU_TAINT.to_manifest()]


def _running(values: Mapping[str, Any]) -> list[str]:
    """Return the names of the components that the operator runs, such as ``device-plugin``.

    The list is empty if the Helm values make the chart create a GPUCluster object instead of a ClusterPolicy.
    """
    if at(values, "gpuCluster.deployCR") is True:
        return []
    switches = [*_COMPONENTS.items(), ("mig-manager", "migManager.enabled")]
    return [name for name, key in switches if at(values, key) is not False]


def runtime_class(values: Mapping[str, Any]) -> str:
    """Return the name of the RuntimeClass that the operator creates."""
    return str(at(values, "operator.runtimeClass") or "nvidia")


def _runtime_classes(values: Mapping[str, Any], platform: Platform, release: GpuOperatorRelease) -> tuple[str, ...]:
    if at(values, "cdi.nriPluginEnabled") is True:
        return ()
    # With CDI, controllers/object_controls.go creates these classes for handlers of the operator's container toolkit.
    has_more = not platform.brings_driver and at(values, "cdi.enabled", release.uses_cdi_by_default) is not False
    return (runtime_class(values), *(("nvidia-cdi", "nvidia-legacy") if has_more else ()))


def provided(
    values: Mapping[str, Any],
    platform: Platform,
    release: GpuOperatorRelease,
    *,
    configs: Configs | None,
    of_text: Configs | None,
    namespace: str,
    further_namespaces: tuple[str, ...],
    has_bridge: bool,
) -> Provided:
    """Return the effects of the operator on the cluster, for the checks of other constructs.

    Examples of such effects are node labels, RuntimeClasses and extended resources.

    Args:
        values: Helm values of the operator.
        platform: Platform of the cluster.
        release: Release of the operator.
        configs: Device plugin configurations that a keyword of ``GpuOperator`` sets. None if the user sets none.
        of_text: Device plugin configurations that the Helm values contain as YAML text. None if there are none.
        namespace: Namespace of the operator.
        further_namespaces: Namespaces that exist although the app does not create them.
        has_bridge: Whether the user passed a ``ValidationBridge``.
    """
    runs = _running(values)
    has_plugin = "device-plugin" in runs
    advertised = (configs or of_text) if has_plugin else None
    directory, why_no_bridge = at(values, "hostPaths.driverInstallDir"), platform.refusal_of("gpu-operator-bridge")
    needs_bridge = platform.gpu_operator_needs_bridge
    return Provided(
        node_labels=(
            GPU_PRESENT,
            "nvidia.com/gpu.deploy.*",
            *(GFD_LABELS if "gpu-feature-discovery" in runs else ()),
            *((NODE_LABEL,) if configs is not None else ()),
        ),
        nfd_labels=labels_of_nfd(values) if "node-feature-discovery" in runs else None,
        runtime_classes=_runtime_classes(values, platform, release),
        namespaces=further_namespaces,
        gpu_resources=resources(values, advertised) if has_plugin else {},
        gpu_offers=() if advertised is None else offers(values, advertised, release.device_plugin),
        has_mig_manager="mig-manager" in runs,
        platform=platform,
        components=("gpu-operator", *(name for name in _COMPONENTS if name in runs)),
        is_alone=True,
        needs={"validation-bridge": _NEEDS_BRIDGE.format(platform)} if needs_bridge else {},
        refuses={"validation-bridge": why_no_bridge} if why_no_bridge else {},
        driver_install_dir=directory if isinstance(directory, str) else None,
        unwanted_node_labels={} if has_bridge or needs_bridge else {_VALIDATOR_OFF: _MUST_VALIDATE},
        privileged_namespaces=(namespace,),
        later_tolerations=tolerations(values),
    )
