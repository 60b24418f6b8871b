"""Rewriter of texts of plans: plans speak to authors of apps, and ``plan`` speaks to readers of manifests."""

from __future__ import annotations

import re

from gpu_constructs.capacity.report import words

_WORDS: tuple[tuple[str, str], ...] = (
    (r" \(GpuRequest\(vram=\.\.\.\) does so if its GpuProfile has this sharing\)", ""),
    (
        r"with Sharing\.time_slicing\(replicas=(\d+)[^)]*\) for the device plugin",
        r"(\1 replicas) for the device plugin",
    ),
    (r" for the device plugin and the GpuProfile", " in the configuration of the device plugin"),
    (r" in the DevicePluginChart or GpuOperator, and in the GpuProfile", " in the configuration of the device plugin"),
    (r"GpuNode\((\w+)=(?:\.\.\.)?\)", r"\1: in the inventory"),
    (r"GpuRequest\(vram=\.\.\.\)", "the annotation gpu-constructs/vram"),
    (r"Sharing\.vram_units\([^)]*\)", "slots that stand for memory"),
    (r"Sharing\.time_slicing\(replicas=(\d+)[^)]*\)", r"time-slicing with \1 replicas"),
    (r"Sharing\.none\(\)", "exclusive GPUs"),
    (r"with PowerLimit or ", "or set "),
    (r"gpu_node\.sharing of", "the sharing of node"),
    (r"\b(?:this|the) app's device plugin", "the configuration of the device plugin"),
    (r"\bthe app suspends, pauses or stops", "the manifests suspend, pause or stop"),
    (r"\b(this|the) app's", "the manifests'"),
    (r"\b(this|the) app does", "the manifests do"),
    (r"\b(this|the) app has", "the manifests have"),
    (r"\b(this|the) app (share|set|contain|support)s", r"the manifests \2"),
    (r"\bin this app\b", "among the manifests"),
    (r"\b(this|the) app\b", "the manifests"),
)
"""Regular expressions for words of this library, and the words of ``plan``."""


def for_manifests(text: str) -> str:
    """Reword a text of a capacity plan for users of the command, and return it.

    The result speaks of manifests and inventories instead of Python code.

    The result contains no control characters.
    """
    for pattern, replacement in _WORDS:
        text = re.sub(pattern, replacement, text)
    return words.readable(text)
