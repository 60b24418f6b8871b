"""The checked options of a `DevicePluginChart`, and a function that builds the DaemonSet of each component.

The components are the device plugin, GPU Feature Discovery and the MPS control daemon.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.catalog.versions import DevicePluginRelease
from gpu_constructs.device_plugin.config import CONFIG_FILE, Flags
from gpu_constructs.device_plugin.configs import Configs, plugin_configs
from gpu_constructs.device_plugin.delivery import Delivery
from gpu_constructs.device_plugin.options import Component, DevicePlugin, GpuFeatureDiscovery, MpsControlDaemon
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.feature_discovery.node_feature_discovery import NodeFeatureDiscovery
from gpu_constructs.kube import placement
from gpu_constructs.kube.container_security import container_security
from gpu_constructs.kube.labels import COMPONENT, object_labels, selector_labels
from gpu_constructs.kube.pods import Pods
from gpu_constructs.records import dataclass

APP = "nvidia-device-plugin"

_ONE_FOR_A_NODE = ("device-plugin", "mps-control-daemon")

DiscoveredBy = Literal["chart", "external", "none"]
Volumes = Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]]
"""Volumes by name. Each value is a pair of the volume source for the pod and the volume mount for the container."""


def _by_name(variables: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(variables, key=lambda variable: str(variable["name"]))


def _field_variable(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


@dataclass(frozen=True, kw_only=True)
class Installation:
    """The options of one ``DevicePluginChart``, after the library has checked them.

    Attributes:
        id: ID of the chart.
        name: Prefix of the names of all objects.
        instance: Value of the label ``app.kubernetes.io/instance``.
        namespace: Namespace of all objects.
        platform: Platform of the nodes.
        release: Release of the device plugin.
        configs: Configurations of the device plugin, of which each node uses one.
        defaults: Default values of flags that a configuration does not set.
        plugin: Options of the device plugin; None if the chart does not install it.
        labeler: Options of GPU Feature Discovery; None if the chart does not install it.
        daemon: Options of the MPS control daemon.
        discovery: Options of Node Feature Discovery; None if the chart does not install it.
        discovered_by: Installer of Node Feature Discovery: ``chart`` (this chart), ``external`` (another installation
            in the cluster), or ``none`` (Node Feature Discovery does not run).
        runtime_class: Name of the RuntimeClass of the pods. None: the default runtime of the nodes.
        pods: Keyword arguments of the chart that apply to the pods of all components, such as ``tolerations``.
    """

    id: str
    name: str
    instance: str
    namespace: str
    platform: Platform
    release: DevicePluginRelease
    configs: Configs
    defaults: Flags
    plugin: DevicePlugin | None
    labeler: GpuFeatureDiscovery | None
    daemon: MpsControlDaemon
    discovery: NodeFeatureDiscovery | None
    discovered_by: DiscoveredBy
    runtime_class: str | None
    pods: Mapping[str, Any]

    def pods_of(self, component: Component, node_labels: Mapping[str, str] | None = None) -> Pods:
        """Return the pod settings for the DaemonSet of one component.

        The ``resources`` of the component replace those in ``self.pods``. Its ``node_selector`` adds labels to that
        of ``self.pods``.

        Args:
            component: Options of the component, such as ``DevicePlugin``.
            node_labels: Labels that a node must have, besides the labels that the user sets as ``node_selector``.

        Raises:
            GpuConstructsError: An option has a value that is not allowed.
        """
        options = {key: value for key, value in self.pods.items() if key not in ("affinity", "runtime_class")}
        own: dict[str, Any] = {
            "host_network": component.host_network,
            "node_selector": {**(options.get("node_selector") or {}), **component.node_selector},
            **({} if component.resources is None else {"resources": component.resources}),
        }
        return Pods(
            options={**options, **own},
            image=self.release.image,
            resources=component._DEFAULT_RESOURCES,
            runtime_class=self.runtime_class,
            tolerations=(placement.CRITICAL_ADDONS, placement.GPU_TAINT),
            node_labels=node_labels or {},
        )

    def selector(self, label: str, suffix: str = "") -> dict[str, str]:
        """Return the selector labels of the DaemonSet of one component.

        Args:
            label: Name of the component, such as ``device-plugin`` or ``gpu-feature-discovery``.
            suffix: Suffix that stands for the configuration, such as ``-a100``. Empty for the default configuration, so
                that its selector stays the same if the user adds configurations.

        Returns:
            Labels with the app, the instance and the component, for example
            ``app.kubernetes.io/component: device-plugin-a100``.
        """
        return selector_labels(name=APP, instance=self.instance, component=f"{label}{suffix}")

    def metadata(self, label: str, *, name: str) -> dict[str, Any]:
        """Return the metadata of an object that all configurations of the device plugin share, such as a ClusterRole.

        Args:
            label: Name of the component for the labels, such as ``device-plugin`` or ``gpu-feature-discovery``.
            name: Name of the object.
        """
        return {"name": name, "namespace": self.namespace, "labels": object_labels(self.selector(label))}

    def affinity(self) -> Mapping[str, Any] | None:
        """Return the affinity that the pods of all components have.

        The default selects nodes on which Node Feature Discovery found a GPU. Without Node Feature Discovery, it
        selects nodes that have one of the labels in ``platform.driver_node_labels``. If the platform has no such
        labels, the default is None.

        An affinity that the user sets replaces the default. If the user sets an empty affinity, return None.
        """
        given = self.pods.get("affinity")
        if given is not None:
            placement.check_affinity(given)
            return given or None
        if self.discovered_by != "none":
            stated = [config.flags.device_discovery_strategy for config in plugin_configs(self.configs)]
            found = {one or self.defaults.device_discovery_strategy for one in stated}
            is_external = self.discovered_by == "external"
            return placement.gpu_node_affinity(tegra=bool(found - {"nvml"}), foreign=is_external)
        labels = self.platform.driver_node_labels
        return placement.required_node_affinity([[placement.label_exists(one)] for one in labels]) if labels else None


def security_context(given: Installation, component: Component, delivery: Delivery) -> dict[str, Any]:
    """Return the security context of the main container of a component, as in a manifest.

    If the user sets no security context, the result contains only the rights that the configuration needs.

    Args:
        given: Options of the ``DevicePluginChart``.
        component: Options of the component, with the security context of the user.
        delivery: Configuration that the pods read, with the features that it enables.

    Raises:
        GpuConstructsError: The security context of the user lacks rights that the configuration needs.
    """
    needed = component.rights(delivery.uses, given.platform)
    own = component.security_context
    if own is None:
        return needed.to_manifest()
    if not needed.are_in(own):
        why = ", ".join(component.needs_rights_for(delivery.uses))
        raise GpuConstructsError(
            f"{component._NAME}.security_context must contain {needed} for {why}, got {dict(own)!r}. Remove "
            "security_context, so that the library sets the rights that the configuration needs"
        )
    return dict(own)


def environment(
    component: Component, delivery: Delivery, variables: Mapping[str, str], fields: Mapping[str, str]
) -> list[Any]:
    """Return the environment variables of the main container of a component, as a list in the form of a manifest.

    Args:
        component: Options of the component. A variable that the user sets replaces the variable with the same name.
        delivery: Configuration that the pods read, with the features that it enables.
        variables: Values of variables for this component only, by name.
        fields: Paths of pod fields, by name of the variable that gets the value of the field, for example
            ``{"NODE_NAME": "spec.nodeName"}``.
    """
    ours = {
        "CONFIG_FILE": CONFIG_FILE,
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        # These pods need access to all GPUs but do not allocate one, so they request no GPU resource.
        "NVIDIA_VISIBLE_DEVICES": "all",
        **({"NVIDIA_MIG_MONITOR_DEVICES": "all"} if "mig" in delivery.uses else {}),
        **variables,
    }
    kept = [{"name": name, "value": value} for name, value in ours.items() if name not in component.env]
    from_fields = [_field_variable(name, path) for name, path in fields.items()]
    return _by_name([*kept, *from_fields, *component.environment()])


def daemonset(
    given: Installation,
    component: Component,
    delivery: Delivery,
    container: Mapping[str, Any],
    *,
    name: str,
    label: str,
    volumes: Volumes,
    node_labels: Mapping[str, str] | None = None,
    init_containers: Sequence[Mapping[str, Any]] = (),
    **more: Any,
) -> dict[str, Any]:
    """Return the DaemonSet of a component, whose pods have one main container.

    Args:
        given: Options of the ``DevicePluginChart``.
        component: Options of the component.
        delivery: Configuration that the pods read, with the rights and mounts that it needs.
        container: Fields of the main container, besides the fields that the function sets for every component.
        name: Name of the DaemonSet, without the suffix of the configuration.
        label: Name of the component for the labels, such as ``device-plugin``.
        volumes: Volumes of the main container.
        node_labels: Labels that a node must have, besides the labels that the user sets as ``node_selector``.
        init_containers: Fields of containers that run before the main container.
        more: Other arguments of ``Pods.spec``, such as ``hostPID``.
    """
    pods = given.pods_of(component, node_labels)
    mounts = [{"name": volume, **mount} for volume, (_, mount) in volumes.items()]
    main = pods.container(**{"volumeMounts": [*delivery.mounts(), *mounts], **container})
    init, sidecars = [{**one, **_shared(main)} for one in init_containers], []
    if delivery.config_manager is not None:
        sidecars.append(_config_manager(delivery, main, process=str(main["command"][0])))
        init.append(_config_manager(delivery, main, process=None))
    spec = pods.spec(
        [*sidecars, main],
        affinity=_affinity(given, label, delivery),
        initContainers=init or None,
        volumes=[*delivery.volumes(), *({"name": volume, **source} for volume, (source, _) in volumes.items())],
        **more,
    )
    selector = given.selector(label, delivery.suffix)
    labels = {**object_labels(selector, version=given.release.version), **delivery.labels}
    metadata = {"name": f"{name}{delivery.suffix}", "namespace": given.namespace, "labels": labels}
    return pods.daemonset(spec, metadata=metadata, selector=selector, checksums=delivery.checksum)


def _affinity(given: Installation, component: str, delivery: Delivery) -> Mapping[str, Any] | None:
    """Return the affinity of a DaemonSet.

    For the device plugin and the MPS control daemon, the affinity contains an anti-affinity term: pods of two
    configurations do not run on the same node. If a node changes its configuration, the new pods therefore start only
    after the old pods end. Otherwise, an old device plugin would remove the socket of the new device plugin when it
    exits, and the kubelet would mark all GPUs of the node as unhealthy. An old MPS control daemon would stop the MPS
    server that the new daemon started.

    Args:
        given: Options of the ``DevicePluginChart``.
        component: Name of the component, such as ``device-plugin``.
        delivery: Configuration that the pods read, with the node labels that select its nodes.

    Source:
        NVIDIA/k8s-device-plugin@v0.20.0:internal/plugin/server.go;
        kubernetes/kubernetes:pkg/kubelet/cm/devicemanager/plugin/v1beta1/handler.go
    """
    affinity = placement.with_node_expressions(given.affinity(), delivery.node_expressions)
    if not delivery.rivals or component not in _ONE_FOR_A_NODE:
        return affinity
    others = [f"{component}{suffix}" for suffix in delivery.rivals]
    own = given.selector(component)
    selector = {
        "matchLabels": {key: value for key, value in own.items() if key != COMPONENT},
        "matchExpressions": [placement.label_is(COMPONENT, *others)],
    }
    return placement.apart_on_nodes(affinity, selector)


def _shared(main: Mapping[str, Any]) -> dict[str, Any]:
    return {key: main[key] for key in ("image", "imagePullPolicy", "resources")}


def _config_manager(delivery: Delivery, main: Mapping[str, Any], *, process: str | None) -> dict[str, Any]:
    """Return a container with NVIDIA's config-manager, which selects the configuration file for the node.

    In the init container, config-manager selects a file before the main container starts. In the sidecar, it selects
    another file if the node label ``nvidia.com/device-plugin.config`` changes. It then sends a signal to the process in
    the main container.

    Args:
        delivery: Configurations, with the environment variables of config-manager.
        main: Main container of the pod. The result has the same image and resources.
        process: For the sidecar, the command of the process that gets the signal, such as ``nvidia-device-plugin``.
            None for the init container.
    """
    variables = {
        **(delivery.config_manager or {}),
        "ONESHOT": str(process is None).lower(),
        "SEND_SIGNAL": str(process is not None).lower(),
        **({"PROCESS_TO_SIGNAL": process, "SIGNAL": "1"} if process else {}),
    }
    env = [{"name": name, "value": value} for name, value in variables.items() if value]
    base = str(main["name"]).removesuffix("-ctr")
    return {
        "name": f"{base}-{'init' if process is None else 'sidecar'}",
        "command": ["config-manager"],
        "env": _by_name([*env, _field_variable("NODE_NAME", "spec.nodeName")]),
        # Only a privileged process can send a signal to a privileged process.
        "securityContext": main["securityContext"] if process else container_security(),
        "volumeMounts": delivery.mounts(writes=True),
        **_shared(main),
    }
