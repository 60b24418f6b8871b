"""Declarations of what a cluster already contains: objects, node labels and components that the app does not create."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpu_constructs.errors import refuse_if
from gpu_constructs.facts.provided import Component, GpuRuntime, Provided
from gpu_constructs.kube import fields


def declared(
    *,
    runtime_classes: Sequence[str] = (),
    node_labels: Sequence[str] = (),
    namespaces: Sequence[str] = (),
    config_maps: Sequence[str] = (),
    priority_classes: Sequence[str] = (),
    secrets: Sequence[str] = (),
    service_accounts: Sequence[str] = (),
    gpu_resources: Sequence[str] = (),
    components: Sequence[Component] = (),
    gpu_runtime: GpuRuntime | None = None,
) -> Provided:
    """Return a declaration of what the cluster already contains. The construct ``External`` documents the arguments.

    Raises:
        GpuConstructsError: Kubernetes would reject a name. The message contains the name of the argument.
    """
    for name in runtime_classes:
        fields.dns_subdomain("runtime_classes", name)
    for name in namespaces:
        fields.dns_label("namespaces", name)
    objects = {
        "ConfigMap": ("config_maps", config_maps),
        "PriorityClass": ("priority_classes", priority_classes),
        "Secret": ("secrets", secrets),
        "ServiceAccount": ("service_accounts", service_accounts),
    }
    for keyword, names in objects.values():
        for name in names:
            _object_name(keyword, name)
    fields.labels("gpu_resources", dict.fromkeys(gpu_resources, ""))
    # A key with a trailing star is valid if it is valid with a letter in place of the star.
    fields.labels("node_labels", {re.sub(r"(?<=.)\*\Z", "x", label): "" for label in node_labels})
    return Provided(
        runtime_classes=tuple(runtime_classes),
        node_labels=tuple(node_labels),
        namespaces=tuple(namespaces),
        objects={kind: tuple(names) for kind, (_, names) in objects.items() if names},
        other_gpu_resources=tuple(gpu_resources),
        components=tuple(components),
        gpu_runtime=gpu_runtime,
    )


def _object_name(keyword: str, name: str) -> None:
    namespace, slash, own = name.rpartition("/")
    refuse_if(
        slash and keyword == "priority_classes",
        keyword,
        "be names without a namespace, because PriorityClasses are cluster-scoped",
        name,
    )
    if slash:
        fields.dns_label(keyword, namespace)
    # A name with a trailing star is valid if it is valid with a letter in place of the star.
    fields.dns_subdomain(keyword, re.sub(r"\*\Z", "x", own))
