"""`External`: a declaration of objects in the cluster that the app does not create."""

from __future__ import annotations

import re
from collections.abc import Sequence

from constructs import Construct

from gpu_constructs.errors import refuse_if
from gpu_constructs.facts.provided import Component, GpuRuntime, Provided
from gpu_constructs.kube import fields
from gpu_constructs.tree.construct import GpuConstruct, checked


class External(GpuConstruct):
    """A declaration of what the cluster already contains, so that ``synth`` does not report it as missing.

    Emits nothing.
    """

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
        """Declare the objects, node labels and components that the app does not create.

        Args:
            scope: The App, or a construct in the App. One declaration applies to the whole App.
            id: ID of the construct. Use the name of the tool that creates the objects, for example ``gpu-operator``.
            runtime_classes: Names of RuntimeClass objects, for example ``nvidia``, which the GPU Operator creates.
            node_labels: Keys of node labels, for example ``nvidia.com/gpu.present``, which the GPU Operator or
                ``machine.nodeLabels`` of Talos sets. A trailing ``*`` matches the rest of the key.
            namespaces: Names of Namespaces.
            config_maps: Names of ConfigMaps: ``team/settings`` with the namespace, or ``settings`` for any namespace. A
                trailing ``*`` matches the rest of the name.
            priority_classes: Names of PriorityClass objects.
            secrets: Names of Secrets, written like those of ``config_maps``. Use ``*`` if the app creates no Secret.
            service_accounts: Names of ServiceAccounts, written like those of ``config_maps``.
            gpu_resources: Names of extended resources that other device plugins advertise for GPUs, for example
                ``nvidia.com/gpu-a100``.
            components: Names of components that already run on the GPU nodes, for example ``node-feature-discovery``,
                or ``validation-bridge`` if another app has one.
            gpu_runtime: Method by which containers get their GPUs. ``runtime-class``: each GPU pod must set a runtime
                class. ``default``: the NVIDIA runtime is the default of the nodes. ``cdi``: the device plugin allocates
                GPUs through CDI. None, the default: the library derives it from the objects of the app.

        Raises:
            GpuConstructsError: If Kubernetes would reject a name.
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
