"""Keys of the annotations that this library reads or writes, and one namespace label that Katib reads."""

VISIBLE_DEVICES_CHOICE = "gpu-constructs/visible-devices"
"""Annotation with the value ``unmanaged`` for an object whose containers set ``NVIDIA_VISIBLE_DEVICES`` themselves."""

IGNORE_RULES = "gpu-constructs/ignore-rules"
"""Annotation with the codes of the checks (rules) that ``synth`` skips for an object, separated by commas."""

VRAM = "gpu-constructs/vram"
"""Annotation with the GPU memory that all containers of a pod together use on each GPU, such as ``8Gi``.

Kubernetes does not count this memory. The annotation is on the object that creates the pods, or on its pod template.
"""

VRAM_TYPICAL = "gpu-constructs/vram-typical"
"""Annotation with the GPU memory that a pod uses on each GPU most of the time, such as ``6Gi``."""

CONFIG_CHECKSUM = "gpu-constructs/config-checksum"
"""Annotation of pods with the checksum of their ConfigMaps, so that a change of a ConfigMap restarts the pods."""

SCRAPED_TWICE = "gpu-constructs/scraped-twice"
"""Annotation of a ServiceMonitor or VMServiceScrape. It allows another such object to scrape the same targets.

Its value is ``intended``. Use it if the two objects are for different metrics stores.
"""

COLLECTOR_INJECTION = {"katib.kubeflow.org/metrics-collector-injection": "enabled"}
"""Label of a namespace in which Katib adds its metrics collector to the pods of trials."""
