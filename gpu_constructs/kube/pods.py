"""Options of the pods that this library runs, each declared once, and the builders of their specs and DaemonSets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import container_security, fields, labels, placement, references
from gpu_constructs.kube.placement import Toleration
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.kube.resources import Resources, container_resources
from gpu_constructs.kube.update_strategy import UpdateStrategy

ImagePullPolicy = Literal["Always", "IfNotPresent", "Never"]

OWN_ANNOTATIONS = "gpu-constructs/"
"""Prefix of the annotations that only this library sets on pods, such as checksums of what the pods read."""


class PodOptions(TypedDict, total=False):
    """Options of all pods of this library.

    Attributes:
        image_pull_secrets: Names or objects of Secrets in the namespace, for a registry that asks for a login.
        node_selector: Node labels to select, in addition to those that the construct selects.
        priority_class_name: Name of a PriorityClass.
        resources: Requests and limits of the main container, in place of the construct's own.
        runtime_class: Name or object of a RuntimeClass. None: the platform decides.
        tolerations: Taints to tolerate, in addition to ``nvidia.com/gpu``.
    """

    image_pull_secrets: Sequence[str | NamedObject]
    node_selector: Mapping[str, str] | None
    priority_class_name: str | None
    resources: Resources | None
    runtime_class: str | NamedObject | None
    tolerations: Sequence[Toleration]


class AgentOptions(PodOptions, total=False):
    """Options of the pods of a DaemonSet.

    Attributes:
        affinity: Affinity of the pods, in the form of Kubernetes.
        image: Another image, as ``repository:tag`` or with a digest.
        image_pull_policy: ``IfNotPresent`` by default, since images are pinned; ``Always`` or ``Never``.
        pod_annotations: Additional annotations of the pods.
        pod_labels: Additional labels of the pods.
        pod_security_context: Security context of the pods, on top of the seccomp profile ``RuntimeDefault``.
        revision_history_limit: Old revisions that ``kubectl rollout undo`` can go back to. None: Kubernetes keeps 10.
        update_strategy: How pods are replaced: one node after the other by default.
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
    """Options of the pods of a DaemonSet with one program.

    Attributes:
        host_network: Whether the pods use the network of the node, for example if pod addresses are scarce.
        security_context: Security context of the container, in place of the one computed from the options. It must
            hold the rights that the options need.
        service_account: Name or object of an existing ServiceAccount.
    """

    host_network: bool
    security_context: Mapping[str, Any] | None
    service_account: str | NamedObject | None


def pod_labels(name: str, given: Mapping[str, str]) -> None:
    """Check labels of pods, which must not replace those of this library."""
    fields.labels(name, given)
    own = labels.object_labels(labels.selector_labels(name="", instance="", component=""), version="v")
    _refuse(name, (key for key in given if key in own))


def pod_annotations(name: str, given: Mapping[str, str]) -> None:
    """Check annotations, which must not replace those of this library."""
    fields.labels(name, dict.fromkeys(given, ""))
    _refuse(name, (key for key in given if key.startswith(OWN_ANNOTATIONS)))


def _refuse(name: str, keys: Any) -> None:
    for key in keys:
        raise GpuConstructsError(f"{name} must not hold {key!r}: this library sets it; leave it out")


def keys_among(allowed: Sequence[str]) -> fields.Check:
    """Return the check that a mapping has no other keys than those."""

    def check(name: str, given: Mapping[str, Any]) -> None:
        for key in given:
            fields.one_of(f"{name} key", key, allowed)

    return check


def check_affinity(_: str, given: Mapping[str, Any]) -> None:
    """Check the first levels of an affinity for the form of Kubernetes."""
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
"""Check of each option whose type alone does not say what is allowed."""


@dataclass(frozen=True, kw_only=True)
class Pods:
    """The pods of a construct: what the construct needs, and the options of its user on top of it.

    Attributes:
        options: Options of the user; a missing one and None mean the same.
        image: Image if the user names none.
        resources: Requests and limits of the main container if the user sets none.
        runtime_class: Name of the RuntimeClass if the user names none; None for the default of the nodes.
        tolerations: Taints that the construct tolerates in any case.
        node_labels: Node labels that the construct selects in any case.
        update_strategy: How pods are replaced if the user does not say.

    Raises:
        GpuConstructsError: An option has a value that Kubernetes or this library does not take.
    """

    options: Mapping[str, Any]
    image: str
    resources: Resources
    runtime_class: str | None = None
    tolerations: Sequence[Toleration] = (placement.GPU_TAINT,)
    node_labels: Mapping[str, str] = field(default_factory=dict)
    update_strategy: UpdateStrategy = UpdateStrategy(type="RollingUpdate")  # noqa: RUF009

    def __post_init__(self) -> None:
        fields.options(self.options, CHECKS)

    def metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Return the metadata of the object that runs the pods, whose labels the pods have too."""
        return {**metadata, "labels": {**(self.options.get("pod_labels") or {}), **metadata["labels"]}}

    def container(self, name: str, **more: Any) -> dict[str, Any]:
        """Return the main container.

        Args:
            name: Name of the container.
            more: Further fields of the container, in the form of Kubernetes.
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
            containers: Containers, the main one among them.
            service_account: Name of a ServiceAccount whose token the pods get; None mounts no token.
            security_context: Security context that the construct needs, on top of the seccomp profile.
            more: Further fields of the spec, in the form of Kubernetes; they win over computed ones.
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
        """Return the DaemonSet that runs the pods.

        Args:
            spec: Spec of the pods.
            metadata: Metadata of the DaemonSet.
            selector: Labels by which the DaemonSet finds its pods.
            checksums: Annotations that restart the pods if what they read changes.
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
    """Return the spec of a pod: no token without a ServiceAccount, no variables of Services, a seccomp profile.

    Args:
        containers: Containers of the pod.
        service_account: Name of a ServiceAccount whose token the pod gets; None mounts no token.
        security_context: Security context of the pod, on top of the seccomp profile ``RuntimeDefault``.
        more: Further fields, in the form of Kubernetes; None leaves a field out.
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
    """Return ``imagePullSecrets`` of a pod, or None without any."""
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
    """Return the DaemonSet.

    Args:
        metadata: Metadata of the DaemonSet; its labels go on the pods too.
        selector: Labels that tell its pods from all others.
        annotations: Annotations of the pods; checksums of what they read, so that a change restarts them.
        pod_spec: The pod.
        revision_history_limit: How many old revisions Kubernetes keeps.
        rolling_update: How many pods may be missing or doubled during an update.
        update_strategy: The whole strategy, instead of a rolling update.
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
