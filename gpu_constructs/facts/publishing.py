"""Functions that find the node labels which objects and pods publish, for example those of GPU Feature Discovery."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpu_constructs.catalog import nfd_labels
from gpu_constructs.kube.pod_specs import containers

Manifest = Mapping[str, Any]

KINDS = (("nfd.k8s-sigs.io", "NodeFeatureRule"), ("nfd.k8s-sigs.io", "NodeFeature"))
"""Kinds of objects that define node labels for Node Feature Discovery."""

_OF_NFD = (f"{nfd_labels.DOMAIN}*",)
# NVIDIA/k8s-device-plugin@v0.20.0:internal/lm
# GPU Feature Discovery does not set nvidia.com/gpu.present. The GPU Operator, a rule or a user sets it.
OF_GFD = (
    *(
        "nvidia.com/cuda.*",
        "nvidia.com/gfd.timestamp",
        "nvidia.com/mig*",
        "nvidia.com/mps.capable",
        "nvidia.com/vgpu.*",
    ),
    *(
        f"nvidia.com/gpu.{what}"
        for what in (
            *("clique", "compute.*", "count", "engines.*", "family", "machine", "memory", "mode", "multiprocessors"),
            *("product", "replicas", "sharing-strategy", "slices.*"),
        )
    ),
)
_GFD = "gpu-feature-discovery"
_BY_IMAGE = {"node-feature-discovery": _OF_NFD, _GFD: OF_GFD, "gpu-operator": ("nvidia.com/*",)}


def labels_of_rules(manifests: Iterable[Manifest]) -> Iterator[str]:
    """Yield the node labels that NodeFeatureRule and NodeFeature objects define.

    Node Feature Discovery publishes these labels on nodes.

    Args:
        manifests: NodeFeatureRule and NodeFeature objects.
    """
    for manifest in manifests:
        spec = manifest.get("spec") or {}
        yield from nfd_labels.labels_of_rules((spec, *(spec.get("rules") or ())))


def labels_of_pod(spec: Manifest) -> Iterator[str]:
    """Yield the node labels that the containers of a pod publish, such as ``nvidia.com/gpu.count``.

    The function recognizes Node Feature Discovery, GPU Feature Discovery and the GPU Operator by their images. A label
    that ends with ``*`` stands for all labels with the same start.

    Args:
        spec: Pod spec.
    """
    for container in containers(spec):
        repository = str(container.get("image") or "").partition("@")[0].rpartition("/")[2].partition(":")[0]
        yield from _BY_IMAGE.get(repository, ())
        # The image of the device plugin also contains GPU Feature Discovery. The command selects the program.
        if repository == "k8s-device-plugin" and _GFD in f"{container.get('command')} {container.get('args')}":
            yield from OF_GFD
