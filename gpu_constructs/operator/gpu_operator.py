"""The NVIDIA GPU Operator, with values that are right for the platform."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import cdk8s
from constructs import Construct

from gpu_constructs import _fields, _kinds, credentials, versions
from gpu_constructs._construct import GpuObject, checked
from gpu_constructs._labels import object_labels, selector_labels
from gpu_constructs._manifest import Manifest
from gpu_constructs._plain_data import plain
from gpu_constructs._references import NamedObject
from gpu_constructs._yaml import yaml_text
from gpu_constructs.device_plugin.config import Flags, MigStrategy, PluginConfig, device_list_strategies
from gpu_constructs.device_plugin.configs import NODE_LABEL, Configs
from gpu_constructs.device_plugin.consistency import warn_of_mps
from gpu_constructs.errors import GpuConstructsError, warn
from gpu_constructs.feature_discovery import gfd
from gpu_constructs.namespace import DEFAULT_NAMESPACE, component_namespace, require_privileged
from gpu_constructs.operator import advertising, values_rules
from gpu_constructs.operator import values as operator_values
from gpu_constructs.operator.advertising import text_or_none, value_at
from gpu_constructs.operator.delivery import CHART, Delivery, LocalChart, check_release_name
from gpu_constructs.operator.validation_bridge import ValidationBridge
from gpu_constructs.placement import Toleration
from gpu_constructs.platforms import DEFAULT_PLATFORM, GPU_PRESENT, DeviceListStrategy, Platform, require
from gpu_constructs.provided import Component, Provided
from gpu_constructs.sharing import Sharing
from gpu_constructs.side_files import SideFile

if TYPE_CHECKING:
    _Delivery = Delivery
else:
    # What is none is told the four ways to make one.
    _Delivery = object

RUNTIME_CLASS = "nvidia"
_MAIN_OF_CHART = (("nvidia.com", "ClusterPolicy"), ("nvidia.com", "GPUCluster"))
_VALUES_IN: Mapping[tuple[str, str], str] = {
    ("helm.toolkit.fluxcd.io", "HelmRelease"): "spec.values",
    ("argoproj.io", "Application"): "spec.source.helm.valuesObject",
}
_COMPONENTS: Mapping[Component, str] = {
    "device-plugin": "devicePlugin.enabled",
    "gpu-feature-discovery": "gfd.enabled",
    "node-feature-discovery": "nfd.enabled",
    "dcgm-exporter": "dcgmExporter.enabled",
}
_VALIDATOR_OFF = "nvidia.com/gpu.deploy.operator-validator=false"
_MUST_VALIDATE = "the validator writes the files that all operands wait for; leave operator_validator=False out"
_NEEDS_BRIDGE = (
    "on {} its own validator can never pass; add ValidationBridge(chart, 'validation-bridge', platform=..., "
    "namespace=...) and hand it over with bridge=..., or declare one with External(app, 'existing', "
    "components=['validation-bridge'])"
)


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
        values: What the chart is told, beyond its own defaults: a copy.
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
        delivery: _Delivery,
        platform: Platform = DEFAULT_PLATFORM,
        version: str | versions.Unverified = versions.DEFAULT_GPU_OPERATOR,
        namespace: str | NamedObject = DEFAULT_NAMESPACE,
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
            bridge: The ``ValidationBridge`` beside it: driver, toolkit and CDI are off then, on every platform. With
                the strategy ``stage`` the operator's validator must look where the bridge puts the driver's files.
            tolerations: Taints of the GPU nodes, on top of ``nvidia.com/gpu``. Written to both places that the
                chart has for them: the operands and the worker of Node Feature Discovery.
            config: The device plugin's configuration, or several by ``Configs.managed(...)`` or
                ``Configs.external(...)``, chosen by the node label ``nvidia.com/device-plugin.config``.
            sharing: Short for ``config=PluginConfig(sharing=...)``.
            mig_strategy: ``none``, ``single`` (the chart's default) or ``mixed``; with ``config`` said there, but
                for an external ConfigMap, whose files it beats.
            device_list_strategy: Written as DEVICE_LIST_STRATEGY of the device plugin. Needed only to say what
                the operator does anyhow: ``envvar`` with CDI off, ``cdi-annotations,cdi-cri`` with CDI on.
            cdi: Whether devices are handed out by CDI. On until the platform says no.
            driver: Whether the operator installs the driver; never on Talos.
            toolkit: Whether the operator installs the container toolkit; never on Talos.
            mig_manager: Whether the operator partitions GPUs by the label ``nvidia.com/mig.config``. Off on Talos.
            gpu_feature_discovery: Whether the operator labels nodes with product, memory and sharing.
            node_feature_discovery: False where the cluster has a Node Feature Discovery already, which must give
                each GPU node ``feature.node.kubernetes.io/pci-10de.present``, and from release 26.3 on
                ``.../system-os_release.ID`` and ``.../system-os_release.VERSION_ID`` too. Without any the operator
                does nothing at all.
            dcgm_exporter: Whether the operator runs the exporter; False beside a ``DcgmExporter`` of your own.
            service_monitor: Whether the operator's exporter gets a ServiceMonitor.
            values: Everything else, as the chart's values file has it. A key that the chart does not read is
                refused with the nearest one it does.

        Raises:
            GpuConstructsError: The release does not run on the platform, a value is not allowed alone or together
                with others, a key is none of the chart's, a keyword and ``values`` contradict each other.
        """
        _check_delivery(delivery)
        name = component_namespace(namespace)
        require_privileged("namespace", namespace, "the operator's pods mount host paths")
        _fields.label_value("id", id)
        check_release_name(release_name)
        release = _release(version, platform)
        _check_bridge(bridge, platform)
        if config is not None and sharing is not None:
            raise GpuConstructsError(
                "sharing must be left out beside config, which holds it; got both; say it there, by "
                "PluginConfig(sharing=...)"
            )
        is_external = isinstance(config, Configs) and config.delivery == "external"
        if config is not None and mig_strategy is not None and not is_external:
            raise GpuConstructsError(
                f"mig_strategy must be left out beside config, which holds it; got {mig_strategy!r}; say it there, by "
                f"PluginConfig(flags=Flags(mig_strategy={mig_strategy!r}))"
            )
        if sharing is not None and sharing.strategy != "none":
            config = PluginConfig(sharing=sharing, flags=Flags(mig_strategy=mig_strategy))
        configs = operator_values.plugin_configs(config, release.device_plugin)
        if configs is not None:
            warn_of_mps(configs, id=f"{scope.node.path}/{id}".lstrip("/"), platform=platform)
        staged = bridge.driver_install_dir if bridge else None
        derived = operator_values.of_platform(platform, driver_install_dir=staged, has_bridge=bridge is not None)
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
        source = "config" if sharing is None else "sharing"
        keywords = operator_values.keywords_of(
            stated, config=source, mig_strategy="mig_strategy" if mig_strategy else source
        )
        own = plain("values", values or {}, may_be_none=True)
        if own:
            credentials.refuse_in_values(own, "name a Secret where the chart takes one, such as driver.secretEnv")
            # The table of the chart's keys is for those who name some.
            from gpu_constructs.operator.chart_keys import check_keys

            check_keys(own, release)
        told = operator_values.merged(derived, stated, own, keywords)
        if isinstance(delivery, LocalChart):
            from gpu_constructs.operator import local_chart

            told = local_chart.without_hooks(told)
        warnings = values_rules.check_rules(
            told,
            release,
            platform,
            driver_install_dir=staged,
            has_bridge=bridge is not None,
            keywords=keywords,
        )
        if configs is None:
            warnings += operator_values.config_warnings(told, release.device_plugin)
        for warning in warnings:
            warn(f"{scope.node.path}/{id}: {warning}".lstrip("/"))
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
        self._values = told
        self.release_name = release_name
        self.namespace = name
        self.runtime_class = str(value_at(told, "operator.runtimeClass", "") or RUNTIME_CLASS)
        self.provides = _provided(self, platform, configs, release.device_plugin, delivery=delivery, bridge=bridge)
        for child, manifest in manifests.items():
            # A delivery states the namespace of all that live in one.
            Manifest(self, child, manifest, is_cluster_scoped="namespace" not in manifest["metadata"])

    @property
    def values(self) -> dict[str, Any]:
        """What the chart is told, beyond its own defaults: a copy."""
        return copy.deepcopy(self._values)

    @property
    def api_object(self) -> cdk8s.ApiObject:
        """The object that stands for the release: the place for ``add_json_patch``."""
        if self.node.try_find_child("Default") is None:
            raise GpuConstructsError(
                "api_object must be asked of a delivery with a main object; got one that emits none; use "
                "Delivery.flux(), Delivery.argo_cd() or Delivery.helm(...) with a ClusterPolicy, or change values=",
                path=self.node.path,
            )
        return cdk8s.ApiObject.of(self)

    def side_files(self) -> list[SideFile]:
        """Give the values file, for review and for ``helm install -f``: with JSON patches, as it is delivered."""
        return [SideFile(folder="helm-values", stem=self.release_name, text=yaml_text(self._delivered()))]

    def _delivered(self) -> object:
        main = self.node.try_find_child("Default")
        path = _VALUES_IN.get((main.api_group, main.kind)) if isinstance(main, Manifest) else None
        return value_at(main.to_json(), path, {}) if isinstance(main, Manifest) and path else self.values


