"""The device plugin with everything it needs, as one chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import cdk8s
from constructs import Construct

from gpu_constructs import _fields, _kinds, _rbac, _references, placement, versions
from gpu_constructs._construct import GpuChart, checked
from gpu_constructs._container_security import POD_SECURITY_CONTEXT
from gpu_constructs._labels import object_labels, selector_labels
from gpu_constructs._manifest import Manifest
from gpu_constructs._references import NamedObject
from gpu_constructs._resources import Resources, container_resources
from gpu_constructs.device_plugin.agent import APP, NODE_RULES, GpuAgent
from gpu_constructs.device_plugin.config import Flags, MigStrategy, PluginConfig, device_list_strategies
from gpu_constructs.device_plugin.configs import NODE_LABEL, Configs
from gpu_constructs.device_plugin.consistency import (
    advertised_resources,
    check,
    check_names,
    gpu_offers,
    plugin_configs,
    plugin_pods,
)
from gpu_constructs.device_plugin.daemonset import DevicePlugin, device_plugin_daemonset
from gpu_constructs.device_plugin.delivery import CHECKSUM, Defaults, Delivery, deliveries
from gpu_constructs.device_plugin.mps_control_daemon import MpsControlDaemon, mps_control_daemon
from gpu_constructs.errors import GpuConstructsError, short_errors, warn
from gpu_constructs.feature_discovery import gfd, nfd
from gpu_constructs.feature_discovery.gfd import GpuFeatureDiscovery
from gpu_constructs.feature_discovery.node_feature_discovery import NodeFeatureDiscovery
from gpu_constructs.namespace import DEFAULT_NAMESPACE, GpuNamespace, component_namespace
from gpu_constructs.placement import Toleration
from gpu_constructs.platforms import (
    DEFAULT_PLATFORM,
    GPU_PRESENT,
    DeviceDiscoveryStrategy,
    DeviceListStrategy,
    Kubernetes,
    Platform,
)
from gpu_constructs.pod_specs import pod_specs
from gpu_constructs.provided import Component, Provided, placement_of
from gpu_constructs.runtime_class import NvidiaRuntimeClass, runtime_class_name
from gpu_constructs.sharing import Sharing
from gpu_constructs.update_strategy import UpdateStrategy

_HOMES = {"device_list_strategy": "flags.plugin.device_list_strategy"}


class DevicePluginChart(GpuChart):
    """Makes the GPUs of a cluster schedulable: NVIDIA's device plugin, standalone, with node discovery.

    Emits, into one file: Namespace and RuntimeClass when given by name; the NFD custom resource definitions;
    a ConfigMap ``nvidia-device-plugin-config`` and a DaemonSet ``nvidia-device-plugin``, for several
    configurations one pair each; with GPU Feature Discovery as many DaemonSets
    ``nvidia-device-plugin-gpu-feature-discovery`` and their rights; where a configuration shares by MPS the
    DaemonSet ``nvidia-device-plugin-mps-control-daemon``; with Node Feature Discovery its master, garbage
    collector and worker, which also publish the node label ``nvidia.com/gpu.present``.

    Attributes:
        provides: The node labels it publishes and the GPU resources it advertises, checked by ``synth``.
        api_object: The plugin's DaemonSet; that of GPU Feature Discovery where there is no plugin; else
            the first object.

    Source:
        NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0, deployments/helm/nvidia-device-plugin
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        namespace: str | NamedObject = DEFAULT_NAMESPACE,
        platform: Platform = DEFAULT_PLATFORM,
        version: str | versions.Unverified = versions.DEFAULT_DEVICE_PLUGIN,
        name: str = APP,
        instance: str | None = None,
        config: PluginConfig | Configs | None = None,
        sharing: Sharing | None = None,
        mig_strategy: MigStrategy | None = None,
        device_list_strategy: DeviceListStrategy | Sequence[DeviceListStrategy] | None = None,
        device_discovery_strategy: DeviceDiscoveryStrategy | None = None,
        fail_on_init_error: bool | None = None,
        device_plugin: bool | DevicePlugin = True,
        gpu_feature_discovery: bool | GpuFeatureDiscovery = True,
        node_feature_discovery: bool | Literal["external"] | NodeFeatureDiscovery = True,
        mps_control_daemon: MpsControlDaemon | None = None,
        runtime_class: str | NamedObject | None = None,
        tolerations: Sequence[Toleration] = (),
        node_selector: Mapping[str, str] | None = None,
        affinity: Mapping[str, Any] | None = None,
        image: str | None = None,
        image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent",
        image_pull_secrets: Sequence[str | NamedObject] = (),
        resources: Resources | None = None,
        priority_class_name: str | None = "system-node-critical",
        update_strategy: UpdateStrategy | None = None,
        pod_annotations: Mapping[str, str] | None = None,
        pod_security_context: Mapping[str, Any] | None = None,
        allow_default_namespace: bool = False,
    ) -> None:
        """Make the chart.

        Args:
            scope: The cdk8s App.
            id: Chart id: the file's name in dist/.
            namespace: A name, for which the chart makes a privileged Namespace (but for ``kube-system``,
                which is there), or a ``GpuNamespace`` or cdk8s-plus Namespace that it uses as it is.
            platform: ``Talos("1.12")`` or ``Kubernetes()``; decides every default below that says so.
            version: Release of the plugin, ``"0.18.2"``, ``"0.19.3"`` or ``"0.20.0"``; it brings the matching
                releases of GPU and Node Feature Discovery. The newest by default.
            name: In front of the names of all objects.
            instance: The label ``app.kubernetes.io/instance``; the chart's id by default.
            config: The whole configuration file, or ``Configs.named(...)`` for several, chosen by the node
                label ``nvidia.com/device-plugin.config``. Instead of the five keywords that follow.
            sharing: ``Sharing.none()`` by default.
            mig_strategy: ``none`` (the default), ``single`` or ``mixed``; the last two make the pods
                privileged, or give them SYS_ADMIN, as the platform's toolkit needs to watch MIG devices.
            device_list_strategy: How allocated devices are handed to the runtime: one of ``envvar``,
                ``volume-mounts``, ``cdi-annotations``, ``cdi-cri`` or a list of them. None: the platform
                decides; on Talos ``envvar``, elsewhere the plugin's own default, which is the same.
            device_discovery_strategy: ``auto``, ``nvml`` or ``tegra``. None: the platform decides; on Talos
                ``nvml``, since ``auto`` probes host paths that are not there.
            fail_on_init_error: False keeps the pod quietly running on a node without a usable GPU. None
                leaves the plugin's default, True.
            device_plugin: Whether to install the plugin, or what is special about its pods.
            gpu_feature_discovery: Whether to label nodes with product, memory and sharing of their GPUs, or
                what is special about its pods. It publishes through Node Feature Discovery.
            node_feature_discovery: Whether to install Node Feature Discovery, or how. ``"external"`` says
                that the cluster runs one, whose labels are then taken in either form. With False the plugin
                runs on nodes with a Talos driver extension, on plain Kubernetes on every node.
            mps_control_daemon: What is special about the pods of the MPS control daemon, which are there
                where a configuration shares by MPS.
            runtime_class: Name of a RuntimeClass, which the chart then makes, or an ``NvidiaRuntimeClass``
                that it uses. None: the platform decides; on Talos ``nvidia``, elsewhere none.
            tolerations: Taints of the GPU nodes, for all pods of the chart alike, on top of
                ``nvidia.com/gpu`` and ``CriticalAddonsOnly``.
            node_selector: Node labels asked for besides; not of Node Feature Discovery.
            affinity: As Kubernetes writes it, instead of our own, which leads GPU pods to the nodes that
                Node Feature Discovery found; an empty one takes every node. Several configurations add
                their own condition to it.
            image: Another ``repository:tag`` or digest of the plugin's image.
            image_pull_policy: ``IfNotPresent`` by default: the image is pinned.
            image_pull_secrets: Names or objects of Secrets in the namespace, for a registry of your own.
            resources: Of each GPU container; by default requests of 10m CPU and 64Mi, a limit of 512Mi and
                no CPU limit, which would only delay allocations; the MPS control daemon has no limit, since with
                it every container it serves would die.
            priority_class_name: ``system-node-critical`` as in NVIDIA's chart: without the plugin no GPU pod
                starts. None sets none.
            update_strategy: ``UpdateStrategy.rolling_update()`` by default; without surge.
            pod_annotations: Of every GPU pod.
            pod_security_context: On top of the seccomp profile ``RuntimeDefault``.
            allow_default_namespace: Take the namespace ``default``, whose Pod Security level is the
                cluster's to set.

        Raises:
            GpuConstructsError: A value above is not allowed, alone or together with others.
        """
        _fields.label_value("id", id)
        _fields.dns_subdomain("name", name)
        _fields.label_value("instance", instance or id)
        lives_in = component_namespace(namespace, allow_default=allow_default_namespace)
        release = versions.release_of(versions.DEVICE_PLUGIN, version, "the device plugin")
        shorthand = {
            "sharing": sharing,
            "mig_strategy": mig_strategy,
            "device_list_strategy": device_list_strategy,
            "device_discovery_strategy": device_discovery_strategy,
            "fail_on_init_error": fail_on_init_error,
        }
        configs = _configs(config, shorthand)
        plugin = _component(device_plugin, DevicePlugin)
        labeler = _component(gpu_feature_discovery, GpuFeatureDiscovery)
        if plugin is None and labeler is None:
            warn(f"{id}: device_plugin and gpu_feature_discovery are both False: nothing looks at a GPU")
        if labeler is not None and node_feature_discovery is False:
            raise GpuConstructsError(
                "gpu_feature_discovery publishes through Node Feature Discovery, which is False; leave "
                "node_feature_discovery out to install it, pass node_feature_discovery='external' if the cluster runs "
                "one, or pass gpu_feature_discovery=False"
            )
        discovery = _nfd(node_feature_discovery)
        if labeler is not None and discovery is not None and discovery.denies_features_of_others:
            raise GpuConstructsError(
                "node_feature_discovery.master.config.restrictions.denyNodeFeatureLabels must not be True beside "
                "gpu_feature_discovery, whose labels the master would drop without a word; leave it out"
            )
        if plugin is not None:
            plugin.check_release(release)
        settings = Defaults(
            device_list_strategy=platform.device_list_strategy
            if device_list_strategy is None
            else device_list_strategies("device_list_strategy", device_list_strategy),
            device_discovery_strategy=device_discovery_strategy or platform.device_discovery_strategy,
            fail_on_init_error=fail_on_init_error,
            mps_root=(mps_control_daemon or MpsControlDaemon()).root,
        )
        check(
            configs,
            settings,
            id=id,
            release=release,
            platform=platform,
            has_plugin=plugin is not None,
            has_gpu_feature_discovery=labeler is not None,
        )
        served = deliveries(configs, name=name, platform=platform, defaults=settings)
        discovers_tegra = _may_find_tegra(configs, settings)
        runtime = runtime_class_name(runtime_class, platform)
        agent = GpuAgent(
            namespace=lives_in,
            name=name,
            instance=instance or id,
            image=_pinned(image) or release.image,
            image_pull_policy=image_pull_policy,
            image_pull_secrets=[_references.name_of("image_pull_secrets", s, "Secret") for s in image_pull_secrets],
            version=release.version,
            sets_owner_references=release.sets_owner_references,
            runtime_class=runtime,
            affinity=_affinity(affinity, platform, node_feature_discovery, tegra=discovers_tegra),
            node_selector=node_selector or {},
            tolerations=placement.tolerations((placement.CRITICAL_ADDONS, placement.GPU_TAINT), tolerations),
            priority_class_name=priority_class_name,
            pod_annotations=pod_annotations or {},
            pod_security_context=pod_security_context or {},
            update_strategy=update_strategy or UpdateStrategy.rolling_update(),
            resources=resources,
            platform=platform,
        )
        _check_agent(agent)
        manifests = _gpu_manifests(agent, served, plugin, labeler, mps_control_daemon or MpsControlDaemon(), release)
        if discovery is not None:
            manifests |= {
                f"node-feature-discovery/{child}": manifest
                for child, manifest in nfd.node_feature_discovery(
                    discovery,
                    release=release.node_feature_discovery,
                    namespace=lives_in,
                    default_prefix=f"{name}-node-feature-discovery",
                    instance=instance or id,
                    tolerations=placement.tolerations((placement.GPU_TAINT,), tolerations),
                ).items()
            }
        check_names(list(manifests.values()))

        new_namespaces = _new_namespaces(namespace, lives_in, discovery)
        names_it = any(spec.get("runtimeClassName") for m in manifests.values() for spec in pod_specs(m))
        makes_class = names_it and (runtime_class is None or isinstance(runtime_class, str))
        new_class = runtime if makes_class else None
        super().__init__(scope, id, namespace=lives_in)
        self.provides = Provided(
            node_labels=_published_labels(
                is_external=node_feature_discovery == "external", has_labeler=labeler is not None, configs=configs
            ),
            nfd_labels=None if discovery is None else nfd.published_labels(discovery),
            gpu_resources=advertised_resources(configs) if plugin is not None else {},
            gpu_offers=gpu_offers(configs, plugin_pods(configs, manifests), release) if plugin is not None else (),
            objects={"ConfigMap": (f"{lives_in}/{configs.config_map}",)} if configs.config_map else {},
            mig_strategy=configs.flags.mig_strategy if plugin is not None else None,
            platform=platform,
            runs_on=_placements(manifests),
            makes=frozenset(
                (
                    *map(_kinds.identity_of, manifests.values()),
                    *(("", "Namespace", "", name) for name in new_namespaces.values()),
                    *([("node.k8s.io", "RuntimeClass", "", new_class)] if new_class else ()),
                )
            ),
            components=_components(plugin, labeler, discovery),
        )
        for made, name_of_new in new_namespaces.items():
            GpuNamespace(self, made, name=name_of_new)
        if new_class:
            NvidiaRuntimeClass(self, "runtime-class", name=new_class)
        self._main: Manifest | None = None
        scopes: dict[str, Construct] = {"": self}
        for path, manifest in manifests.items():
            owner, _, child = path.rpartition("/")
            if owner not in scopes:
                scopes[owner] = Construct(self, owner)
            made_object = Manifest(scopes[owner], child, manifest)
            if path in ("Default", "gpu-feature-discovery/daemonset"):
                self._main = self._main or made_object

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
        version: str | versions.Unverified = versions.DEFAULT_DEVICE_PLUGIN,
        platform: Platform = Kubernetes(),  # noqa: B008
        strict: bool = True,
    ) -> DevicePluginChart:
        """Make the chart from the values of NVIDIA's Helm chart.

        Emits the same objects under the same names, but for the deviations that the page "Coming from the
        Helm chart" lists.

        Args:
            scope: The cdk8s App.
            id: Chart id: the file's name in dist/.
            values: What the values file says, as Python; the chart's own defaults need not be in it.
            release_name: Of the Helm release; names and labels are made from it as Helm does.
            namespace: Of the Helm release.
            version: Of the chart.
            platform: What the values cannot say; plain Kubernetes by default, which adds nothing.
            strict: Refuse a key that the chart does not read, or whose value it or the programs would refuse
                or ignore. False drops such a key with a warning.

        Raises:
            GpuConstructsError: See ``strict``; and whatever the chart's own keywords raise.
        """
        path = f"{scope.node.path}/{id}".lstrip("/") if isinstance(scope, Construct) else ""
        try:
            options = _options_from_helm(values, release_name, namespace, version, platform, strict=strict)
        except GpuConstructsError as error:
            raise error.at(path) from None
        return cls(scope, id, version=version, platform=platform, **options)

    @property
    def api_object(self) -> cdk8s.ApiObject:
        """The main object this chart emits: the place for ``add_json_patch``."""
        if self._main is not None:
            return self._main
        for construct in self.node.find_all():
            if isinstance(construct, cdk8s.ApiObject):
                return construct
        raise GpuConstructsError("this chart makes no object", path=self.node.path)


