"""A function that adapts the texts of capacity plans to users of ``plan``, who may have only manifests."""

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
"""Pairs: a regular expression for a term of Python code, and the text by which ``plan`` replaces the term."""


def for_manifests(text: str) -> str:
    """Return a text of a capacity plan, with terms of manifests and inventories in place of Python code.

    For example, ``the manifests`` replaces ``this app``. The result contains no control characters.
    """
    for pattern, replacement in _WORDS:
        text = re.sub(pattern, replacement, text)
    return words.readable(text)
