"""Options of the pods that this library emits, and builders of pod specs and DaemonSets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import container_security, fields, labels, placement, references
from gpu_constructs.kube.placement import Toleration
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.kube.resources import Resources, container_resources
from gpu_constructs.kube.update_strategy import UpdateStrategy
from gpu_constructs.records import dataclass, field

ImagePullPolicy = Literal["Always", "IfNotPresent", "Never"]

OWN_ANNOTATIONS = "gpu-constructs/"
"""Prefix of the annotations that only this library sets on pods, such as checksums of ConfigMaps."""


class PodOptions(TypedDict, total=False):
    """Options of the pods that the constructs of this library create.

    Attributes:
        image_pull_secrets: Names or constructs of Secrets in the namespace, for a registry that requires a login.
        node_selector: Node labels that the pods require, besides those that the construct requires.
        priority_class_name: Name of a PriorityClass; none by default.
        resources: Requests and limits of the main container. They replace the defaults of the construct.
        runtime_class: Name or construct of a RuntimeClass. None uses the RuntimeClass that the platform needs.
        tolerations: Tolerations of the pods, besides the toleration for the taint ``nvidia.com/gpu``.
    """

    image_pull_secrets: Sequence[str | NamedObject]
    node_selector: Mapping[str, str] | None
    priority_class_name: str | None
    resources: Resources | None
    runtime_class: str | NamedObject | None
    tolerations: Sequence[Toleration]


class AgentOptions(PodOptions, total=False):
    """Options of the DaemonSets that this library emits, and of their pods.

    Attributes:
        affinity: Affinity of the pods, as in a manifest.
        image: Image that replaces the default one, as ``repository:tag`` or with a digest.
        image_pull_policy: Pull policy: ``Always``, ``IfNotPresent`` or ``Never``. By default it is ``IfNotPresent``,
            because the tags of images do not change.
        pod_annotations: Annotations of the pods, besides those of this library.
        pod_labels: Labels of the pods, besides those of this library.
        pod_security_context: Security context of the pods, besides the seccomp profile ``RuntimeDefault``.
        revision_history_limit: Number of old revisions for ``kubectl rollout undo``. With None, Kubernetes keeps 10.
        update_strategy: Update strategy of the DaemonSet; by default, it replaces the pods node by node.
    """

    affinity: Mapping[str, Any] | None
    image: str | None
    image_pull_policy: ImagePullPolicy
    pod_annotations: Mapping[str, str] | None
    pod_labels: Mapping[str, str] | None
    pod_security_context: Mapping[str, Any] | None
    revision_history_limit: int | None
    update_strategy: UpdateStrategy | None


class ProgramOptions(AgentOptions, total=False):
    """Options of a DaemonSet whose pods have one main container, for example the DCGM exporter.

    Attributes:
        host_network: Whether the pods use the network of the node, for example if pod addresses are scarce; False by
            default.
        security_context: Security context of the container. It replaces the computed security context, and must grant
            the rights that the other options need.
        service_account: Name or construct of an existing ServiceAccount. By default, the construct creates one if the
            pods need access to the API server.
    """

    host_network: bool
    security_context: Mapping[str, Any] | None
    service_account: str | NamedObject | None


def pod_labels(name: str, given: Mapping[str, str]) -> None:
    """Raise if pod labels of the user are invalid, or if they replace labels of this library.

    Args:
        name: Name of the option in messages.
        given: Labels of the user.
    """
    fields.labels(name, given)
    own = labels.object_labels(labels.selector_labels(name="", instance="", component=""), version="v")
    _refuse(name, (key for key in given if key in own))


def pod_annotations(name: str, given: Mapping[str, str]) -> None:
    """Raise if pod annotations of the user are invalid, or if they replace annotations of this library.

    Args:
        name: Name of the option in messages.
        given: Annotations of the user.
    """
    fields.labels(name, dict.fromkeys(given, ""))
    _refuse(name, (key for key in given if key.startswith(OWN_ANNOTATIONS)))


def _refuse(name: str, keys: Any) -> None:
    for key in keys:
        raise GpuConstructsError(f"{name} must not contain {key!r}, which the library sets. Remove it")


def keys_among(allowed: Sequence[str]) -> fields.Check:
    """Return a check that raises if a mapping has a key that is not in ``allowed``."""

    def check(name: str, given: Mapping[str, Any]) -> None:
        for key in given:
            fields.one_of(f"{name} key", key, allowed)

    return check


def check_affinity(_: str, given: Mapping[str, Any]) -> None:
    """Raise unless an affinity has the structure of the Kubernetes API. The check covers the outer levels only."""
    placement.check_affinity(given)


CHECKS: Mapping[str, fields.Check] = {
    "affinity": check_affinity,
    "image": fields.image,
    "node_selector": fields.labels,
    "pod_annotations": pod_annotations,
    "pod_labels": pod_labels,
    "pod_security_context": keys_among(container_security.POD_SECURITY_CONTEXT),
    "priority_class_name": fields.dns_subdomain,
    "revision_history_limit": fields.natural,
    "security_context": keys_among(container_security.SECURITY_CONTEXT),
}
"""Checks by name of the option, besides the check of its type."""


@dataclass(frozen=True, kw_only=True)
class Pods:
    """The settings of the pods of a construct: the defaults of the construct, and the options of the user.

    Attributes:
        options: Options of the user by name, such as ``image``. If the value of an option is None, the default applies.
        image: Default image.
        resources: Default requests and limits of the main container.
        runtime_class: Default name of the RuntimeClass; None uses the default runtime of the nodes.
        tolerations: Tolerations that the construct sets. The pods also get the tolerations of the user.
        node_labels: Node labels that the construct selects. The pods also select the node labels of the user.
        update_strategy: Default update strategy.

    Raises:
        GpuConstructsError: An option has an invalid value.
    """

    options: Mapping[str, Any]
    image: str
    resources: Resources
    runtime_class: str | None = None
    tolerations: Sequence[Toleration] = (placement.GPU_TAINT,)
    node_labels: Mapping[str, str] = field(default_factory=dict)
    update_strategy: UpdateStrategy = UpdateStrategy(type="RollingUpdate")

    def __post_init__(self) -> None:
        fields.options(self.options, CHECKS)

    def metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of ``metadata`` whose labels include the pod labels of the user.

        Args:
            metadata: Metadata of the object that creates the pods.
        """
        return {**metadata, "labels": {**(self.options.get("pod_labels") or {}), **metadata["labels"]}}

    def container(self, name: str, **more: Any) -> dict[str, Any]:
        """Return the main container.

        Args:
            name: Name of the container.
            more: Other fields of the container, as in a manifest.
        """
        own = self.options.get("security_context")
        return {
            "name": name,
            "image": self.options.get("image") or self.image,
            "imagePullPolicy": self.options.get("image_pull_policy", "IfNotPresent"),
            "resources": container_resources(self.options.get("resources"), default=self.resources),
            **more,
            **({} if own is None else {"securityContext": dict(own)}),
        }

    def spec(
        self,
        containers: Sequence[Mapping[str, Any]],
        *,
        service_account: str | None = None,
        security_context: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Return the spec of the pods.

        Args:
            containers: Containers of the pods, including the main one.
            service_account: Name of a ServiceAccount whose token the pods mount; None mounts no token.
            security_context: Security context that the construct needs, besides the seccomp profile.
            more: Other fields of the spec, as in a manifest. They replace fields that this method computes.
        """
        return pod_spec(
            containers,
            service_account=service_account,
            security_context={**(security_context or {}), **(self.options.get("pod_security_context") or {})},
            **{
                "affinity": self.options.get("affinity") or None,
                "hostNetwork": self.options.get("host_network") or None,
                "imagePullSecrets": pull_secrets(self.options.get("image_pull_secrets") or ()),
                "nodeSelector": {**self.node_labels, **(self.options.get("node_selector") or {})} or None,
                "priorityClassName": self.options.get("priority_class_name"),
                "runtimeClassName": self._runtime_class,
                "tolerations": placement.tolerations(self.tolerations, self.options.get("tolerations") or ()),
                **more,
            },
        )

    @property
    def _runtime_class(self) -> str | None:
        given = self.options.get("runtime_class")
        return self.runtime_class if given is None else references.name_of("runtime_class", given, "RuntimeClass")

    def daemonset(
        self,
        spec: Mapping[str, Any],
        *,
        metadata: Mapping[str, Any],
        selector: Mapping[str, str],
        checksums: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Return the manifest of the DaemonSet that creates the pods.

        Args:
            spec: Spec of the pods.
            metadata: Metadata of the DaemonSet.
            selector: Labels that identify the pods of the DaemonSet.
            checksums: Annotations with the checksums of ConfigMaps, which restart the pods after a change.
        """
        return daemonset(
            metadata=self.metadata(metadata),
            selector=selector,
            annotations={**(self.options.get("pod_annotations") or {}), **(checksums or {})},
            pod_spec=spec,
            revision_history_limit=self.options.get("revision_history_limit"),
            update_strategy=(self.options.get("update_strategy") or self.update_strategy).to_manifest(),
        )


def pod_spec(
    containers: Sequence[Mapping[str, Any]],
    *,
    service_account: str | None = None,
    security_context: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return a pod spec with the seccomp profile ``RuntimeDefault`` and without environment variables for Services.

    Args:
        containers: Containers of the pod.
        service_account: Name of a ServiceAccount whose token the pod mounts; None mounts no token.
        security_context: Security context of the pod, besides the seccomp profile ``RuntimeDefault``.
        more: Other fields of the spec, as in a manifest. The result omits a field with the value None.
    """
    return {
        "automountServiceAccountToken": service_account is not None,
        "containers": list(containers),
        "dnsPolicy": "ClusterFirstWithHostNet" if more.get("hostNetwork") else None,
        "enableServiceLinks": False,
        "securityContext": {**container_security.POD, **(security_context or {})},
        "serviceAccountName": service_account,
        **more,
    }


def pull_secrets(given: Sequence[str | NamedObject]) -> list[dict[str, str]] | None:
    """Return the field ``imagePullSecrets`` of a pod spec. Return None if ``given`` contains no Secret."""
    names = [references.name_of(f"image_pull_secrets[{index}]", one, "Secret") for index, one in enumerate(given)]
    return [{"name": name} for name in names] or None


def daemonset(
    *,
    metadata: Mapping[str, Any],
    selector: Mapping[str, str],
    annotations: Mapping[str, str],
    pod_spec: Mapping[str, Any],
    revision_history_limit: int | None = None,
    rolling_update: Mapping[str, Any] | None = None,
    update_strategy: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a DaemonSet manifest.

    Args:
        metadata: Metadata of the DaemonSet. Its pods have the same labels.
        selector: Labels that identify the pods of the DaemonSet.
        annotations: Annotations of the pods, including checksums that restart the pods after a change.
        pod_spec: Spec of the pods.
        revision_history_limit: Number of old revisions that Kubernetes keeps. With None, it keeps 10.
        rolling_update: Parameters of a rolling update, as in a manifest, if ``update_strategy`` is None.
        update_strategy: Complete update strategy, as in a manifest. None: a rolling update.
    """
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata,
        "spec": {
            "revisionHistoryLimit": revision_history_limit,
            "selector": {"matchLabels": dict(selector)},
            "updateStrategy": update_strategy or {"type": "RollingUpdate", "rollingUpdate": rolling_update},
            "template": {
                "metadata": {"labels": dict(metadata["labels"]), "annotations": dict(annotations) or None},
                "spec": pod_spec,
            },
        },
    }
