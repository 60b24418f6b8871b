"""Where the pods stand in a manifest, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_PATHS: Mapping[tuple[str, str], str] = {
    ("", "Pod"): "spec",
    ("apps", "DaemonSet"): "spec.template.spec",
    ("apps", "Deployment"): "spec.template.spec",
    ("apps", "ReplicaSet"): "spec.template.spec",
    ("apps", "StatefulSet"): "spec.template.spec",
    ("batch", "CronJob"): "spec.jobTemplate.spec.template.spec",
    ("batch", "Job"): "spec.template.spec",
    ("kubeflow.org", "Experiment"): "spec.trialTemplate.trialSpec.spec.template.spec",
    ("kubeflow.org", "Notebook"): "spec.template.spec",
    ("kubeflow.org", "PyTorchJob"): "spec.pytorchReplicaSpecs.*.template.spec",
}


def _follow(value: Any, steps: list[str]) -> Iterator[dict[str, Any]]:
    if not isinstance(value, dict):
        return
    if not steps:
        yield value
    elif steps[0] == "*":
        for member in value.values():
            yield from _follow(member, steps[1:])
    else:
        yield from _follow(value.get(steps[0]), steps[1:])


def pod_specs(manifest: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Give every pod spec of a manifest; none for kinds that make no pods."""
    group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
    path = _PATHS.get((group, str(manifest.get("kind"))))
    if path is not None:
        yield from _follow(manifest, path.split("."))


def containers(pod_spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Give every container of a pod, those that run before the others first."""
    for group in ("initContainers", "containers"):
        yield from pod_spec.get(group) or ()


def node_labels_required(pod_spec: Mapping[str, Any]) -> Iterator[frozenset[str]]:
    """Give what a pod demands of its node's labels: of each set, at least one label must be published.

    A ``nodeSelector`` entry is a set of its own; the terms of a required node affinity are alternatives.
    """
    for label in pod_spec.get("nodeSelector") or {}:
        yield frozenset({label})
    affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = [
        frozenset(
            expression["key"]
            for expression in term.get("matchExpressions") or ()
            if expression.get("operator") not in ("NotIn", "DoesNotExist")
        )
        for term in required.get("nodeSelectorTerms") or ()
    ]
    if terms and all(terms):
        yield frozenset().union(*terms)
