"""A chart with the device plugin and the components that it needs."""

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
from gpu_constructs.tree.construct import GpuChart, ReadsHelmValues, checked, from_values
from gpu_constructs.tree.manifest import Manifest

_KINDS: Mapping[Any, tuple[str, str, str]] = {
    GpuNamespace: ("", "Namespace", ""),
    NvidiaRuntimeClass: ("node.k8s.io", "RuntimeClass", ""),
}
Surroundings = dict[str, tuple[Any, str]]


class DevicePluginChart(ReadsHelmValues, GpuChart):
    """A chart that makes the GPUs of a cluster schedulable, with the device plugin of NVIDIA.

    Emits these objects into one file:

    - the Namespace and the RuntimeClass, if you pass their names.
    - a ConfigMap ``nvidia-device-plugin-config`` and a DaemonSet ``nvidia-device-plugin``. With ``Configs.named``, each
      configuration has its own pair.
    - for GPU Feature Discovery, RBAC objects and a DaemonSet ``nvidia-device-plugin-gpu-feature-discovery``. With
      ``Configs.named``, each configuration has its own DaemonSet.
    - the DaemonSet ``nvidia-device-plugin-mps-control-daemon``, if a configuration shares GPUs by MPS.
    - for Node Feature Discovery, its CRDs, master, garbage collector and worker. It publishes the node label
      ``nvidia.com/gpu.present``.

    Attributes:
        provides: Node labels and GPU resources of the chart. ``synth`` compares them with the rest of the app.
        api_object: DaemonSet of the plugin, otherwise that of GPU Feature Discovery, otherwise the first object.

    Source:
        NVIDIA/k8s-device-plugin@v0.17.0 to @v0.20.0, deployments/helm/nvidia-device-plugin
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
        """Create the objects of the chart.

        All keyword arguments that the list below does not contain are options for the pods of GPU programs in the
        chart. The default of ``priority_class_name`` is ``system-node-critical``, as in the chart of NVIDIA, because no
        GPU pod starts without the plugin. The default of ``resources`` is a request of 10m CPU and 64Mi, and a limit of
        512Mi, without a CPU limit, which would only delay allocations. The MPS control daemon has no limit, because all
        its clients end if it ends.

        The pods also tolerate ``CriticalAddonsOnly``. Their default ``affinity`` selects the nodes on which Node
        Feature Discovery found a GPU. An empty affinity selects all nodes. If there are several configurations, each
        adds a condition on its node label to the affinity. ``tolerations`` also apply to Node Feature Discovery, and
        ``node_selector`` does not. If ``runtime_class`` is a name or the platform has one, the chart creates the
        RuntimeClass. If you pass an ``NvidiaRuntimeClass``, the chart creates no other one. ``update_strategy`` must
        not set ``max_surge``.

        Args:
            scope: The cdk8s App.
            id: ID of the chart, and name of its file in ``dist/``.
            namespace: Name of a namespace that the chart creates with the Pod Security level ``privileged``, or a
                ``GpuNamespace`` or cdk8s-plus Namespace. The chart does not create ``kube-system``, which exists.
            platform: Platform of the cluster, ``Talos("1.12")`` or ``Kubernetes()``. It decides the defaults below.
            version: Release of the plugin, from ``"0.17.0"`` to ``"0.20.0"``. It decides the releases of GPU Feature
                Discovery and Node Feature Discovery. The default is the newest one.
            name: Prefix of the names of all objects.
            instance: Value of the label ``app.kubernetes.io/instance``. None: the ID of the chart.
            config: Full configuration, or ``Configs.named(...)`` for several, which the node label
                ``nvidia.com/device-plugin.config`` selects. Do not set it together with one of the next five keywords.
            sharing: Sharing of GPUs. None: ``Sharing.none()``.
            mig_strategy: MIG strategy: ``none``, ``single`` or ``mixed``. None: ``none``. With ``single`` and
                ``mixed``, the pods run privileged or with SYS_ADMIN, which the container toolkit of the platform needs
                to watch MIG devices.
            device_list_strategy: Method by which the container runtime receives the allocated devices: ``envvar``,
                ``volume-mounts``, ``cdi-annotations``, ``cdi-cri``, or a list of them. None: the platform decides. On
                Talos it is ``envvar``, and elsewhere the default of the plugin, which is the same.
            device_discovery_strategy: ``auto``, ``nvml`` or ``tegra``. None: the platform decides. On Talos it is
                ``nvml``, because ``auto`` searches host paths that do not exist there.
            fail_on_init_error: Whether a pod fails on a node without a usable GPU. None: True, the default of the
                plugin. With False, the pod runs and does nothing.
            device_plugin: Whether to install the plugin, or options of its pods.
            gpu_feature_discovery: Whether to label nodes with the product, memory and sharing of their GPUs, or options
                of the pods that do. It needs Node Feature Discovery.
            node_feature_discovery: Whether to install Node Feature Discovery, or its options. ``"external"``: another
                installation of the cluster publishes the labels. With False, the plugin runs on Talos nodes with a
                driver extension, and on all nodes of plain Kubernetes.
            mps_control_daemon: Options of the pods of the MPS control daemon. They exist only if a configuration shares
                GPUs by MPS.
            allow_default_namespace: Whether to allow the namespace ``default``, whose Pod Security level the cluster
                decides.

        Raises:
            GpuConstructsError: A value that is not allowed, or values that contradict each other.
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
        """Create the chart from the values of the Helm chart of NVIDIA.

        Emits the same objects with the same names. The page "Coming from the Helm chart" lists the differences.

        Args:
            scope: The cdk8s App.
            id: ID of the chart, and name of its file in ``dist/``.
            values: Content of the values file, as Python. It can omit the defaults of the Helm chart.
            release_name: Name of the Helm release, from which Helm derives names and labels.
            namespace: Namespace of the Helm release.
            version: Version of the Helm chart.
            platform: Platform of the cluster, which values cannot express. The default, plain Kubernetes, adds nothing.
            strict: Whether to reject misspelled keys, and values that the Helm chart or its programs would reject. With
                False, the chart drops such keys with a warning. It always drops keys that the Helm chart ignores, with
                a warning.

        Raises:
            GpuConstructsError: All problems of the values at once, or an error of a keyword of the chart.
        """
        release = {"release_name": release_name, "namespace": namespace, "strict": strict}
        return from_values(cls, chart_options, scope, id, values, version=version, platform=platform, **release)

    @property
    def api_object(self) -> cdk8s.ApiObject:
        """DaemonSet of the device plugin, for ``add_json_patch``.

        If the chart has no plugin, the DaemonSet of GPU Feature Discovery, otherwise the first object.
        """
        if self._main is not None:
            return self._main
        for construct in self.node.find_all():
            if isinstance(construct, cdk8s.ApiObject):
                return construct
        raise GpuConstructsError("this chart emits no object", path=self.node.path)


def _surroundings(namespace: object, runtime_class: object, given: Installation, manifests: Manifests) -> Surroundings:
    """Return the Namespaces and the RuntimeClass that the chart creates, as a dict by construct ID.

    Each value is a pair: the class of the construct, and the name of the object.

    Args:
        namespace: Value of the keyword ``namespace``. The chart creates a Namespace only if this is a name.
        runtime_class: Value of the keyword ``runtime_class``.
        given: Options of the installation.
        manifests: Objects of the installation, whose pods can need the RuntimeClass.
    """
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
    """Emit the objects, and return the DaemonSet of the device plugin.

    Return the DaemonSet of GPU Feature Discovery if the chart has no device plugin, and None if it has neither.
    """
    scopes: dict[str, Construct] = {"": chart}
    made: dict[str, Manifest] = {}
    for path, manifest in manifests.items():
        owner, _, child = path.rpartition("/")
        if owner not in scopes:
            scopes[owner] = Construct(chart, owner)
        made[path] = Manifest(scopes[owner], child, manifest)
    return made.get("Default") or made.get("gpu-feature-discovery/daemonset")