def _options_from_helm(
    values: Mapping[str, Any],
    release_name: str,
    namespace: str,
    version: str | versions.Unverified,
    platform: Platform,
    *,
    strict: bool,
) -> dict[str, Any]:
    # The tables of the chart's keys are for those who come from it.
    from gpu_constructs.device_plugin import helm

    for field, got, kind in (
        ("release_name", release_name, str),
        ("namespace", namespace, str),
        ("version", version, str | versions.Unverified),
        ("platform", platform, Platform),
        ("strict", strict, bool),
    ):
        _fields.of_type(field, got, kind)
    _fields.dns_subdomain("release_name", release_name)
    return helm.chart_options(
        values,
        release_name=release_name,
        namespace=namespace,
        release=versions.release_of(versions.DEVICE_PLUGIN, version, "the device plugin"),
        platform=platform,
        behaves_like=version.like if isinstance(version, versions.Unverified) else version,
        strict=strict,
    )


def _configs(given: PluginConfig | Configs | None, shorthand: Mapping[str, Any]) -> Configs:
    if given is None:
        flags = Flags(mig_strategy=shorthand["mig_strategy"] or "none")
        given = PluginConfig(flags=flags, sharing=shorthand["sharing"] or Sharing.none())
    else:
        for keyword, value in shorthand.items():
            if value is not None:
                home = "sharing" if keyword == "sharing" else _HOMES.get(keyword, f"flags.{keyword}")
                raise GpuConstructsError(
                    f"{keyword} must be left out beside config, got {value!r}: a setting has one place; set {home} in "
                    "config"
                )
    return Configs.named({"default": given}, default="default") if isinstance(given, PluginConfig) else given


