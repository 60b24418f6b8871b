"""The NVIDIA GPU Operator, with the Helm values that the platform of the cluster needs, such as Talos."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import cdk8s
from constructs import Construct

from gpu_constructs.catalog import versions
from gpu_constructs.catalog.platforms import DEFAULT_PLATFORM, DeviceListStrategy, Kubernetes, Platform, require
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.cluster.namespace import DEFAULT_NAMESPACE, component_namespace, require_privileged
from gpu_constructs.device_plugin.config import MigStrategy, PluginConfig, device_list_strategies
from gpu_constructs.device_plugin.configs import Configs
from gpu_constructs.device_plugin.installation import warn_of_mps
from gpu_constructs.errors import GpuConstructsError, short_errors, warn
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
from gpu_constructs.tree.construct import GpuObject, ReadsHelmValues, checked, from_values
from gpu_constructs.tree.manifest import Manifest

if TYPE_CHECKING:
    _Delivery = Delivery
else:
    # The error for another type names the four methods that create a delivery.
    _Delivery = object

_MAIN_OF_CHART: tuple[tuple[str, str], ...] = (("nvidia.com", "ClusterPolicy"), ("nvidia.com", "GPUCluster"))
_VALUES_IN: Mapping[tuple[str, str], str] = {
    ("helm.toolkit.fluxcd.io", "HelmRelease"): "spec.values",
    ("argoproj.io", "Application"): "spec.source.helm.valuesObject",
}


class GpuOperator(ReadsHelmValues, GpuObject):
    """The NVIDIA GPU Operator from its Helm chart, with the values that the platform needs.

    On Talos, the image of the nodes contains the NVIDIA driver and the container toolkit, so the operator does not
    install them. Its MIG manager, which needs systemd, is off. Up to Talos 1.12, CDI is off too, and the app needs a
    ``ValidationBridge``. From Talos 1.13 on, the validator of the operator finds the driver in ``/usr/local``.

    The emitted objects depend on ``delivery``: a HelmRelease with its source for Flux, an Application for Argo CD, all
    objects of the chart for ``Delivery.helm``, or none for ``Delivery.values``. ``synth`` always writes the Helm values
    to ``dist/helm-values/``. Emits no Namespace, so add a ``GpuNamespace``. The operator creates the RuntimeClass
    ``nvidia`` and the node label ``nvidia.com/gpu.present`` itself.

    Attributes:
        api_object: The HelmRelease, the Application, or the ClusterPolicy that ``Delivery.helm`` renders. With
            ``Delivery.values()``, which emits no object, this attribute raises an error.
        values: Copy of the Helm values that the chart gets. They do not include the defaults of the chart.
        release_name: Name of the Helm release.
        namespace: Namespace of the Helm release.
        runtime_class: Name of the RuntimeClass that the operator creates.
        cluster_policy_name: Name of the ClusterPolicy that the chart creates.

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
        """Create the objects that install the GPU Operator.

        If a keyword is None, the chart gets the value that the platform needs. If the platform needs no particular
        value, the default of the chart applies.

        Args:
            scope: Chart, or construct in a chart.
            id: ID of the construct.
            delivery: Method by which the chart reaches the cluster: ``Delivery.flux(...)``, ``Delivery.argo_cd(...)``,
                ``Delivery.helm(...)`` or ``Delivery.values()``.
            platform: Platform of the cluster. It decides whether the operator installs the driver and the toolkit, runs
                the MIG manager and uses CDI, and in which folder the validator looks for the driver.
            version: Release of the operator and its chart, from ``"25.3.0"`` to ``"26.7.0"``. The default is the newest
                one. Talos 1.13 and later need 26.3.1 or later.
            namespace: Name or object of the operator's namespace. Its Pod Security level must be ``privileged``,
                because the operands mount host paths.
            release_name: Name of the Helm release and of the values file.
            bridge: ``ValidationBridge`` of the cluster. The driver, toolkit and CDI of the operator are then off on all
                platforms. With the strategy ``stage``, the validator reads the driver files that the bridge copies.
            tolerations: Tolerations of the operands and of the worker of Node Feature Discovery, besides the toleration
                for the taint ``nvidia.com/gpu``.
            config: Configuration of the device plugin. With several configurations from ``Configs.managed(...)`` or
                ``Configs.external(...)``, the node label ``nvidia.com/device-plugin.config`` selects one of them.
            sharing: Sharing of GPUs, in place of ``config=PluginConfig(sharing=...)``.
            mig_strategy: MIG strategy: ``none``, ``single`` (the default of the chart) or ``mixed``. With
                ``Configs.external(...)``, this keyword overrides the strategy in the ConfigMap. With any other
                ``config``, set the strategy in ``config`` instead.
            device_list_strategy: Value of DEVICE_LIST_STRATEGY for the device plugin. None: the operator decides. It
                uses ``envvar`` without CDI and ``cdi-annotations,cdi-cri`` with CDI.
            cdi: Whether pods receive devices by CDI. None: False before release 25.10.0, with ``bridge``, and on
                platforms that do not support CDI, otherwise True.
            driver: Whether the operator installs the driver. Do not set True on Talos.
            toolkit: Whether the operator installs the container toolkit. Do not set True on Talos.
            mig_manager: Whether the operator partitions GPUs by the label ``nvidia.com/mig.config``. Off on Talos.
            gpu_feature_discovery: Whether the operator labels nodes with the product, memory and sharing of their GPUs.
            node_feature_discovery: Whether the operator installs Node Feature Discovery. False if the cluster already
                has one, which must then label each GPU node with ``feature.node.kubernetes.io/pci-10de.present``. From
                release 26.3 on, the operator also needs the labels ``.../system-os_release.ID`` and
                ``.../system-os_release.VERSION_ID``. Without these labels, the operator does nothing.
            dcgm_exporter: Whether the operator runs the DCGM exporter. False if the app has its own ``DcgmExporter``.
            service_monitor: Whether the DCGM exporter of the operator gets a ServiceMonitor.
            values: Further Helm values, with the keys of the chart's values file. For an unknown key, the error message
                contains the most similar key of the chart.

        Raises:
            GpuConstructsError: A release that does not run on the platform, a value that is not allowed, values that
                contradict each other, or a key that the chart does not have.
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
            release,
            configs=configs,
            of_text=of_text,
            namespace=name,
            further_namespaces=namespaces_of_others(made_by, name),
            has_bridge=bridge is not None,
        )
        for child, manifest in manifests.items():
            # The objects of a delivery contain their namespace.
            Manifest(self, child, manifest, is_cluster_scoped="namespace" not in manifest["metadata"])

    @classmethod
    @short_errors
    def from_helm_values(
        cls,
        scope: Construct,
        id: str,
        values: Mapping[str, Any],
        *,
        release_name: str,
        namespace: str,
        version: str | versions.Unverified = versions.DEFAULT_GPU_OPERATOR,
        platform: Platform = Kubernetes(),  # noqa: B008
        delivery: _Delivery | None = None,
        strict: bool = True,
    ) -> GpuOperator:
        """Create the construct from the values of the Helm chart of the operator.

        The Helm chart gets the same values, without the keys that it ignores. Each ignored key causes a warning.

        Args:
            scope: Chart, or construct in a chart.
            id: ID of the construct.
            values: Content of the values file, as Python data. It can omit the defaults of the Helm chart.
            release_name: Name of the Helm release.
            namespace: Namespace of the Helm release.
            version: Release of the operator and its chart.
            platform: Platform of the cluster, which values cannot express. The default, plain Kubernetes, adds nothing.
            delivery: Method by which the chart reaches the cluster. None: ``Delivery.values()``, which only writes the
                values.
            strict: Whether to reject misspelled keys, and values that the chart, the API server or the operator would
                reject. With False, the construct drops such keys with a warning.

        Raises:
            GpuConstructsError: The values have problems, which one message lists, or a keyword of the construct is not
                valid.
        """
        from gpu_constructs.operator.chart_values import chart_values

        release = {"release_name": release_name, "namespace": namespace, "strict": strict}
        make = partial(cls, delivery=Delivery.values() if delivery is None else delivery)
        return from_values(make, chart_values, scope, id, values, version=version, platform=platform, **release)

    @property
    def values(self) -> dict[str, Any]:
        """Copy of the Helm values that the chart gets. They do not include the defaults of the chart."""
        return copy.deepcopy(self._values)

    @property
    def api_object(self) -> cdk8s.ApiObject:
        """The HelmRelease, Application or ClusterPolicy of the operator, for ``add_json_patch``."""
        if self.node.try_find_child("Default") is None:
            raise GpuConstructsError(
                "api_object needs a delivery that emits a HelmRelease, an Application or a ClusterPolicy, but this "
                "delivery emits no such object. Use Delivery.flux(), Delivery.argo_cd() or Delivery.helm(...) with a "
                "ClusterPolicy. To change the Helm values, pass values=",
                path=self.node.path,
            )
        return cdk8s.ApiObject.of(self)

    def side_files(self) -> list[SideFile]:
        """Return the values file, for review and for ``helm install -f``.

        The file contains all Helm values, after the JSON patches of the HelmRelease or Application.
        """
        return [SideFile(folder="helm-values", stem=self.release_name, text=yaml_text(_delivered(self)))]


def _delivered(operator: GpuOperator) -> object:
    main = operator.node.try_find_child("Default")
    path = _VALUES_IN.get((main.api_group, main.kind)) if isinstance(main, Manifest) else None
    return plain_data.at(main.to_json(), path, {}) if isinstance(main, Manifest) and path else operator.values


def _made(delivery: object) -> Made:
    if not isinstance(delivery, Made):
        got = "the class itself" if delivery is Delivery else repr(delivery)
        raise GpuConstructsError(
            "delivery must come from Delivery.flux(), Delivery.argo_cd(), Delivery.helm(chart=...) or "
            f"Delivery.values(), got {got}. Use one of them"
        )
    return delivery


def _own(values: Mapping[str, Any] | None, release: versions.GpuOperatorRelease) -> dict[str, Any]:
    own: dict[str, Any] = plain_data.plain("values", values or {}, may_be_none=True)
    if own:
        credentials.refuse_in_values(own, "use a Helm value that names a Secret, such as driver.secretEnv")
        # The import is here, because only apps with such values need the table of keys.
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
    """Return the Helm values for the chart: those of the platform, of the keywords and of the user, merged and checked.

    Warn about values that are probably a mistake.

    Args:
        where: Construct path, for messages.
        delivery: Method by which the chart reaches the cluster.
        platform: Platform of the cluster.
        release: Release of the operator.
        bridge: ``ValidationBridge`` of the cluster; None if it has none.
        own: Helm values that the user passes as ``values``.
        stated: Helm values that result from keywords.
        keywords: Keyword of ``GpuOperator`` that sets a Helm key, by dotted key.
    """
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
    """Return the objects that install the operator, by construct ID.

    The ID of the HelmRelease, the Application or the ClusterPolicy is ``Default``.

    Args:
        id: Construct ID of the operator.
        delivery: Method by which the chart reaches the cluster, for example Flux.
        release_name: Name of the Helm release.
        namespace: Namespace of the Helm release.
        operator: Release of the GPU Operator.
        told: Helm values of the release: those of the platform, of the keywords, and of the user.
        platform: Platform of the cluster.
    """
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
