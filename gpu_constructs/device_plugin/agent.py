"""One installation of the device plugin, and what the pods of its image have in common, as plain manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

APP = "nvidia-device-plugin"

_ONE_FOR_A_NODE = ("device-plugin", "mps-control-daemon")

DiscoveredBy = Literal["chart", "external", "none"]
Volumes = Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]]
"""Source and mount of each volume."""


def _by_name(variables: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(variables, key=lambda variable: str(variable["name"]))


def _field_variable(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


@dataclass(frozen=True, kw_only=True)
class Installation:
    """What is installed.

    Attributes:
        id: Id of the chart.
        name: Prefix of the names of all objects.
        instance: Instance of the labels.
        namespace: Namespace of all objects.
        platform: Platform of the nodes.
        release: Release of the device plugin.
        configs: Configurations.
        defaults: Settings for configurations that do not state them.
        plugin: Options of the plugin, or None without it.
        labeler: Options of GPU Feature Discovery, or None without it.
        daemon: Options of the MPS control daemon.
        discovery: Options of Node Feature Discovery, or None if it is not installed here.
        discovered_by: What runs Node Feature Discovery: this chart, something external, or nothing.
        runtime_class: Name of the RuntimeClass of the pods, or None for the nodes' default runtime.
        pods: Options of the user for all pods.
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
        """Return the pods of one program: the options of all, and its own on top.

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
        """Return the labels that tell these pods from all others.

        Those of the default configuration are the same with and without others beside it: a selector cannot
        be changed.
        """
        return selector_labels(name=APP, instance=self.instance, component=f"{label}{suffix}")

    def metadata(self, label: str, *, name: str) -> dict[str, Any]:
        """Return the metadata of an object that serves all configurations."""
        return {"name": name, "namespace": self.namespace, "labels": object_labels(self.selector(label))}

    def affinity(self) -> Mapping[str, Any] | None:
        """Return the affinity of all pods: the user's, else one for the nodes that have GPUs."""
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
    """Return the security context of a main container: the user's own, else the rights in use.

    Raises:
        GpuConstructsError: The user's own lacks something.
    """
    needed = component.rights(delivery.uses, given.platform)
    own = component.security_context
    if own is None:
        return needed.to_manifest()
    if not needed.are_in(own):
        why = ", ".join(component.needs_rights_for(delivery.uses))
        raise GpuConstructsError(
            f"{component._NAME}.security_context must hold {needed} for {why}; got {dict(own)!r}; leave it out for "
            "what the configuration needs"
        )
    return dict(own)


def environment(
    component: Component, delivery: Delivery, variables: Mapping[str, str], fields: Mapping[str, str]
) -> list[Any]:
    """Return the variables of a main container: those of every program, its own, and the user's."""
    ours = {
        "CONFIG_FILE": CONFIG_FILE,
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        # These pods look at every GPU without taking one, so they ask for no resource.
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
    """Return the DaemonSet around one main container.

    Args:
        given: The installation.
        component: Options of the program.
        delivery: What its pods read.
        container: Fields of the main container, but for those that all have.
        name: Name of the DaemonSet.
        label: Component in the labels.
        volumes: Volumes of the main container.
        node_labels: Node labels to select in any case.
        init_containers: Containers that run before, given the main container.
        more: Further arguments of the pod spec.
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
    """Return the affinity of a DaemonSet, whose pods wait until those of another configuration are gone.

    The exit of an old plugin removes the socket of a new one, and the kubelet then marks all GPUs of the node
    unhealthy (NVIDIA/k8s-device-plugin@v0.20.0:internal/plugin/server.go,
    kubernetes/kubernetes:pkg/kubelet/cm/devicemanager/plugin/v1beta1/handler.go). An old MPS control daemon ends
    the server that a new one started.
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
    """Return config-manager: once before the main container, then beside it, telling it to read anew."""
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
        # It signals a process that may be privileged, and such a one listens to its equals only.
        "securityContext": main["securityContext"] if process else container_security(),
        "volumeMounts": delivery.mounts(writes=True),
        **_shared(main),
    }