def _component(given: Any, struct: Any) -> Any:
    if isinstance(given, bool):
        return struct() if given else None
    return given


def _nfd(given: bool | Literal["external"] | NodeFeatureDiscovery) -> NodeFeatureDiscovery | None:
    if isinstance(given, NodeFeatureDiscovery):
        return given
    return NodeFeatureDiscovery() if given is True else None


def _new_namespaces(given: object, lives_in: str, discovery: NodeFeatureDiscovery | None) -> dict[str, str]:
    """Return the names of the Namespaces that the chart makes, by the id of their construct."""
    of_discovery = None if discovery is None or discovery.namespace == lives_in else discovery.namespace
    named = {"namespace": given, "node-feature-discovery-namespace": of_discovery}
    return {
        id: name
        for id, name in named.items()
        if isinstance(name, str) and name not in _kinds.NAMESPACES_OF_EVERY_CLUSTER
    }


def _pinned(image: str | None) -> str | None:
    if image is not None:
        _fields.image("image", image)
    return image


def _check_agent(agent: GpuAgent) -> None:
    container_resources(agent.resources, default={})
    if agent.update_strategy.max_surge not in (None, 0, "0%"):
        raise GpuConstructsError(
            "update_strategy must not surge: two plugins on a node would share one socket, which the old one removes "
            f"when it ends; got max_surge={agent.update_strategy.max_surge!r}; use max_unavailable"
        )
    _fields.labels("node_selector", agent.node_selector)
    if agent.priority_class_name is not None:
        _fields.dns_subdomain("priority_class_name", agent.priority_class_name)
    _fields.labels("pod_annotations", dict.fromkeys(agent.pod_annotations, ""))
    for key in agent.pod_annotations:
        if key.endswith(CHECKSUM):
            raise GpuConstructsError(f"pod_annotations must not hold {key!r}: this library sets it; leave it out")
    placement.check_affinity(agent.affinity or {})
    for key in agent.pod_security_context:
        _fields.one_of("pod_security_context key", key, POD_SECURITY_CONTEXT)


