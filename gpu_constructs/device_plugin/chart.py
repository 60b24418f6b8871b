"""The device plugin with everything it needs, as one chart."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from constructs import Construct

from gpu_constructs import _fields, _kinds, placement, versions
from gpu_constructs._config_map import config_map, sha256, yaml_text
from gpu_constructs._construct import GpuChart, checked
from gpu_constructs._labels import object_labels, selector_labels
from gpu_constructs._manifest import Manifest
from gpu_constructs._resources import Resources, container_resources
from gpu_constructs.device_plugin.agent import GpuAgent
from gpu_constructs.device_plugin.config import MigStrategy, plugin_config
from gpu_constructs.device_plugin.daemonset import device_plugin_daemonset
from gpu_constructs.errors import GpuConstructsError, GpuConstructsWarning
from gpu_constructs.feature_discovery import gfd, nfd
from gpu_constructs.namespace import DEFAULT_NAMESPACE, GpuNamespace, component_namespace
from gpu_constructs.placement import Toleration
from gpu_constructs.platforms import (
    DEFAULT_PLATFORM,
    GPU_PRESENT,
    DeviceDiscoveryStrategy,
    DeviceListStrategy,
    Platform,
)
from gpu_constructs.provided import Provided
from gpu_constructs.runtime_class import NvidiaRuntimeClass, runtime_class_name
from gpu_constructs.sharing import Sharing

NAME = "nvidia-device-plugin"
CONFIG_MAP = f"{NAME}-config"
_RESOURCES: Resources = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}}


class DevicePluginChart(GpuChart):
    """Makes the GPUs of a cluster schedulable: NVIDIA's device plugin, standalone, with node discovery.

    Emits, into one file: Namespace and RuntimeClass when given by name; the NFD custom resource definitions;
    ConfigMap ``nvidia-device-plugin-config``; DaemonSet ``nvidia-device-plugin``; with GPU Feature Discovery
    the DaemonSet ``nvidia-device-plugin-gpu-feature-discovery`` and its rights; with Node Feature Discovery
    its master, garbage collector and worker, which also publish the node label ``nvidia.com/gpu.present``.

    Attributes:
        provides: The node labels it publishes and the GPU resource it advertises, checked by ``synth``.
        api_object: The plugin's DaemonSet.

    Source:
        NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0, deployments/helm/nvidia-device-plugin
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        namespace: object = DEFAULT_NAMESPACE,
        platform: Platform = DEFAULT_PLATFORM,
        version: str | versions.Unverified = versions.DEFAULT_DEVICE_PLUGIN,
        sharing: Sharing = Sharing.none(),  # noqa: B008
        mig_strategy: MigStrategy = "none",
        device_list_strategy: DeviceListStrategy | Sequence[DeviceListStrategy] | None = None,
        device_discovery_strategy: DeviceDiscoveryStrategy | None = None,
        fail_on_init_error: bool | None = None,
        node_feature_discovery: bool = True,
        gpu_feature_discovery: bool = True,
        vgpu: bool = False,
        runtime_class: object = None,
        tolerations: Sequence[Toleration] = (),
        node_selector: Mapping[str, str] | None = None,
        image: str | None = None,
        resources: Resources | None = None,
        priority_class_name: str = "system-node-critical",
    ) -> None:
        """Make the chart.

        Args:
            scope: The cdk8s App.
            id: Chart id: the file's name in dist/.
            namespace: A name, for which the chart makes a privileged Namespace (but for ``kube-system``,
                which is there), or a ``GpuNamespace`` or cdk8s-plus Namespace that it uses as it is.
            platform: ``Talos("1.12")`` or ``Kubernetes()``; decides every default below that says so.
            version: Release of the plugin, ``"0.18.2"`` or ``"0.20.0"``; it brings the matching releases of
                GPU and Node Feature Discovery. The newest by default.
            sharing: ``Sharing.none()`` by default.
            mig_strategy: ``none``, ``single`` or ``mixed``; the last two make the pods privileged, or give
                them SYS_ADMIN, as the platform's toolkit needs to watch MIG devices.
            device_list_strategy: How allocated devices are handed to the runtime: one of ``envvar``,
                ``volume-mounts``, ``cdi-annotations``, ``cdi-cri`` or a list of them. None: the platform
                decides; on Talos ``envvar``, elsewhere the plugin's own default, which is the same.
            device_discovery_strategy: ``auto``, ``nvml`` or ``tegra``. None: the platform decides; on Talos
                ``nvml``, since ``auto`` probes host paths that are not there.
            fail_on_init_error: False keeps the pod quietly running on a node without a usable GPU. None
                leaves the plugin's default, True.
            node_feature_discovery: Whether to install Node Feature Discovery. Without it the plugin runs on
                nodes with a Talos driver extension, on plain Kubernetes on every node.
            gpu_feature_discovery: Whether to label nodes with product, memory and sharing of their GPUs. It
                publishes through Node Feature Discovery, this one or one that is already there.
            vgpu: Whether GPU Feature Discovery should recognise vGPUs, which takes a privileged container.
            runtime_class: Name of a RuntimeClass, which the chart then makes, or an ``NvidiaRuntimeClass``
                that it uses. None: the platform decides; on Talos ``nvidia``, elsewhere none.
            tolerations: Taints of the GPU nodes, for plugin, GPU Feature Discovery and Node Feature
                Discovery alike, on top of ``nvidia.com/gpu`` and ``CriticalAddonsOnly``.
            node_selector: Node labels asked for besides; of plugin and GPU Feature Discovery.
            image: Another ``repository:tag`` or digest of the plugin's image.
            resources: Of each GPU container; by default requests of 10m CPU and 64Mi, a limit of 512Mi and
                no CPU limit, which would only delay allocations.
            priority_class_name: ``system-node-critical`` as in NVIDIA's chart: without the plugin no GPU pod
                starts.

        Raises:
            GpuConstructsError: A value above is not allowed, alone or together with the platform.
        """
        _fields.label_value("id", id)
        name = component_namespace(namespace)
        release = versions.release_of(versions.DEVICE_PLUGIN, version, "the device plugin")
        strategies = _device_list_strategies(device_list_strategy, platform)
        discovery = device_discovery_strategy or platform.device_discovery_strategy
        _fields.labels("node_selector", node_selector or {})
        _fields.dns_subdomain("priority_class_name", priority_class_name)
        if image is not None:
            _fields.image("image", image)
        runtime = runtime_class_name(runtime_class, platform)
        amounts = container_resources(resources, default=_RESOURCES)
        if gpu_feature_discovery and not node_feature_discovery:
            warnings.warn(
                f"{id}: gpu_feature_discovery publishes through Node Feature Discovery, which this chart was "
                "told not to install; the cluster must run one, or pass gpu_feature_discovery=False",
                GpuConstructsWarning,
                stacklevel=5,
            )
        super().__init__(scope, id, namespace=name)
        self.provides = Provided(
            node_labels=_published_labels(node_feature_discovery, gpu_feature_discovery),
            gpu_resources={
                sharing.gpu_resource: sharing,
                **({"nvidia.com/mig-*": Sharing.none()} if mig_strategy == "mixed" else {}),
            },
            pod_security_default=platform.pod_security_default,
        )
        if isinstance(namespace, str) and name not in _kinds.NAMESPACES_OF_EVERY_CLUSTER:
            GpuNamespace(self, "namespace", name=name)
        if runtime is not None and (runtime_class is None or isinstance(runtime_class, str)):
            NvidiaRuntimeClass(self, "runtime-class", name=runtime)

        config = yaml_text(plugin_config(sharing=sharing, mig_strategy=mig_strategy))
        agent = GpuAgent(
            namespace=name,
            image=image or release.image,
            version=release.version,
            runtime_class=runtime,
            affinity=_affinity(platform, node_feature_discovery),
            node_selector=node_selector or {},
            tolerations=placement.tolerations((placement.CRITICAL_ADDONS, placement.GPU_TAINT), tolerations),
            priority_class_name=priority_class_name,
            resources=amounts,
            config_map=CONFIG_MAP,
            config_sha256=sha256(config),
            mig_strategy=mig_strategy,
            device_discovery_strategy=discovery,
            fail_on_init_error=fail_on_init_error,
            platform=platform,
        )
        selector = selector_labels(name=NAME, instance=id, component="device-plugin")
        metadata = {"name": CONFIG_MAP, "namespace": name, "labels": object_labels(selector)}
        Manifest(self, "config", config_map(metadata, {"config.yaml": config}))
        cdi = any(strategy.startswith("cdi-") for strategy in strategies)
        Manifest(
            self,
            "Default",
            device_plugin_daemonset(
                agent,
                name=NAME,
                selector=selector,
                device_list_strategy=strategies,
                nvidia_driver_root=platform.nvidia_driver_root if cdi else None,
            ),
        )
        if gpu_feature_discovery:
            labeler = Construct(self, "gpu-feature-discovery")
            manifests = gfd.gpu_feature_discovery(
                agent,
                name=f"{NAME}-gpu-feature-discovery",
                selector=selector_labels(name=NAME, instance=id, component="gpu-feature-discovery"),
                vgpu=vgpu,
            )
            for child, manifest in manifests.items():
                Manifest(labeler, child, manifest)
        if node_feature_discovery:
            self._add_node_feature_discovery(release.node_feature_discovery, name, id, tolerations)

    def _add_node_feature_discovery(
        self,
        release: versions.NodeFeatureDiscoveryRelease,
        namespace: str,
        instance: str,
        tolerations: Sequence[Toleration],
    ) -> None:
        scope = Construct(self, "node-feature-discovery")
        files = {"master": yaml_text(nfd.MASTER_CONFIG), "worker": yaml_text(nfd.WORKER_CONFIG)}
        installation = nfd.NodeFeatureDiscovery(
            release=release,
            namespace=namespace,
            prefix=f"{NAME}-node-feature-discovery",
            instance=instance,
            tolerations=placement.tolerations((placement.GPU_TAINT,), tolerations),
            worker_config_sha256=sha256(files["worker"]),
            master_config_sha256=sha256(files["master"]),
        )
        for definition in nfd.custom_resource_definitions(release.version):
            Manifest(scope, definition["spec"]["names"]["plural"], definition)
        for component, text in files.items():
            metadata = installation.metadata(component, name=installation.config_map_name(component))
            Manifest(scope, f"{component}-config", config_map(metadata, {f"nfd-{component}.conf": text}))
        for child, manifest in installation.manifests().items():
            Manifest(scope, child, manifest)


