"""`GpuPriorityClasses`: three priority classes that rank GPU pods."""

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
"""Priorities of the three PriorityClasses. All are above 0, the priority of pods without a PriorityClass.

Pods without a PriorityClass therefore never evict pods of these classes. The values differ by a factor of ten, so that
users can add classes between them. The system classes of Kubernetes have priorities above 1,000,000,000.
"""

_HIGHEST = 1_000_000_000
_LOWEST = -(2**31)
_DESCRIPTIONS: Mapping[Tier, str] = {
    "serving": "GPU pods that answer requests. They take precedence over notebooks and batch jobs.",
    "notebook": "GPU pods for interactive work. They take precedence over batch jobs, but not over serving.",
    "batch": "GPU jobs that can restart. Notebooks and serving take precedence over them.",
}


class GpuPriorityClasses(GpuObject):
    """Three PriorityClasses for GPU pods: servers rank above notebooks, and notebooks rank above batch jobs.

    Emits the cluster-scoped PriorityClasses ``<prefix>-serving``, ``<prefix>-notebook`` and ``<prefix>-batch``. None of
    them is the default of the cluster. To make room for a server or a notebook, the scheduler can evict pods without a
    PriorityClass, even if the nodes have free GPUs and lack only CPU or memory.

    Attributes:
        serving: Name of the class for servers. Pass it as ``priority_class_name`` of a workload.
        notebook: Name of the class for notebooks.
        batch: Name of the class for batch jobs.
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
        """Create the three PriorityClasses.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct.
            prefix: Prefix of the names of the classes.
            values: Priorities by class, for example ``{"serving": 200000}``. They override the defaults: 100000 for
                ``serving``, 10000 for ``notebook`` and 1000 for ``batch``. Cluster Autoscaler adds no node for pods
                with a priority below -10.
            never_preempting: Classes whose pods wait for free resources and do not evict other pods. The default is
                ``batch``, because batch jobs can wait.

        Raises:
            GpuConstructsError: If the prefix results in an invalid name or a name that Kubernetes reserves, if the
                values do not rank serving above notebook above batch, or if a value is above 1,000,000,000.

        Source:
            Kubernetes documentation, "Pod Priority and Preemption"
        """
        fields.dns_subdomain("prefix", prefix)
        fields.dns_subdomain("prefix", f"{prefix}-notebook")
        if f"{prefix}-".startswith("system-"):
            raise GpuConstructsError(f"prefix must not start with 'system-', which Kubernetes reserves, got {prefix!r}")
        chosen = {**DEFAULT_VALUES, **(values or {})}
        for tier, value in chosen.items():
            fields.whole_number(
                f"values[{tier!r}]",
                value,
                minimum=_LOWEST,
                maximum=_HIGHEST,
                way_out="Higher values belong to the system",
            )
        for higher, lower in pairwise(DEFAULT_VALUES):
            if chosen[higher] <= chosen[lower]:
                raise GpuConstructsError(
                    f"values[{higher!r}] must be above values[{lower!r}] ({chosen[lower]}), got {chosen[higher]}"
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
