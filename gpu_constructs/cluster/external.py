"""Things a cluster has that the app does not create."""

from __future__ import annotations

import re
from collections.abc import Sequence

from constructs import Construct

from gpu_constructs.errors import refuse_if
from gpu_constructs.facts.provided import Component, GpuRuntime, Provided
from gpu_constructs.kube import fields
from gpu_constructs.tree.construct import GpuConstruct, checked


class External(GpuConstruct):
    """Declares what the cluster has from elsewhere, so that ``synth`` does not miss it. Emits nothing."""

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
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
    ) -> None:
        """Declare it.

        Args:
            scope: The App, or anything in it; one declaration serves the whole App.
            id: Say who provides it: ``gpu-operator``, ``talos-node-labels``.
            runtime_classes: RuntimeClass objects, as the GPU Operator makes ``nvidia``.
            node_labels: Labels on nodes, as the GPU Operator or Talos' ``machine.nodeLabels`` set
                ``nvidia.com/gpu.present``; a trailing ``*`` stands for the rest of the key.
            namespaces: Namespaces.
            config_maps: ConfigMaps, as ``team/settings`` or, in whichever namespace, ``settings``; a trailing ``*``
                stands for the rest of the name.
            priority_classes: PriorityClass objects.
            secrets: Secrets, likewise: ``team/hugging-face``, or ``*`` where no Secret is made by this app.
            service_accounts: ServiceAccounts, likewise.
            gpu_resources: Names under which other device plugins advertise GPUs: ``nvidia.com/gpu-a100``.
            components: What runs on the GPU nodes already, as ``node-feature-discovery`` or a
                ``validation-bridge`` of another app.
            gpu_runtime: How containers get at their GPUs: ``runtime-class`` where each GPU pod must name one,
                ``default`` where NVIDIA's is the nodes' default runtime, ``cdi`` where the device plugin hands
                them out by CDI. None: what the objects of the app let on.

        Raises:
            GpuConstructsError: A name that Kubernetes would not take.
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
        # With a letter for the star, what is left must be a key.
        fields.labels("node_labels", {re.sub(r"(?<=.)\*\Z", "x", label): "" for label in node_labels})
        super().__init__(scope, id)
        self.provides = Provided(
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
    refuse_if(slash and keyword == "priority_classes", keyword, "be names alone, for they are in no namespace", name)
    if slash:
        fields.dns_label(keyword, namespace)
    # With a letter for the star, what is left must be a name.
    fields.dns_subdomain(keyword, re.sub(r"\*\Z", "x", own))
