"""`NvidiaRuntimeClass`: the runtime class that selects the NVIDIA container runtime."""

from __future__ import annotations

from constructs import Construct

from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.kube import fields, references
from gpu_constructs.tree.construct import GpuObject, checked
from gpu_constructs.tree.manifest import Manifest


class NvidiaRuntimeClass(GpuObject):
    """A RuntimeClass that makes containerd run pods with the NVIDIA container runtime.

    Emits one RuntimeClass, which is cluster-scoped. A cluster needs this object only once. ``DevicePluginChart`` also
    creates it, unless you pass an existing RuntimeClass. The GPU Operator creates its own RuntimeClass.
    """

    @checked
    def __init__(self, scope: Construct, id: str, *, name: str = "nvidia", handler: str = "nvidia") -> None:
        """Create the runtime class.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct.
            name: Name of the RuntimeClass, which pods use as ``runtimeClassName``.
            handler: Name of the runtime in the configuration of containerd. ``nvidia`` by default. The NVIDIA Container
                Toolkit and its Talos system extension register this name.

        Raises:
            GpuConstructsError: If the name is not a DNS subdomain or the handler is not a DNS label.

        Source:
            siderolabs/extensions:nvidia-gpu/nvidia-container-toolkit/10-nvidia-container-runtime.part
        """
        fields.dns_subdomain("name", name)
        fields.dns_label("handler", handler)
        super().__init__(scope, id)
        self.name = name
        Manifest(
            self,
            "Default",
            {
                "apiVersion": "node.k8s.io/v1",
                "kind": "RuntimeClass",
                "metadata": {"name": name},
                "handler": handler,
            },
        )


def runtime_class_name(given: object, platform: Platform) -> str | None:
    """Return the ``runtimeClassName`` of a GPU pod. Return None if the pod needs no runtime class.

    Args:
        given: Name or object of the runtime class that the user sets. None: the runtime class of the platform, if the
            platform needs one.
        platform: Platform of the cluster.
    """
    if given is None:
        return platform.runtime_class
    return references.name_of("runtime_class", given, "RuntimeClass")
