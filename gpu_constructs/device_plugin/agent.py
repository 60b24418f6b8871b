"""What the pods of the device plugin's image have in common, as plain manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_constructs import placement
from gpu_constructs._container_security import POD, container_security
from gpu_constructs._daemonset import daemonset
from gpu_constructs._labels import COMPONENT, object_labels, selector_labels
from gpu_constructs._resources import Resources, container_resources
from gpu_constructs.device_plugin.component import Component
from gpu_constructs.device_plugin.config import CONFIG_FILE
from gpu_constructs.device_plugin.delivery import Delivery
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.platforms import Platform
from gpu_constructs.update_strategy import UpdateStrategy

APP = "nvidia-device-plugin"

_ONE_FOR_A_NODE = ("device-plugin", "mps-control-daemon")

NODE_RULES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
"""What config-manager reads: the labels of its node, for which it lists them all."""


@dataclass(frozen=True, kw_only=True)
class GpuAgent:
    """What the plugin's, GPU Feature Discovery's and the MPS control daemon's pods have in common.

    Attributes:
        namespace: Where they live.
        name: In front of the names of all objects.
        instance: Of the labels.
        image: ``repository:tag`` of all programs.
        image_pull_policy: As Kubernetes writes it.
        image_pull_secrets: Names of Secrets.
        version: Release, for the label.
        sets_owner_references: Whether GFD of this release reads its own pod.
        runtime_class: ``runtimeClassName``, or None for the nodes' default runtime.
        affinity: As Kubernetes writes it, or None.
        node_selector: Node labels asked for besides.
        tolerations: As Kubernetes writes them.
        priority_class_name: ``priorityClassName``, or None.
        pod_annotations: Of every pod.
        pod_security_context: On top of our own.
        update_strategy: Of every DaemonSet.
        resources: Of the main containers; None is each program's own default.
        platform: Decides what MIG needs.
    """

    namespace: str
    name: str
    instance: str
    image: str
    image_pull_policy: str
    image_pull_secrets: Sequence[str]
    version: str
    sets_owner_references: bool
    runtime_class: str | None
    affinity: Mapping[str, Any] | None
    node_selector: Mapping[str, str]
    tolerations: Sequence[Mapping[str, Any]]
    priority_class_name: str | None
    pod_annotations: Mapping[str, str]
    pod_security_context: Mapping[str, Any]
    update_strategy: UpdateStrategy
    resources: Resources | None
    platform: Platform

    def selector(self, component: str, delivery: Delivery) -> dict[str, str]:
        """Give the labels that tell these pods from all others.

        Those of the default configuration are the same with and without others beside it: a selector cannot
        be changed.
        """
        return selector_labels(name=APP, instance=self.instance, component=f"{component}{delivery.suffix}")

    def metadata(self, selector: dict[str, str], *, name: str) -> dict[str, Any]:
        """Give the metadata of an object."""
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": object_labels(selector, version=self.version),
        }

    def security_context(self, component: Component, delivery: Delivery) -> dict[str, Any]:
        """Give the main container's rights: the user's own, else those that the options in use need.

        Raises:
            GpuConstructsError: The user's own lack something.
        """
        needed = component.rights(delivery.uses, self.platform)
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

    def environment(self, component: Component, delivery: Delivery, variables: Mapping[str, str]) -> list[Any]:
        """Give a main container's variables: what every program reads, its own, and the user's."""
        ours = {
            "CONFIG_FILE": CONFIG_FILE,
            "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
            # These pods look at every GPU without taking one, so they ask for no resource.
            "NVIDIA_VISIBLE_DEVICES": "all",
            **({"NVIDIA_MIG_MONITOR_DEVICES": "all"} if "mig" in delivery.uses else {}),
            **variables,
        }
        given = component.environment()
        kept = [{"name": name, "value": value} for name, value in ours.items() if name not in component.env]
        return sorted([*kept, *given], key=lambda variable: str(variable["name"]))

    def container(
        self, component: Component, *, delivery: Delivery, mounts: Sequence[Mapping[str, Any]] = (), **fields: Any
    ) -> dict[str, Any]:
        """Give a main container."""
        return {
            "image": self.image,
            "imagePullPolicy": self.image_pull_policy,
            "resources": container_resources(
                self.resources if component.resources is None else component.resources,
                default=component._DEFAULT_RESOURCES,
            ),
            **fields,
            "volumeMounts": [*delivery.mounts(), *mounts],
        }

    def daemonset(
        self,
        component: Component,
        *,
        name: str,
        label: str,
        delivery: Delivery,
        container: Mapping[str, Any],
        init_containers: Sequence[Mapping[str, Any]] = (),
        volumes: Sequence[Mapping[str, Any]] = (),
        node_selector: Mapping[str, str] | None = None,
        service_account: str | None = None,
        host_pid: bool = False,
        shares_processes: bool = False,
    ) -> dict[str, Any]:
        """Give the DaemonSet around one main container."""
        selector = self.selector(label, delivery)
        init, sidecars = list(init_containers), []
        if delivery.config_manager is not None:
            process = str(container["command"][0])
            sidecars.append(self._config_manager(component, delivery, container, process=process))
            init.append(self._config_manager(component, delivery, container, process=None))
        metadata = self.metadata(selector, name=name)
        return daemonset(
            metadata={**metadata, "labels": {**metadata["labels"], **delivery.labels}},
            selector=selector,
            annotations={**self.pod_annotations, **delivery.checksum},
            update_strategy=self.update_strategy.to_manifest(),
            pod_spec={
                "affinity": self._affinity(label, delivery),
                "automountServiceAccountToken": service_account is not None,
                "containers": [*sidecars, container],
                "dnsPolicy": "ClusterFirstWithHostNet" if component.host_network else None,
                "enableServiceLinks": False,
                "hostNetwork": component.host_network or None,
                "hostPID": host_pid or None,
                "imagePullSecrets": [{"name": secret} for secret in self.image_pull_secrets] or None,
                "initContainers": init or None,
                "nodeSelector": {**(node_selector or {}), **self.node_selector, **component.node_selector} or None,
                "priorityClassName": self.priority_class_name,
                "runtimeClassName": self.runtime_class,
                "securityContext": {**POD, **self.pod_security_context},
                "serviceAccountName": service_account,
                "shareProcessNamespace": shares_processes or None,
                "tolerations": list(self.tolerations),
                "volumes": [*delivery.volumes(), *volumes],
            },
        )

    def _affinity(self, component: str, delivery: Delivery) -> Mapping[str, Any] | None:
        """Return the affinity of a DaemonSet, whose pods wait until those of another configuration are gone.

        The exit of an old plugin removes the socket of a new one, and the kubelet then marks all GPUs of the node
        unhealthy (NVIDIA/k8s-device-plugin@v0.20.0:internal/plugin/server.go,
        kubernetes/kubernetes:pkg/kubelet/cm/devicemanager/plugin/v1beta1/handler.go). An old MPS control daemon ends
        the server that a new one started.
        """
        affinity = placement.with_node_expressions(self.affinity, delivery.node_expressions)
        if not delivery.rivals or component not in _ONE_FOR_A_NODE:
            return affinity
        others = [f"{component}{suffix}" for suffix in delivery.rivals]
        own = self.selector(component, delivery)
        selector = {
            "matchLabels": {key: value for key, value in own.items() if key != COMPONENT},
            "matchExpressions": [placement.label_is(COMPONENT, *others)],
        }
        return placement.apart_on_nodes(affinity, selector)

    def _config_manager(
        self, component: Component, delivery: Delivery, container: Mapping[str, Any], *, process: str | None
    ) -> dict[str, Any]:
        """Give config-manager: once before the main container, then beside it, telling it to read anew."""
        assert delivery.config_manager is not None
        is_sidecar = process is not None
        variables = {
            **delivery.config_manager,
            "ONESHOT": str(not is_sidecar).lower(),
            "SEND_SIGNAL": str(is_sidecar).lower(),
            **({"PROCESS_TO_SIGNAL": process, "SIGNAL": "1"} if process else {}),
        }
        env: list[dict[str, Any]] = [{"name": n, "value": v} for n, v in variables.items() if v]
        env.append({"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}})
        base = str(container["name"]).removesuffix("-ctr")
        return {
            "name": f"{base}-{'sidecar' if is_sidecar else 'init'}",
            "image": self.image,
            "imagePullPolicy": self.image_pull_policy,
            "command": ["config-manager"],
            "env": sorted(env, key=lambda variable: str(variable["name"])),
            "resources": container["resources"],
            # It signals a process that may be privileged, and such a one listens to its equals only.
            "securityContext": container["securityContext"] if is_sidecar else container_security(),
            "volumeMounts": delivery.mounts(writes=True),
        }
