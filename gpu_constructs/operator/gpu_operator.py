"""The NVIDIA GPU Operator, with values that are right for the platform."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import cdk8s
from constructs import Construct

from gpu_constructs.catalog import versions
from gpu_constructs.catalog.platforms import DEFAULT_PLATFORM, DeviceListStrategy, Platform, require
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.cluster.namespace import DEFAULT_NAMESPACE, component_namespace, require_privileged
from gpu_constructs.device_plugin.config import MigStrategy, PluginConfig, device_list_strategies
from gpu_constructs.device_plugin.configs import Configs
from gpu_constructs.device_plugin.installation import warn_of_mps
from gpu_constructs.errors import GpuConstructsError, warn
from gpu_constructs.kube import credentials, fields, kinds, plain_data
from gpu_constructs.kube.labels import object_labels, selector_labels
from gpu_constructs.kube.placement import Toleration
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.kube.side_files import SideFile
from gpu_constructs.kube.yaml_text import yaml_text
from gpu_constructs.operator import advertising, options, values_rules
from gpu_constructs.operator import values as operator_values
from gpu_constructs.operator.delivery import CHART, Delivery, Made, check_release_name
from gpu_constructs.operator.manifests import Release, namespaces_of_others
from gpu_constructs.operator.manifests import manifests as manifests_of
from gpu_constructs.operator.validation_bridge import ValidationBridge
from gpu_constructs.tree.construct import GpuObject, checked
from gpu_constructs.tree.manifest import Manifest

if TYPE_CHECKING:
    _Delivery = Delivery
else:
    # What is none is told the four ways to make one.
    _Delivery = object

_MAIN_OF_CHART: tuple[tuple[str, str], ...] = (("nvidia.com", "ClusterPolicy"), ("nvidia.com", "GPUCluster"))
_VALUES_IN: Mapping[tuple[str, str], str] = {
    ("helm.toolkit.fluxcd.io", "HelmRelease"): "spec.values",
    ("argoproj.io", "Application"): "spec.source.helm.valuesObject",
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
        values: Values of the chart beyond its own defaults: a copy.
        release_name: Name of the Helm release.
        namespace: Namespace of the Helm release.
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
            platform: Platform of the cluster; decides driver, toolkit, CDI, MIG manager and where the validator finds
                the driver.
            version: Release of operator and chart: ``"25.10.1"``, ``"26.3.3"`` or ``"26.7.0"``, the default. From
                Talos 1.13 on 26.3.1 is the first.
            namespace: Name or object of the operator's namespace. It must be privileged: the operands mount host
                paths.
            release_name: Name of the Helm release, and of the values file.
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
        made_by = _made(delivery)
        name = component_namespace(namespace)
        require_privileged("namespace", namespace, "the operator's pods mount host paths")
        fields.label_value("id", id)
        check_release_name(release_name)
        release = options.release_for(version, platform)
        if bridge is not None or platform.gpu_operator_needs_bridge:
            require(platform, "gpu-operator-bridge")
        configs = options.plugin_configs(config, sharing, mig_strategy, release.device_plugin)
        strategies: Sequence[str] = ()
        if device_list_strategy is not None:
            strategies = device_list_strategies("device_list_strategy", device_list_strategy)
        stated = operator_values.of_keywords(
            tolerations=tolerations,
            device_list_strategy=strategies,
            configs=configs,
            mig_strategy=mig_strategy or options.mig_strategy_of(configs),
            switches={
                "driver": driver,
                "toolkit": toolkit,
                "cdi": cdi,
                "mig_manager": mig_manager,
                "node_feature_discovery": node_feature_discovery,
                "gpu_feature_discovery": gpu_feature_discovery,
                "dcgm_exporter": dcgm_exporter,
                "service_monitor": service_monitor,
            },
        )
        source = "config" if sharing is None else "sharing"
        keywords = operator_values.keywords_of(
            stated, config=source, mig_strategy="mig_strategy" if mig_strategy else source
        )
        where = f"{scope.node.path}/{id}".lstrip("/")
        told = _told(where, made_by, platform, release, bridge, _own(values, release), stated, keywords)
        of_text = _configs_of_text(where, told, configs, release.device_plugin)
        if configs is not None:
            warn_of_mps(configs, id=where, platform=platform)
        manifests = _manifests(id, made_by, release_name, name, release, told, platform)

        super().__init__(scope, id)
        self._values = told
        self.release_name = release_name
        self.namespace = name
        self.runtime_class = advertising.runtime_class(told)
        self.provides = advertising.provided(
            told,
            platform,
            release.device_plugin,
            configs=configs,
            of_text=of_text,
            namespace=name,
            further_namespaces=namespaces_of_others(made_by, name),
            has_bridge=bridge is not None,
        )
        for child, manifest in manifests.items():
            # A delivery states the namespace of all that live in one.
            Manifest(self, child, manifest, is_cluster_scoped="namespace" not in manifest["metadata"])

    @property
    def values(self) -> dict[str, Any]:
        """Values of the chart beyond its own defaults: a copy."""
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
        """Return the values file, for review and for ``helm install -f``: with JSON patches, as it is delivered."""
        return [SideFile(folder="helm-values", stem=self.release_name, text=yaml_text(_delivered(self)))]


def _delivered(operator: GpuOperator) -> object:
    main = operator.node.try_find_child("Default")
    path = _VALUES_IN.get((main.api_group, main.kind)) if isinstance(main, Manifest) else None
    return plain_data.at(main.to_json(), path, {}) if isinstance(main, Manifest) and path else operator.values


def _made(delivery: object) -> Made:
    if not isinstance(delivery, Made):
        got = "the class itself" if delivery is Delivery else repr(delivery)
        raise GpuConstructsError(
            f"delivery must be made by Delivery.flux(), Delivery.argo_cd(), Delivery.helm(chart=...) or "
            f"Delivery.values(); got {got}; pass one of them"
        )
    return delivery


def _own(values: Mapping[str, Any] | None, release: versions.GpuOperatorRelease) -> dict[str, Any]:
    own: dict[str, Any] = plain_data.plain("values", values or {}, may_be_none=True)
    if own:
        credentials.refuse_in_values(own, "name a Secret where the chart takes one, such as driver.secretEnv")
        # The table of the chart's keys is for those who name some.
        from gpu_constructs.operator.chart_keys import check_keys

        check_keys(own, release)
    return own


def _told(
    where: str,
    delivery: Made,
    platform: Platform,
    release: versions.GpuOperatorRelease,
    bridge: ValidationBridge | None,
    own: Mapping[str, Any],
    stated: Mapping[str, Any],
    keywords: Mapping[str, str],
) -> dict[str, Any]:
    """Return the values that the chart is told, checked; what is likely not meant is warned of."""
    staged, has_bridge = bridge.driver_install_dir if bridge else None, bridge is not None
    derived = operator_values.of_platform(platform, driver_install_dir=staged, has_bridge=has_bridge)
    told = operator_values.merged(derived, stated, own, keywords)
    if delivery.kind == "helm":
        from gpu_constructs.operator import local_chart

        told = local_chart.without_hooks(told)
    for warning in values_rules.check_rules(
        told, release, platform, driver_install_dir=staged, has_bridge=has_bridge, keywords=keywords
    ):
        warn(f"{where}: {warning}")
    return told


def _configs_of_text(
    where: str, told: Mapping[str, Any], configs: Configs | None, release: versions.DevicePluginRelease
) -> Configs | None:
    section = plain_data.at(told, "devicePlugin.config", {}) if configs is None else {}
    of_text, doubts = options.configs_of_text(section, release)
    for doubt in doubts:
        warn(f"{where}: {doubt}")
    return of_text


def _manifests(
    id: str,
    delivery: Made,
    release_name: str,
    namespace: str,
    operator: versions.GpuOperatorRelease,
    told: Mapping[str, Any],
    platform: Platform,
) -> dict[str, dict[str, Any]]:
    """Return the objects by the id of their construct, the one that the others serve as ``Default``."""
    labels = object_labels(selector_labels(name=CHART, instance=id, component=CHART))
    release = Release(
        name=release_name, namespace=namespace, chart_version=operator.version, values=told, labels=labels
    )
    if delivery.kind == "helm":
        from gpu_constructs.operator import local_chart

        made, main_kinds = local_chart.manifests(delivery, release, kubernetes=platform.kubernetes), _MAIN_OF_CHART
    else:
        made, main_kinds = manifests_of(delivery, release), tuple(_VALUES_IN)
    by_id = {":".join(identity): one for one in made for identity in [kinds.identity_of(one)]}
    main = next((id for id, one in by_id.items() if kinds.identity_of(one)[:2] in main_kinds), None)
    return {"Default" if id == main else id: one for id, one in by_id.items()}
