"""Keys of the annotations that this library reads or writes, and one namespace label that Katib reads."""

VISIBLE_DEVICES_CHOICE = "gpu-constructs/visible-devices"
"""Annotation with the value ``unmanaged`` for an object that sets ``NVIDIA_VISIBLE_DEVICES`` itself."""

IGNORE_RULES = "gpu-constructs/ignore-rules"
"""Annotation with the codes of the rules that ``synth`` does not apply to an object, separated by commas."""

VRAM = "gpu-constructs/vram"
"""Annotation with the GPU memory that all containers of a pod together use on each GPU, as a quantity.

Kubernetes does not count this memory. The annotation is on the object that creates the pods, or on its pod template.
"""

VRAM_TYPICAL = "gpu-constructs/vram-typical"
"""Annotation with the GPU memory that a pod uses on each GPU most of the time, as a Kubernetes quantity."""

CONFIG_CHECKSUM = "gpu-constructs/config-checksum"
"""Annotation of pods with the checksum of their ConfigMaps, so that a change of a ConfigMap restarts the pods."""

SCRAPED_TWICE = "gpu-constructs/scraped-twice"
"""Annotation of a scrape object, such as a ServiceMonitor, that allows another one to scrape the same targets.

Its value is ``intended``. Use it if the two scrape objects are for different metrics stores.
"""

COLLECTOR_INJECTION = {"katib.kubeflow.org/metrics-collector-injection": "enabled"}
"""Label of a namespace in which Katib adds its metrics collector to the pods of trials."""