def _check_delivery(delivery: object) -> None:
    if not isinstance(delivery, Delivery):
        got = "the class itself" if delivery is Delivery else repr(delivery)
        raise GpuConstructsError(
            f"delivery must be made by Delivery.flux(), Delivery.argo_cd(), Delivery.helm(chart=...) or "
            f"Delivery.values(); got {got}; pass one of them"
        )


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


def _manifests(delivery: Delivery, platform: Platform, instance: str, **release: Any) -> dict[str, dict[str, Any]]:
    """Give the objects by the id of their construct, the one that the others serve as ``Default``."""
    if isinstance(delivery, LocalChart):
        from gpu_constructs.operator import local_chart

        made = local_chart.manifests(delivery, kubernetes=platform.kubernetes, **release)
    else:
        made = delivery.manifests(
            **release, labels=object_labels(selector_labels(name=CHART, instance=instance, component=CHART))
        )
    kinds = _MAIN_OF_CHART if isinstance(delivery, LocalChart) else tuple(_VALUES_IN)
    by_id = {":".join(identity): one for one in made for identity in [_kinds.identity_of(one)]}
    main = next((id for id, one in by_id.items() if _kinds.identity_of(one)[:2] in kinds), None)
    return {"Default" if id == main else id: one for id, one in by_id.items()}


