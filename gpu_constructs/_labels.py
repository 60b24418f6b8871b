"""The labels every object of ours carries, by Kubernetes' recommended keys."""

from __future__ import annotations


def selector_labels(*, name: str, instance: str, component: str) -> dict[str, str]:
    """Give the labels that tell the pods of one workload from all others; they never change."""
    return {
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/instance": instance,
        "app.kubernetes.io/component": component,
    }


def object_labels(selector: dict[str, str], *, version: str | None = None) -> dict[str, str]:
    """Give the labels of an object: its selector's, the release it runs, and who wrote it."""
    release = {"app.kubernetes.io/version": version} if version else {}
    return {**selector, **release, "app.kubernetes.io/managed-by": "cdk8s"}
