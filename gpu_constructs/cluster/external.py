"""`External`: a declaration of objects in the cluster that the app does not create."""

from __future__ import annotations

from collections.abc import Sequence

from constructs import Construct

from gpu_constructs.facts.externals import declared
from gpu_constructs.facts.provided import Component, GpuRuntime
from gpu_constructs.tree.construct import GpuConstruct, checked


class External(GpuConstruct):
    """A declaration of objects, node labels and components that the cluster contains but the app does not create.

    ``synth`` does not report them as missing. The construct emits no objects.
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
            secrets: Names of Secrets, written like those of ``config_maps``. ``*`` matches every Secret.
            service_accounts: Names of ServiceAccounts, written like those of ``config_maps``.
            gpu_resources: Names of GPU resources that device plugins outside of the app advertise, for example
                ``nvidia.com/gpu-a100``.
            components: Names of components that already run on the GPU nodes, for example ``node-feature-discovery``.
                Use ``validation-bridge`` if another app contains a ``ValidationBridge``.
            gpu_runtime: Method by which containers get their GPUs. ``runtime-class``: each GPU pod must set a runtime
                class. ``default``: the NVIDIA runtime is the default of the nodes. ``cdi``: the device plugin allocates
                GPUs through CDI. None, the default: the library derives the method from the objects of the app.

        Raises:
            GpuConstructsError: If Kubernetes would reject a name.
        """
        provides = declared(
            runtime_classes=runtime_classes,
            node_labels=node_labels,
            namespaces=namespaces,
            config_maps=config_maps,
            priority_classes=priority_classes,
            secrets=secrets,
            service_accounts=service_accounts,
            gpu_resources=gpu_resources,
            components=components,
            gpu_runtime=gpu_runtime,
        )
        super().__init__(scope, id)
        self.provides = provides
