"""The labels that the kubelet, Node Feature Discovery and GPU Feature Discovery set on a GPU node."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from gpu_constructs.catalog.gpu_models import GpuModel, product_label
from gpu_constructs.catalog.inventory import GpuNode
from gpu_constructs.catalog.mig_profiles import memory_gb, mig_resource, mig_vram_mib, size_of
from gpu_constructs.catalog.nfd_labels import NfdLabels
from gpu_constructs.catalog.sharing import GPU, Sharing
from gpu_constructs.kube import fields
from gpu_constructs.kube.placement import GPU_PCI_PRESENT, GPU_PRESENT, HOSTNAME

MigStrategy = Literal["none", "single", "mixed"]


# Compute capabilities from developer.nvidia.com/cuda-gpus: architecture, pattern of the board name, and version.
# If the boards of an architecture differ, its last row matches all other boards and has the major version only.
_COMPUTE: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("Volta", r"(?:Tesla )?V100|TITAN V|Quadro GV100", (7, 0)),
    ("Volta", "", (7,)),
    ("Turing", "", (7, 5)),
    ("Ampere", r"A100|A30(?![0-9])|A800", (8, 0)),
    ("Ampere", r"GeForce|RTX A|A2(?![0-9])|A10|A16|A40", (8, 6)),
    ("Ampere", "", (8,)),
    ("Ada Lovelace", "", (8, 9)),
    ("Hopper", "", (9, 0)),
    ("Blackwell", r"G?B200", (10, 0)),
    ("Blackwell", r"G?B300", (10, 3)),
    ("Blackwell", r"GeForce|RTX", (12, 0)),
)
_OF_SHARING = fields.regex(
    r"nvidia\.com/(?:gpu\.(?:count|memory|product|replicas|sharing-strategy)|mig-.*|mig\.strategy|mps\.capable)\Z"
)


def labels_of(
    node: GpuNode,
    sharing: Sharing,
    mig_strategy: MigStrategy = "none",
    declared: Mapping[str, str] | None = None,
    nfd: NfdLabels | None = None,
) -> dict[str, str]:
    """Return the labels of a node that the library can derive before the node runs.

    Args:
        node: Node or node pool. For a pool, the result has no hostname.
        sharing: Sharing of GPUs in the configuration of the device plugin and of GPU Feature Discovery.
        mig_strategy: MIG strategy in the configuration of the device plugin and of GPU Feature Discovery.
        declared: Labels that the user sets in the inventory or in a node configuration. They override derived labels.
            None: the labels in the inventory.
        nfd: Labels that the app's Node Feature Discovery publishes. None: the library does not know these labels.

    Source:
        NVIDIA/k8s-device-plugin@v0.20.0:internal/lm
    """
    hostname = {HOSTNAME: node.name} if node.count == 1 else {}
    present = {GPU_PRESENT: "true"}
    if nfd is not None and nfd.publishes(GPU_PCI_PRESENT):
        present[GPU_PCI_PRESENT] = "true"
    discovered = _discovered(node, sharing, mig_strategy)
    stated = node.labels if declared is None else declared
    return {"kubernetes.io/os": "linux", **hostname, **present, **discovered, **stated}


def is_of_sharing(label: str) -> bool:
    """Check whether the value of a node label depends on the sharing of GPUs or on the MIG strategy.

    For example, the label ``nvidia.com/gpu.replicas`` depends on the sharing of GPUs.
    """
    return _OF_SHARING.match(label) is not None


def single_profile(layouts: Sequence[Mapping[str, int]]) -> str | None:
    """Return the MIG profile of a node if the MIG strategy ``single`` works there. Otherwise, return None.

    The strategy works if every board has MIG devices, and all MIG devices have the same profile.
    """
    profiles = {profile for layout in layouts for profile in layout}
    return next(iter(profiles)) if len(profiles) == 1 and all(layouts) else None


def _discovered(node: GpuNode, sharing: Sharing, mig_strategy: MigStrategy) -> dict[str, str]:
    layouts = node.layouts
    is_divided = any(layouts)
    # On a node with MPS, GPU Feature Discovery sets no labels if a board has MIG.
    if is_divided and sharing.strategy == "mps":
        return {}
    labels = {"nvidia.com/mps.capable": str(sharing.strategy == "mps").lower(), **_mig(node, mig_strategy)}
    model = node.model
    # If only some boards have MIG devices, the labels describe the other boards.
    is_shareable = not all(layouts)
    labels |= _resource(GPU, sharing if is_shareable else None, model, len(layouts), node.vram_mib)
    labels |= _architecture(model)
    if mig_strategy == "single" and is_divided:
        # The memory label describes MIG devices here, not boards.
        labels.pop(f"{GPU}.memory", None)
        labels |= _single(node, sharing)
    if mig_strategy == "mixed":
        for profile in sorted({profile for layout in layouts for profile in layout}):
            count = sum(layout.get(profile, 0) for layout in layouts)
            memory = measured_mig_mib(model, profile)
            labels |= _resource(mig_resource(profile), sharing, model, count, memory, profile)
    # Node Feature Discovery drops labels with invalid values (nfd-master, "ignoring label").
    return {key: value for key, value in labels.items() if fields.is_label_value(value)}


def _mig(node: GpuNode, mig_strategy: MigStrategy) -> dict[str, str]:
    is_capable = True if any(node.layouts) else None if node.mig_profiles is None else bool(node.mig_profiles)
    capable = {} if is_capable is None else {"nvidia.com/mig.capable": str(is_capable).lower()}
    return capable if mig_strategy == "none" else {**capable, "nvidia.com/mig.strategy": mig_strategy}


def _single(node: GpuNode, sharing: Sharing) -> dict[str, str]:
    profile = single_profile(node.layouts)
    if profile is not None:
        count = sum(sum(layout.values()) for layout in node.layouts)
        return _resource(GPU, sharing, node.model, count, measured_mig_mib(node.model, profile), profile)
    product = {} if node.model is None else {f"{GPU}.product": f"{product_label(node.model.name)}-MIG-INVALID"}
    return {**product, f"{GPU}.count": "0", f"{GPU}.replicas": "0", f"{GPU}.sharing-strategy": "", f"{GPU}.memory": "0"}


def _resource(
    resource: str, sharing: Sharing | None, model: GpuModel | None, count: int, mib: int | None, profile: str = ""
) -> dict[str, str]:
    """Return the node labels that GPU Feature Discovery sets for one resource, such as ``nvidia.com/gpu.count``.

    Args:
        resource: Name of the resource.
        sharing: Sharing of the GPUs; None if the resource stands for whole boards, but every board has MIG devices. The
            label for replicas is then 0.
        model: Model of the boards; None if it is not known.
        count: Number of boards or MIG devices.
        mib: Memory of a board or MIG device in MiB; None if it is not known.
        profile: MIG profile of the devices. Default: empty, for whole boards.
    """
    replicas = 0 if sharing is None else sharing.resources.get(resource, 1)
    labels = {
        f"{resource}.count": str(count),
        f"{resource}.replicas": str(replicas),
        f"{resource}.sharing-strategy": sharing.strategy if sharing is not None and replicas > 1 else "none",
    }
    if mib is not None:
        labels[f"{resource}.memory"] = str(mib)
    if model is not None:
        divided = f"-MIG-{profile.replace('+', '.')}" if profile else ""
        has_suffix = replicas > 1 and sharing is not None and not sharing.rename_by_default
        labels[f"{resource}.product"] = f"{product_label(model.name)}{divided}{'-SHARED' if has_suffix else ''}"
    return labels


def measured_mig_mib(model: GpuModel | None, profile: str) -> int | None:
    """Return the measured memory in MiB of a MIG device. Return None if no measurement exists.

    The name of a MIG profile states only an upper bound of the memory, for example 5 GiB for ``1g.5gb``.
    """
    if model is None:
        return None
    mib, size = mig_vram_mib(model.name, profile), size_of(profile)
    return None if size is None or mib in (memory_gb(size) * 1024, model.vram_mib) else mib


def _architecture(model: GpuModel | None) -> dict[str, str]:
    if model is None:
        return {}
    bare = model.name.removeprefix("NVIDIA ")
    rows = (row for row in _COMPUTE if row[0] == model.architecture and re.match(row[1], bare))
    versions = zip(("major", "minor"), next(rows, ("", "", ()))[2], strict=False)
    compute = {f"{GPU}.compute.{part}": str(number) for part, number in versions}
    return {f"{GPU}.family": model.architecture.lower().replace(" ", "-"), **compute}