def _published_labels(node_feature_discovery: bool, gpu_feature_discovery: bool) -> tuple[str, ...]:
    hardware = (nfd.LABELS, GPU_PRESENT) if node_feature_discovery else ()
    return (*hardware, *(gfd.LABELS if gpu_feature_discovery else ()))


def _affinity(platform: Platform, node_feature_discovery: bool) -> dict[str, Any] | None:
    if node_feature_discovery:
        return placement.gpu_node_affinity()
    if not platform.driver_node_labels:
        return None
    return placement.required_node_affinity([[placement.label_exists(label)] for label in platform.driver_node_labels])


def _device_list_strategies(
    given: DeviceListStrategy | Sequence[DeviceListStrategy] | None, platform: Platform
) -> tuple[str, ...]:
    if given is None:
        return platform.device_list_strategy
    strategies: tuple[str, ...] = (given,) if isinstance(given, str) else tuple(given)
    if not strategies:
        raise GpuConstructsError(
            "device_list_strategy must name at least one strategy, got an empty list: pods would get no GPU; "
            "leave it out for the platform's default"
        )
    if len(set(strategies)) < len(strategies):
        raise GpuConstructsError(f"device_list_strategy must not repeat a strategy; got {list(strategies)!r}")
    cdi = [strategy for strategy in strategies if strategy.startswith("cdi-")]
    if cdi and not platform.supports_cdi:
        raise GpuConstructsError(
            f"device_list_strategy {cdi[0]!r} cannot work on {platform}: a CDI spec would name host paths that "
            "exist from Talos 1.13 on; use 'envvar'"
        )
    return strategies