def _gpu_manifests(
    agent: GpuAgent,
    served: Sequence[Delivery],
    plugin: DevicePlugin | None,
    labeler: GpuFeatureDiscovery | None,
    daemon: MpsControlDaemon,
    release: versions.DevicePluginRelease,
) -> dict[str, dict[str, Any]]:
    """Give the objects around the GPUs by construct path."""
    manifests: dict[str, dict[str, Any]] = {}
    selector = selector_labels(name=APP, instance=agent.instance, component="device-plugin")
    metadata = {**agent.metadata(selector, name=agent.name), "labels": object_labels(selector)}
    needs_nodes = served[0].config_manager is not None
    if needs_nodes and plugin is not None:
        manifests |= {**_rbac.service_account(metadata), **_rbac.cluster_role(metadata, NODE_RULES)}
    account = agent.name if needs_nodes else None
    for one in served:
        file = one.manifest(metadata)
        if file is not None and (plugin is not None or labeler is not None):
            manifests[f"config{one.suffix}"] = file
        if plugin is not None:
            child = "Default" if not one.suffix else f"daemonset{one.suffix}"
            manifests[child] = device_plugin_daemonset(agent, one, component=plugin, service_account=account)
        if plugin is not None and "mps" in one.uses:
            manifests[f"mps-control-daemon{one.suffix}"] = mps_control_daemon(
                agent, one, component=daemon, release=release, service_account=account
            )
    if labeler is not None:
        objects = gfd.gpu_feature_discovery(agent, served, component=labeler)
        manifests |= {f"gpu-feature-discovery/{child}": manifest for child, manifest in objects.items()}
    return manifests


