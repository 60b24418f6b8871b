"""The runtime class that leads a pod to the NVIDIA container runtime."""

from __future__ import annotations

from constructs import Construct

from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.kube import fields, references
from gpu_constructs.tree.construct import GpuObject, checked
from gpu_constructs.tree.manifest import Manifest


class NvidiaRuntimeClass(GpuObject):
    """A RuntimeClass whose handler is the containerd runtime of the NVIDIA container toolkit.

    Emits one RuntimeClass, which has no namespace. A cluster needs it once: ``DevicePluginChart`` makes it
    unless it is handed one, and the GPU Operator makes its own.
    """

    @checked
    def __init__(self, scope: Construct, id: str, *, name: str = "nvidia", handler: str = "nvidia") -> None:
        """Make the runtime class.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            name: What pods write as ``runtimeClassName``.
            handler: The runtime's name in containerd's configuration. ``nvidia`` is what Talos' toolkit
                extension and NVIDIA's own toolkit register.

        Raises:
            GpuConstructsError: The name is not a DNS subdomain or the handler is not a DNS label.

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
    """Return the ``runtimeClassName`` of a GPU pod: what was asked for, else what the platform needs."""
    if given is None:
        return platform.runtime_class
    return references.name_of("runtime_class", given, "RuntimeClass")