def _provided(
    operator: GpuOperator,
    platform: Platform,
    configs: Configs | None,
    release: versions.DevicePluginRelease,
    *,
    delivery: Delivery,
    bridge: ValidationBridge | None,
) -> Provided:
    values = operator.values
    runs_pods = value_at(values, "gpuCluster.deployCR", False) is not True
    runs = [
        component for component, key in _COMPONENTS.items() if runs_pods and value_at(values, key, True) is not False
    ]
    labels = [GPU_PRESENT, "nvidia.com/gpu.deploy.*"]
    if "gpu-feature-discovery" in runs:
        labels += gfd.LABELS
    if configs is not None:
        labels.append(NODE_LABEL)
    has_plugin = "device-plugin" in runs
    advertised = (configs or operator_values.values_configs(values)) if has_plugin else None
    return Provided(
        node_labels=tuple(labels),
        nfd_labels=advertising.labels_of_nfd(values) if "node-feature-discovery" in runs else None,
        runtime_classes=_runtime_classes(operator, platform),
        namespaces=delivery.namespaces_of_others(operator.namespace),
        gpu_resources=advertising.resources(values, advertised) if has_plugin else {},
        gpu_offers=() if advertised is None else advertising.offers(values, advertised, release),
        has_mig_manager=runs_pods and value_at(values, "migManager.enabled", True) is not False,
        platform=platform,
        components=("gpu-operator", *runs),
        is_alone=True,
        needs={"validation-bridge": _NEEDS_BRIDGE.format(platform)} if platform.gpu_operator_needs_bridge else {},
        refuses=_refused(platform),
        driver_install_dir=text_or_none(value_at(values, "hostPaths.driverInstallDir", None)),
        unwanted_node_labels={} if bridge or platform.gpu_operator_needs_bridge else {_VALIDATOR_OFF: _MUST_VALIDATE},
        privileged_namespaces=(operator.namespace,),
        later_tolerations=advertising.tolerations(values),
    )


def _runtime_classes(operator: GpuOperator, platform: Platform) -> tuple[str, ...]:
    values = operator.values
    if value_at(values, "cdi.nriPluginEnabled", False) is True:
        return ()
    # controllers/object_controls.go makes them with CDI, for handlers that its own container toolkit registers.
    has_more = not platform.brings_driver and value_at(values, "cdi.enabled", True) is not False
    return (operator.runtime_class, *(("nvidia-cdi", "nvidia-legacy") if has_more else ()))


def _refused(platform: Platform) -> dict[Component, str]:
    why = platform.refusal_of("gpu-operator-bridge")
    return {"validation-bridge": why} if why else {}
