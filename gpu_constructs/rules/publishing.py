"""Node labels that objects of any origin publish."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpu_constructs.pod_specs import containers

Manifest = Mapping[str, Any]

KINDS = (("nfd.k8s-sigs.io", "NodeFeatureRule"), ("nfd.k8s-sigs.io", "NodeFeature"))
"""Objects that say which labels Node Feature Discovery is to write."""

_NFD_DOMAIN = "feature.node.kubernetes.io/"
_OF_NFD = (f"{_NFD_DOMAIN}*",)
# NVIDIA/k8s-device-plugin@v0.20.0:internal/lm
# nvidia.com/gpu.present is not among them: only the GPU Operator, a rule or somebody by hand sets it.
_OF_GFD = (
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
_BY_IMAGE = {"node-feature-discovery": _OF_NFD, _GFD: _OF_GFD, "gpu-operator": ("nvidia.com/*",)}


def labels_of_rules(manifests: Iterable[Manifest]) -> Iterator[str]:
    """Give the labels that objects have Node Feature Discovery write."""
    for manifest in manifests:
        spec = manifest.get("spec") or {}
        for holder in (spec, *(spec.get("rules") or ())):
            for key in (*(holder.get("labels") or ()), *_templated(holder.get("labelsTemplate"))):
                yield key if "/" in key else _NFD_DOMAIN + key


def _templated(template: object) -> Iterator[str]:
    for line in template.splitlines() if isinstance(template, str) else ():
        key, brace, _ = line.strip().partition("=")[0].partition("{{")
        if key:
            yield key + "*" if brace else key


def labels_of_pod(spec: Manifest) -> Iterator[str]:
    """Give the labels that a pod publishes, as its images let on."""
    for container in containers(spec):
        repository = str(container.get("image") or "").partition("@")[0].rpartition("/")[2].partition(":")[0]
        yield from _BY_IMAGE.get(repository, ())
        # The image of the plugin holds GPU Feature Discovery too, by its command.
        if repository == "k8s-device-plugin" and _GFD in f"{container.get('command')} {container.get('args')}":
            yield from _OF_GFD
