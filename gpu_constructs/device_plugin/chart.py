"""The device plugin with everything it needs, as one chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

import cdk8s
from constructs import Construct

from gpu_constructs.catalog import versions
from gpu_constructs.catalog.platforms import (
    DEFAULT_PLATFORM,
    DeviceDiscoveryStrategy,
    DeviceListStrategy,
    Kubernetes,
    Platform,
)
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.cluster.namespace import DEFAULT_NAMESPACE, GpuNamespace, component_namespace
from gpu_constructs.cluster.runtime_class import NvidiaRuntimeClass, runtime_class_name
from gpu_constructs.device_plugin.agent import APP, Installation
from gpu_constructs.device_plugin.chart_values import chart_options
from gpu_constructs.device_plugin.config import MigStrategy, PluginConfig
from gpu_constructs.device_plugin.configs import Configs
from gpu_constructs.device_plugin.installation import (
    check,
    chosen,
    configs_of,
    defaults_of,
    discovered_by,
    manifests_of,
    provided,
)
from gpu_constructs.device_plugin.manifests import Manifests
from gpu_constructs.device_plugin.options import DevicePlugin, GpuFeatureDiscovery, MpsControlDaemon
from gpu_constructs.errors import GpuConstructsError, short_errors
from gpu_constructs.feature_discovery.node_feature_discovery import NodeFeatureDiscovery
from gpu_constructs.kube import kinds
from gpu_constructs.kube.pod_specs import pod_specs
from gpu_constructs.kube.pods import AgentOptions
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.tree.construct import GpuChart, checked, from_values
from gpu_constructs.tree.manifest import Manifest

_KINDS: Mapping[Any, tuple[str, str, str]] = {
    GpuNamespace: ("", "Namespace", ""),
    NvidiaRuntimeClass: ("node.k8s.io", "RuntimeClass", ""),
}
Surroundings = dict[str, tuple[Any, str]]


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
        allow_default_namespace: bool = False,
        **pods: Unpack[AgentOptions],
    ) -> None:
        """Make the chart.

        The options of pods are those of every GPU pod of the chart. By default the pods have the priority class
        ``system-node-critical``, as in NVIDIA's chart, since no GPU pod starts without the plugin. They request 10m
        CPU and 64Mi and have a limit of 512Mi and no CPU limit, which would only delay allocations; the MPS control
        daemon has no limit, since with it every container it serves would die. They tolerate
        ``CriticalAddonsOnly`` too, and run on the nodes that Node Feature Discovery found; an empty ``affinity``
        takes every node, and several configurations add their own condition to it. ``tolerations`` also reach Node
        Feature Discovery, ``node_selector`` does not. For the name of a ``runtime_class``, or the platform's, the
        chart makes the RuntimeClass; a given ``NvidiaRuntimeClass`` it uses. ``update_strategy`` must not surge.

        Args:
            scope: The cdk8s App.
            id: Chart id: the file's name in dist/.
            namespace: A name, for which the chart makes a privileged Namespace (but for ``kube-system``,
                which exists), or a ``GpuNamespace`` or cdk8s-plus Namespace that it uses as it is.
            platform: ``Talos("1.12")`` or ``Kubernetes()``; decides every default below that says so.
            version: Release of the plugin, ``"0.18.2"``, ``"0.19.3"`` or ``"0.20.0"``; it brings the matching
                releases of GPU and Node Feature Discovery. The newest by default.
            name: Prefix of the names of all objects.
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
                ``nvml``, since ``auto`` probes host paths that do not exist there.
            fail_on_init_error: False keeps the pod quietly running on a node without a usable GPU. None
                leaves the plugin's default, True.
            device_plugin: Whether to install the plugin, or options of its pods alone.
            gpu_feature_discovery: Whether to label nodes with product, memory and sharing of their GPUs, or
                options of its pods alone. It publishes through Node Feature Discovery.
            node_feature_discovery: Whether to install Node Feature Discovery, or its options. ``"external"`` says
                that the cluster runs one, whose labels are then taken in either form. With False the plugin
                runs on nodes with a Talos driver extension, on plain Kubernetes on every node.
            mps_control_daemon: Options of the pods of the MPS control daemon, which exist if a configuration
                shares by MPS.
            allow_default_namespace: Whether to take the namespace ``default``, whose Pod Security level is the
                cluster's to set.

        Raises:
            GpuConstructsError: A value above is not allowed, alone or together with others.
        """
        lives_in = component_namespace(namespace, allow_default=allow_default_namespace)
        runtime_class = pods.get("runtime_class")
        shorthand = {
            "sharing": sharing,
            "mig_strategy": mig_strategy,
            "device_list_strategy": device_list_strategy,
            "device_discovery_strategy": device_discovery_strategy,
            "fail_on_init_error": fail_on_init_error,
        }
        daemon = mps_control_daemon or MpsControlDaemon()
        given = Installation(
            id=id,
            name=name,
            instance=instance or id,
            namespace=lives_in,
            platform=platform,
            release=versions.release_of(versions.DEVICE_PLUGIN, version, "the device plugin"),
            configs=configs_of(config, shorthand),
            defaults=defaults_of(shorthand, platform, daemon.root),
            plugin=chosen(device_plugin, DevicePlugin),
            labeler=chosen(gpu_feature_discovery, GpuFeatureDiscovery),
            daemon=daemon,
            discovery=chosen(node_feature_discovery, NodeFeatureDiscovery),
            discovered_by=discovered_by(node_feature_discovery),
            runtime_class=runtime_class_name(runtime_class, platform),
            pods={"priority_class_name": "system-node-critical", **pods},
        )
        check(given)
        manifests = manifests_of(given)
        surroundings = _surroundings(namespace, runtime_class, given, manifests)
        super().__init__(scope, id, namespace=lives_in)
        self.provides = provided(given, manifests, [(*_KINDS[make], made) for make, made in surroundings.values()])
        for child, (make, made) in surroundings.items():
            make(self, child, name=made)
        self._main = _emitted(self, manifests)

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
        release = {"release_name": release_name, "namespace": namespace, "strict": strict}
        return from_values(cls, chart_options, scope, id, values, version=version, platform=platform, **release)

    @property
    def api_object(self) -> cdk8s.ApiObject:
        """The main object this chart emits: the place for ``add_json_patch``."""
        if self._main is not None:
            return self._main
        for construct in self.node.find_all():
            if isinstance(construct, cdk8s.ApiObject):
                return construct
        raise GpuConstructsError("this chart makes no object", path=self.node.path)


def _surroundings(namespace: object, runtime_class: object, given: Installation, manifests: Manifests) -> Surroundings:
    """Return what the chart makes beside the manifests: the class and the name by the id of the construct."""
    of_discovery = None if given.discovery is None else given.discovery.namespace
    other = None if of_discovery == given.namespace else of_discovery
    named = {"namespace": namespace, "node-feature-discovery-namespace": other}
    made: Surroundings = {
        id: (GpuNamespace, name)
        for id, name in named.items()
        if isinstance(name, str) and name not in kinds.NAMESPACES_OF_EVERY_CLUSTER
    }
    is_ours = runtime_class is None or isinstance(runtime_class, str)
    specs = (spec for manifest in manifests.values() for spec in pod_specs(manifest))
    if is_ours and given.runtime_class and any(spec.get("runtimeClassName") for spec in specs):
        made["runtime-class"] = NvidiaRuntimeClass, given.runtime_class
    return made


def _emitted(chart: Construct, manifests: Manifests) -> Manifest | None:
    """Make the objects, and return the main one."""
    scopes: dict[str, Construct] = {"": chart}
    made: dict[str, Manifest] = {}
    for path, manifest in manifests.items():
        owner, _, child = path.rpartition("/")
        if owner not in scopes:
            scopes[owner] = Construct(chart, owner)
        made[path] = Manifest(scopes[owner], child, manifest)
    return made.get("Default") or made.get("gpu-feature-discovery/daemonset")
