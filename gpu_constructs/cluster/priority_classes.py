"""Which GPU pods give way to which: three priority classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal

from constructs import Construct

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields
from gpu_constructs.tree.construct import GpuObject, checked
from gpu_constructs.tree.manifest import Manifest

Tier = Literal["serving", "notebook", "batch"]

DEFAULT_VALUES: Mapping[Tier, int] = {"serving": 100_000, "notebook": 10_000, "batch": 1_000}
"""Above 0, which pods without a class have, so that what was classed is not evicted for what was not; a factor
of ten apart, so that classes of one's own fit between; far below 1,000,000,000, where system classes begin."""

_HIGHEST = 1_000_000_000
_LOWEST = -(2**31)
_DESCRIPTIONS: Mapping[Tier, str] = {
    "serving": "GPU pods that answer requests: they come before notebooks and batch jobs.",
    "notebook": "GPU pods that somebody sits at: they come before batch jobs and after serving.",
    "batch": "GPU jobs that can start anew: they give way to notebooks and serving.",
}


class GpuPriorityClasses(GpuObject):
    """Three PriorityClasses: serving before notebooks before batch jobs.

    Emits the PriorityClasses ``<prefix>-serving``, ``<prefix>-notebook`` and ``<prefix>-batch``, which have no
    namespace; none is the default of the cluster. Preemption looks at whatever a pod lacks, so a pod of a class
    that preempts evicts pods without a class for cpu or memory too, not for a GPU alone.

    Attributes:
        serving: Name for ``priority_class_name=`` of servers.
        notebook: Name for ``priority_class_name=`` of notebooks.
        batch: Name for ``priority_class_name=`` of jobs.
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        prefix: str = "gpu",
        values: Mapping[Tier, int] | None = None,
        never_preempting: Sequence[Tier] = ("batch",),
    ) -> None:
        """Make the classes.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            prefix: What their names start with.
            values: Priorities that differ from 100000, 10000 and 1000. Cluster Autoscaler adds no node for pods
                below -10.
            never_preempting: Those whose pods wait in the queue rather than evict others; batch jobs by
                default, which can wait.

        Raises:
            GpuConstructsError: The prefix makes no name, or is Kubernetes' own; the values are not serving above
                notebook above batch, or are above 1,000,000,000.

        Source:
            Kubernetes documentation, "Pod Priority and Preemption"
        """
        fields.dns_subdomain("prefix", prefix)
        fields.dns_subdomain("prefix", f"{prefix}-notebook")
        if f"{prefix}-".startswith("system-"):
            raise GpuConstructsError(f"prefix must not start with 'system-', which Kubernetes reserves; got {prefix!r}")
        chosen = {**DEFAULT_VALUES, **(values or {})}
        for tier, value in chosen.items():
            fields.whole_number(
                f"values[{tier!r}]", value, minimum=_LOWEST, maximum=_HIGHEST, way_out="higher ones are the system's"
            )
        for higher, lower in pairwise(DEFAULT_VALUES):
            if chosen[higher] <= chosen[lower]:
                raise GpuConstructsError(
                    f"values[{higher!r}] must be above values[{lower!r}], {chosen[lower]}; got {chosen[higher]}"
                )
        super().__init__(scope, id)
        names = {tier: f"{prefix}-{tier}" for tier in DEFAULT_VALUES}
        self.serving, self.notebook, self.batch = names["serving"], names["notebook"], names["batch"]
        for tier, name in names.items():
            Manifest(
                self,
                "Default" if tier == "serving" else tier,
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "description": _DESCRIPTIONS[tier],
                    "preemptionPolicy": "Never" if tier in never_preempting else "PreemptLowerPriority",
                    "value": chosen[tier],
                },
            )
