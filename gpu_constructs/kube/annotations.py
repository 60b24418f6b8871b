"""The annotations by which an object tells something to this library, or this library to others."""

VISIBLE_DEVICES_CHOICE = "gpu-constructs/visible-devices"
"""On an object that chooses its GPUs by itself: ``unmanaged``."""

IGNORE_RULES = "gpu-constructs/ignore-rules"
"""Codes of rules that are not held against an object, with commas between."""

VRAM = "gpu-constructs/vram"
"""What a pod will take of the memory of each GPU that it holds, its containers together, as a quantity; nothing in
Kubernetes counts it. On an object it is about each of its pods; a pod template may have it instead."""

VRAM_TYPICAL = "gpu-constructs/vram-typical"
"""What it takes of that most of the time, as a quantity."""

CONFIG_CHECKSUM = "gpu-constructs/config-checksum"
"""On pods: the checksum of the ConfigMaps they read, so that a change restarts them."""

SCRAPED_TWICE = "gpu-constructs/scraped-twice"
"""On a scrape object whose targets another one has too, for another store: ``intended``."""

COLLECTOR_INJECTION = {"katib.kubeflow.org/metrics-collector-injection": "enabled"}
"""The label of a namespace in which Katib adds its collector to the pods of trials."""
