"""The NVIDIA GPU Operator, with values that are right for the platform."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from constructs import Construct

from gpu_constructs import _fields, versions
from gpu_constructs._construct import GpuObject, checked
from gpu_constructs._labels import object_labels, selector_labels
from gpu_constructs._manifest import Manifest
from gpu_constructs._yaml import yaml_text
from gpu_constructs.device_plugin.config import Flags, MigStrategy, PluginConfig, device_list_strategies
from gpu_constructs.device_plugin.configs import NODE_LABEL, Configs
from gpu_constructs.device_plugin.consistency import advertised_resources, warn_of_mps
from gpu_constructs.errors import GpuConstructsError, warn
from gpu_constructs.feature_discovery import gfd, nfd
from gpu_constructs.namespace import DEFAULT_NAMESPACE, component_namespace, require_privileged
from gpu_constructs.operator import chart_keys, local_chart, values_rules
from gpu_constructs.operator import values as operator_values
from gpu_constructs.operator.delivery import CHART, Delivery, LocalChart, check_release_name
from gpu_constructs.operator.validation_bridge import ValidationBridge
from gpu_constructs.placement import Toleration
from gpu_constructs.platforms import DEFAULT_PLATFORM, GPU_PRESENT, DeviceListStrategy, Platform, require
from gpu_constructs.provided import Component, Provided
from gpu_constructs.sharing import GPU, Sharing
from gpu_constructs.side_files import SideFile

RUNTIME_CLASS = "nvidia"
_MAIN = ("HelmRelease", "Application", "ClusterPolicy")
_OPERATOR: Component = "the GPU Operator"
_COMPONENTS: Mapping[Component, str] = {
    "the device plugin": "devicePlugin.enabled",
    "GPU Feature Discovery": "gfd.enabled",
    "Node Feature Discovery": "nfd.enabled",
    "the DCGM exporter": "dcgmExporter.enabled",
}


class GpuOperator(GpuObject):
    """NVIDIA's GPU Operator by its Helm chart, told what the platform needs.

    Where driver and container toolkit belong to the nodes' image, as on Talos, the operator installs neither,
    and its MIG manager, which works on hosts with systemd, stays off. Until Talos 1.12 CDI is off too, and a
    ``ValidationBridge`` must stand beside it; from 1.13 on its validator looks for the driver in /usr/local.

    Emits what the delivery says: objects of Flux or Argo CD, the chart's own objects, or nothing. In any case
    ``synth`` writes the values to ``dist/helm-values/``. Emits no Namespace: put a ``GpuNamespace`` beside it.
    The operator makes the RuntimeClass ``nvidia`` and the node label ``nvidia.com/gpu.present`` itself.

    Attributes:
        api_object: The HelmRelease, the Application, or the ClusterPolicy of a local chart; there is none with
            ``Delivery.values()``.
        values: What the chart is told, beyond its own defaults.
        release_name: Of the Helm release.
        namespace: Of the Helm release.
        runtime_class: Name of the RuntimeClass that the operator makes.
        cluster_policy_name: Name of the ClusterPolicy that the chart makes.

    Source:
        NVIDIA/gpu-operator@v26.7.0:deployments/gpu-operator; Sidero documentation, "NVIDIA GPU (OSS drivers)"
    """

    cluster_policy_name = "cluster-policy"

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        delivery: Delivery,
        platform: Platform = DEFAULT_PLATFORM,
        version: str | versions.Unverified = versions.DEFAULT_GPU_OPERATOR,
        namespace: object = DEFAULT_NAMESPACE,
        release_name: str = "gpu-operator",
        bridge: ValidationBridge | None = None,
        tolerations: Sequence[Toleration] = (),
        config: PluginConfig | Configs | None = None,
        sharing: Sharing | None = None,
        mig_strategy: MigStrategy | None = None,
        device_list_strategy: DeviceListStrategy | Sequence[DeviceListStrategy] | None = None,
        cdi: bool | None = None,
        driver: bool | None = None,
        toolkit: bool | None = None,
        mig_manager: bool | None = None,
        gpu_feature_discovery: bool | None = None,
        node_feature_discovery: bool | None = None,
        dcgm_exporter: bool | None = None,
        service_monitor: bool | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        """Make the operator's installation.

        Keywords that are None by default leave their key to the platform, else to the chart.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            delivery: ``Delivery.flux(...)``, ``Delivery.argo_cd(...)``, ``Delivery.helm(...)`` or
                ``Delivery.values()``: who installs the chart.
            platform: Decides driver, toolkit, CDI, MIG manager and where the validator finds the driver.
            version: Release of operator and chart: ``"25.10.1"``, ``"26.3.3"`` or ``"26.7.0"``, the default. From
                Talos 1.13 on 26.3.1 is the first.
            namespace: Name or object of the operator's namespace. It must be privileged: the operands mount host
                paths.
            release_name: Of the Helm release, and of the values file.
            bridge: The ``ValidationBridge`` beside it. With the strategy ``stage`` the operator's validator must
                look where the bridge puts the driver's files.
            tolerations: Taints of the GPU nodes, on top of ``nvidia.com/gpu``. Written to both places that the
                chart has for them: the operands and the worker of Node Feature Discovery.
            config: The device plugin's configuration, or several by ``Configs.managed(...)`` or
                ``Configs.external(...)``, chosen by the node label ``nvidia.com/device-plugin.config``.
            sharing: Short for ``config=PluginConfig(sharing=...)``.
            mig_strategy: ``none``, ``single`` (the chart's default) or ``mixed``; with ``config`` said there.
            device_list_strategy: Written as DEVICE_LIST_STRATEGY of the device plugin. Needed only to say what
                the operator does anyhow: ``envvar`` with CDI off, ``cdi-annotations,cdi-cri`` with CDI on.
            cdi: Whether devices are handed out by CDI. On until the platform says no.
            driver: Whether the operator installs the driver; never on Talos.
            toolkit: Whether the operator installs the container toolkit; never on Talos.
            mig_manager: Whether the operator partitions GPUs by the label ``nvidia.com/mig.config``. Off on Talos.
            gpu_feature_discovery: Whether the operator labels nodes with product, memory and sharing.
            node_feature_discovery: False where the cluster has a Node Feature Discovery already. Without any the
                operator does nothing at all.
            dcgm_exporter: Whether the operator runs the exporter; False beside a ``DcgmExporter`` of your own.
            service_monitor: Whether the operator's exporter gets a ServiceMonitor.
            values: Everything else, as the chart's values file has it. A key that the chart does not read is
                refused with the nearest one it does.

        Raises:
            GpuConstructsError: The release does not run on the platform, a value is not allowed alone or together
                with others, a key is none of the chart's, a keyword and ``values`` contradict each other.
        """
        name = component_namespace(namespace)
        require_privileged("namespace", namespace, "the operator's pods mount host paths")
        _fields.label_value("id", id)
        check_release_name(release_name)
        release = _release(version, platform)
        _check_bridge(bridge, platform)
        if config is not None and sharing is not None:
            raise GpuConstructsError("sharing must be left out beside config, which holds it; got both")
        if config is not None and mig_strategy is not None:
            raise GpuConstructsError("mig_strategy must be left out beside config, which holds it; got both")
        if sharing is not None and sharing.strategy != "none":
            config = PluginConfig(sharing=sharing, flags=Flags(mig_strategy=mig_strategy))
        configs = operator_values.plugin_configs(config, release.device_plugin)
        path = f"{scope.node.path}/{id}".lstrip("/")
        if configs is not None:
            warn_of_mps(configs, id=path, platform=platform)
        derived = operator_values.of_platform(
            platform, driver_install_dir=bridge.driver_install_dir if bridge else None
        )
        stated = operator_values.of_keywords(
            tolerations=tolerations,
            device_list_strategy=()
            if device_list_strategy is None
            else device_list_strategies("device_list_strategy", device_list_strategy),
            configs=configs,
            mig_strategy=mig_strategy or operator_values.mig_strategy(configs),
            switches={
                "driver.enabled": driver,
                "toolkit.enabled": toolkit,
                "cdi.enabled": cdi,
                "migManager.enabled": mig_manager,
                "nfd.enabled": node_feature_discovery,
                "gfd.enabled": gpu_feature_discovery,
                "dcgmExporter.enabled": dcgm_exporter,
                "dcgmExporter.serviceMonitor.enabled": service_monitor,
            },
        )
        own = values or {}
        chart_keys.check_keys(own, release)
        told = operator_values.merged(derived, stated, own)
        chart_keys.check_keys(told, release)
        staged = bridge.driver_install_dir if bridge else None
        for warning in values_rules.check_rules(told, release, platform, driver_install_dir=staged):
            warn(f"{path}: {warning}")
        manifests = _manifests(
            delivery,
            platform,
            id,
            release_name=release_name,
            namespace=name,
            chart_version=release.version,
            values=told,
        )

        super().__init__(scope, id)
        self.values = copy.deepcopy(told)
        self.release_name = release_name
        self.namespace = name
        self.runtime_class = str(_at(told, "operator.runtimeClass", RUNTIME_CLASS))
        self.provides = _provided(self, platform, configs, needs_bridge=platform.gpu_operator_needs_bridge)
        for child, manifest in manifests.items():
            Manifest(self, child, manifest)

    def side_files(self) -> list[SideFile]:
        """Give the values file, for review and for ``helm install -f``."""
        return [SideFile(folder="helm-values", stem=self.release_name, text=yaml_text(self.values))]


def _release(version: str | versions.Unverified, platform: Platform) -> versions.GpuOperatorRelease:
    number = (version.version if isinstance(version, versions.Unverified) else version).removeprefix("v")
    if platform.brings_driver and number in versions.FAILS_ON_TALOS:
        raise GpuConstructsError(
            f"version {number!r} of the GPU Operator fails on {platform}: it cannot read Talos' version label "
            f"(NVIDIA/gpu-operator#2239); take {' or '.join(map(repr, _runs_on(platform)))}"
        )
    release = versions.release_of(versions.GPU_OPERATOR, version, "the GPU Operator")
    if not _is_young_enough(release, platform):
        raise GpuConstructsError(
            f"version of the GPU Operator must be at least {versions.FIRST_GPU_OPERATOR_FOR_CDI_ON_TALOS!r} on "
            f"{platform}, where the driver lies in /usr/local; got {release.version!r}; take "
            f"{' or '.join(map(repr, _runs_on(platform)))}"
        )
    return release


def _is_young_enough(release: versions.GpuOperatorRelease, platform: Platform) -> bool:
    has_new_layout = platform.brings_driver and platform.supports_cdi
    return not has_new_layout or release.is_at_least(versions.FIRST_GPU_OPERATOR_FOR_CDI_ON_TALOS)


def _runs_on(platform: Platform) -> list[str]:
    return [name for name, release in versions.GPU_OPERATOR.items() if _is_young_enough(release, platform)]


def _check_bridge(bridge: ValidationBridge | None, platform: Platform) -> None:
    if bridge is not None or platform.gpu_operator_needs_bridge:
        require(platform, "gpu-operator-bridge")


def _manifests(delivery: Delivery, platform: Platform, id: str, **release: Any) -> dict[str, dict[str, Any]]:
    """Give the objects by the id of their construct, the one that the others serve as ``Default``."""
    if isinstance(delivery, LocalChart):
        made = local_chart.manifests(delivery, kubernetes=platform.kubernetes, **release)
    else:
        made = delivery.manifests(
            **release, labels=object_labels(selector_labels(name=CHART, instance=id, component=CHART))
        )
    return {
        "Default" if one["kind"] in _MAIN else f"{one['kind']}-{one['metadata']['name']}".lower(): one for one in made
    }


def _at(values: Mapping[str, Any], path: str, default: object) -> object:
    found: Any = values
    for key in path.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return default if found is None else found


def _provided(operator: GpuOperator, platform: Platform, configs: Configs | None, *, needs_bridge: bool) -> Provided:
    values = operator.values
    runs = [component for component, key in _COMPONENTS.items() if _at(values, key, True) is not False]
    labels = [GPU_PRESENT]
    if "Node Feature Discovery" in runs:
        labels.append(nfd.LABELS)
    if "GPU Feature Discovery" in runs:
        labels += gfd.LABELS
    if configs is not None:
        labels.append(NODE_LABEL)
    needs: dict[Component, str] = {}
    if needs_bridge:
        needs["the validation bridge"] = (
            f"on {platform} its own validator can never pass; add ValidationBridge(chart, 'validation-bridge', "
            "platform=..., namespace=...)"
        )
    resources = {GPU: Sharing.none()} if configs is None else advertised_resources(configs)
    if _at(values, "mig.strategy", "") == "mixed":
        resources["nvidia.com/mig-*"] = Sharing.none()
    return Provided(
        node_labels=tuple(labels),
        runtime_classes=(operator.runtime_class,),
        gpu_resources=resources if "the device plugin" in runs else {},
        pod_security_default=platform.pod_security_default,
        components=(_OPERATOR, *runs),
        is_alone=True,
        needs=needs,
        privileged_namespaces=(operator.namespace,),
    )