def _published_labels(*, is_external: bool, has_labeler: bool, configs: Configs) -> tuple[str, ...]:
    hardware = (nfd.LABELS, GPU_PRESENT) if is_external else ()
    chosen = (NODE_LABEL,) if len(configs.configs) != 1 else ()  # set by hand, as the label's documentation says
    return (*hardware, *(gfd.LABELS if has_labeler else ()), *chosen)


def _components(
    plugin: DevicePlugin | None, labeler: GpuFeatureDiscovery | None, discovery: NodeFeatureDiscovery | None
) -> tuple[Component, ...]:
    installed: Mapping[Component, object] = {
        "device-plugin": plugin,
        "gpu-feature-discovery": labeler,
        "node-feature-discovery": discovery,
    }
    return tuple(component for component, installed_as in installed.items() if installed_as is not None)


def _placements(manifests: Mapping[str, Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Return which nodes take the pods that look at GPUs: all DaemonSets but those of Node Feature Discovery."""
    return tuple(
        placement_of(manifest["spec"]["template"]["spec"])
        for path, manifest in manifests.items()
        if manifest["kind"] == "DaemonSet" and not path.startswith("node-feature-discovery/")
    )


def _may_find_tegra(configs: Configs, settings: Defaults) -> bool:
    found = {c.flags.device_discovery_strategy or settings.device_discovery_strategy for c in plugin_configs(configs)}
    return bool(found - {"nvml"})


def _affinity(
    given: Mapping[str, Any] | None,
    platform: Platform,
    node_feature_discovery: bool | Literal["external"] | NodeFeatureDiscovery,
    *,
    tegra: bool,
) -> Mapping[str, Any] | None:
    if given is not None:
        return given or None
    if node_feature_discovery is not False:
        return placement.gpu_node_affinity(tegra=tegra, foreign=node_feature_discovery == "external")
    if not platform.driver_node_labels:
        return None
    return placement.required_node_affinity([[placement.label_exists(label)] for label in platform.driver_node_labels])
