"""`DevicePluginChart`: a cdk8s chart with the NVIDIA device plugin and the components that it needs."""

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
    """A cdk8s chart that makes the GPUs of a cluster schedulable, with the device plugin of NVIDIA.

    Emits these objects into one manifest file:

    - the Namespace, and the RuntimeClass if the pods need one, unless you pass existing objects.
    - a ConfigMap ``nvidia-device-plugin-config`` and a DaemonSet ``nvidia-device-plugin``. With ``Configs.named``, each
      configuration has its own ConfigMap and DaemonSet.
    - for GPU Feature Discovery, RBAC objects and a DaemonSet ``nvidia-device-plugin-gpu-feature-discovery``. With
      ``Configs.named``, each configuration has its own DaemonSet.
    - the DaemonSet ``nvidia-device-plugin-mps-control-daemon``, if a configuration shares GPUs by MPS.
    - for Node Feature Discovery, its CRDs, master, garbage collector and worker. Node Feature Discovery
      publishes the node label ``nvidia.com/gpu.present``.

    Attributes:
        provides: Node labels and GPU resources that the components publish. ``synth`` uses them to check workloads.
        api_object: DaemonSet of the device plugin, for ``add_json_patch``.

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

        The chart also has keywords for the options of all pods of the device plugin, GPU Feature Discovery and the MPS
        control daemon. For some of these keywords, special rules apply:

        - ``priority_class_name`` is ``system-node-critical`` by default, as in the Helm chart of NVIDIA, because no GPU
          pod starts without the device plugin.
        - ``resources`` by default request 10m CPU and 64Mi of memory, with a memory limit of 512Mi. The MPS control
          daemon has no memory limit by default, because the GPU pods that use MPS end if the daemon ends.
        - ``tolerations`` also apply to Node Feature Discovery, but ``node_selector`` does not. The pods always tolerate
          ``CriticalAddonsOnly``.
        - ``affinity`` by default selects the nodes on which Node Feature Discovery found a GPU. An empty affinity
          selects all nodes. With several configurations, each DaemonSet also selects nodes by the label of its
          configuration.
        - ``runtime_class``: with an ``NvidiaRuntimeClass``, the chart creates no RuntimeClass. With a name, the chart
          creates a RuntimeClass of this name. By default, it creates the RuntimeClass that the platform needs, if any.
        - ``update_strategy`` must not set ``max_surge``.

        Args:
            scope: The cdk8s App.
            id: ID of the chart, and name of its manifest file in ``dist/``.
            namespace: Name of a namespace that the chart creates with the Pod Security level ``privileged``, or an
                existing ``GpuNamespace`` or cdk8s-plus Namespace. The chart does not create ``kube-system``, which
                every cluster has.
            platform: Platform of the cluster, for example ``Talos("1.12")`` or ``Kubernetes()``. It determines
                default values, such as that of ``device_discovery_strategy``.
            version: Release of the device plugin, from ``"0.17.0"`` to ``"0.20.0"``. It determines the releases of GPU
                Feature Discovery and Node Feature Discovery. The default is the newest release.
            name: Prefix of the names of all objects.
            instance: Value of the label ``app.kubernetes.io/instance``. None: the ID of the chart.
            config: Full configuration of the device plugin, or several configurations as ``Configs.named(...)``. The
                node label ``nvidia.com/device-plugin.config`` selects one of several configurations. You cannot combine
                ``config`` with the keywords from ``sharing`` to ``fail_on_init_error``.
            sharing: Sharing of GPUs. None: ``Sharing.none()``.
            mig_strategy: MIG strategy: ``none``, ``single`` or ``mixed``. None: ``none``. With ``single`` and
                ``mixed``, the pods run privileged or with the capability SYS_ADMIN, which they need to watch MIG
                devices.
            device_list_strategy: Method by which the device plugin passes the allocated devices to the container
                runtime: ``envvar``, ``volume-mounts``, ``cdi-annotations``, ``cdi-cri``, or a list of these strategies.
                None: ``envvar``.
            device_discovery_strategy: Method by which the device plugin finds GPUs: ``auto``, ``nvml`` or ``tegra``.
                None: the default of the platform. On Talos, this is ``nvml``, because ``auto`` searches host paths that
                do not exist on Talos.
            fail_on_init_error: Whether a pod fails on a node without a usable GPU. None: True, the default of the
                device plugin. If False, the pod keeps running but advertises no GPU.
            device_plugin: Whether to install the device plugin. To also set options of its pods, pass a
                ``DevicePlugin``.
            gpu_feature_discovery: Whether to install GPU Feature Discovery, which labels nodes with the product, memory
                and sharing of their GPUs. To also set options of its pods, pass a ``GpuFeatureDiscovery``. GPU
                Feature Discovery needs Node Feature Discovery.
            node_feature_discovery: Whether to install Node Feature Discovery. To also set its options, pass a
                ``NodeFeatureDiscovery``. With ``"external"``, another installation in the cluster publishes the node
                labels. With False, the device plugin runs on Talos nodes with an NVIDIA driver extension, and on all
                nodes of plain Kubernetes.
            mps_control_daemon: Options for the pods of the MPS control daemon. These pods exist only if a configuration
                shares GPUs by MPS.
            allow_default_namespace: Whether to allow the namespace ``default``. The library does not control its Pod
                Security level, which must be ``privileged``.

        Raises:
            GpuConstructsError: If a value is not allowed, or two values contradict each other.
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
        """Create the cdk8s chart from the values of NVIDIA's Helm chart ``nvidia-device-plugin``.

        Emits the objects of the Helm chart with the same names. The page "Coming from the Helm chart" of the
        documentation lists the exceptions.

        Args:
            scope: The cdk8s App.
            id: ID of the chart, and name of its manifest file in ``dist/``.
            values: Content of the Helm values file, as a dict. It can omit the defaults of the Helm chart.
            release_name: Name of the Helm release, from which Helm derives names and labels.
            namespace: Namespace of the Helm release.
            version: Version of the Helm chart.
            platform: Platform of the cluster, which Helm values do not contain. With the default, ``Kubernetes()``,
                the library adapts no object to a platform.
            strict: Whether to reject misspelled keys, and values that the Helm chart or its components would reject. If
                False, the library ignores a key with such a problem, and warns. An unknown key that resembles no key of
                the Helm chart only causes a warning, even if ``strict`` is True.

        Raises:
            GpuConstructsError: If the values have problems, which the message lists together, or if a keyword of
                ``DevicePluginChart`` rejects a value.
        """
        release = {"release_name": release_name, "namespace": namespace, "strict": strict}
        return from_values(cls, chart_options, scope, id, values, version=version, platform=platform, **release)

    @property
    def api_object(self) -> cdk8s.ApiObject:
        """DaemonSet of the device plugin, for ``add_json_patch``.

        Without the device plugin, this is the DaemonSet of GPU Feature Discovery. If the chart has neither DaemonSet,
        this is the first object of the chart.
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
        namespace: Value of the keyword ``namespace``. The chart creates a Namespace only if this value is a name.
        runtime_class: Value of the keyword ``runtime_class``. The chart creates no RuntimeClass if this value is an
            object.
        given: Options of the ``DevicePluginChart``.
        manifests: Other objects of the chart, such as DaemonSets. The chart creates a RuntimeClass only if one of these
            objects names it in a pod spec.
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
    """Emit the objects in ``manifests``, and return the DaemonSet of the device plugin.

    Without the device plugin, return the DaemonSet of GPU Feature Discovery. If the chart has neither DaemonSet, return
    None.
    """
    scopes: dict[str, Construct] = {"": chart}
    made: dict[str, Manifest] = {}
    for path, manifest in manifests.items():
        owner, _, child = path.rpartition("/")
        if owner not in scopes:
            scopes[owner] = Construct(chart, owner)
        made[path] = Manifest(scopes[owner], child, manifest)
    return made.get("Default") or made.get("gpu-feature-discovery/daemonset")
