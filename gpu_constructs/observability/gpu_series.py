"""Series of an exporter, as alerts and dashboards query them: one value per GPU, in one unit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube.tables import rows

Dialect = Literal["dcgm", "nvidia_smi"]
NamedPods = Literal["none", "one", "all"]

GPU_INFO = "nvidia_smi_gpu_info"
_PER_INSTANCE = frozenset(
    {
        *(f"DCGM_FI_DEV_FB_{name}" for name in ("USED", "FREE", "RESERVED")),
        "DCGM_FI_PROF_SM_OCCUPANCY",
        *(
            f"DCGM_FI_PROF_{name}_ACTIVE"
            for name in ("GR_ENGINE", "SM", "PIPE_TENSOR", "PIPE_FP64", "PIPE_FP32", "PIPE_FP16", "DRAM")
        ),
    }
)
"""Metrics of a MIG GPU that exist once per instance; others are those of the whole GPU, repeated for each instance."""


@cache
def quantities() -> Mapping[str, Mapping[str, str]]:
    """Return each quantity with its unit, its metric for each dialect, and what converts the metric to the unit."""
    return {row["quantity"]: row for row in rows(__package__, "quantities.csv")}


class Query(NamedTuple):
    """An expression in PromQL, and the metrics without which it has no answer."""

    expr: str
    needs: frozenset[str]


class Labels(NamedTuple):
    """Names of the labels that identify a GPU, in the order in which every answer has them."""

    node: str
    gpu: str
    uuid: str
    model: str


@dataclass(frozen=True, kw_only=True)
class GpuSeries:
    """The series of one exporter.

    Attributes:
        dialect: ``dcgm`` (DcgmExporter) or ``nvidia_smi`` (NvidiaGpuExporter).
        job: Value of the label ``job``; None if it is unknown, because an object of the user scrapes.
        metrics: Names of the metrics that are exported.
        labels: Names of the labels that identify a GPU.
        pods: Whether series of a GPU in use name its pod: ``none``; ``one``, if several pods share a GPU, only one
            of them; ``all``, each pod that shares has its own series.
        scrape_interval_seconds: Seconds between two scrapes; 30 if unknown.
    """

    dialect: Dialect
    job: str | None
    metrics: frozenset[str]
    labels: Labels
    pods: NamedPods
    scrape_interval_seconds: int = 30

    def metric_of(self, name: str) -> str | None:
        """Return the metric behind a quantity or of this name, or None if this exporter has none for a quantity."""
        return quantities()[name][self.dialect] or None if name in quantities() else name

    def query(
        self,
        name: str,
        *,
        over: str = "{}",
        where: str = "",
        boards: str = "",
        node: str | None = None,
        gpu: str | None = None,
        by: Collection[str] = (),
    ) -> Query | None:
        """Return the query for a quantity in its unit or for a metric, one value per GPU; None without a metric.

        If several pods share a GPU, it may be reported once for each of them, with the same value. Without ``by``
        these reports become one again, so that nothing is counted twice.

        Args:
            name: Name of the quantity or of the metric.
            over: Expression around the series, such as ``rate({}[5m])``.
            where: Further matchers of the series, such as ``pod!=""``.
            boards: Matchers of labels of a GPU.
            node: Regular expression of the nodes.
            gpu: Regular expression of the numbers of the GPUs.
            by: Further labels to keep apart.
        """
        metric = self.metric_of(name)
        if metric is None:
            return None
        of_node = f'{self.labels.node}=~"{node}"' if node is not None else ""
        of_gpu = f'{self.labels.gpu}=~"{gpu}"' if gpu is not None else ""
        key = f"{self.labels.node}, {self.labels.uuid}"
        if self.dialect == "dcgm":
            instance = ("GPU_I_ID",) if not by and metric in _PER_INSTANCE else ()
            kept = ", ".join((*self.labels, *instance, *by))
            expr = f"max by ({kept}) ({over.format(self.plain(metric, of_node, of_gpu, where, boards))})"
        else:
            value = f"max by ({', '.join((key, *by))}) ({over.format(self.plain(metric, of_node, where))})"
            # If a GPU has just got another number, it is described twice for some minutes.
            description = f"max by ({', '.join(self.labels)}) ({self.plain(GPU_INFO, of_node, of_gpu)})"
            join = f"* on ({key}) group_left ({self.labels.gpu}, {self.labels.model})"
            expr = f"({value} {join} topk by ({key}) (1, {description}))"
        scale = quantities()[name][f"{self.dialect}_scale"] if name in quantities() else ""
        expr = f"({expr} {scale})" if scale else expr
        if boards and self.dialect == "nvidia_smi":
            # Metrics carry the UUID alone; the other labels are those of another metric.
            expr = f"({expr} and on ({key}) {self.plain(GPU_INFO, boards)})"
        return Query(expr, frozenset({metric}))

    def plain(self, name: str, *matchers: str) -> str:
        """Return the series of a metric of this exporter as they were scraped."""
        of_job = f'job="{self.job}"' if self.job is not None else ""
        inside = ",".join(matcher for matcher in (of_job, *matchers) if matcher)
        return f"{name}{{{inside}}}" if inside else name


@runtime_checkable
class KeepsPowerLimits(Protocol):
    """What ``PowerLimit`` tells of itself."""

    @property
    def name(self) -> str:
        """Name of its DaemonSet."""

    @property
    def namespace(self) -> str:
        """Namespace it lives in."""

    @property
    def wishes(self) -> Sequence[Any]:
        """Each with target, pattern, watts and percent, in the order in which they win."""

    @property
    def interval_seconds(self) -> int:
        """Seconds between two looks."""

    @property
    def retry_seconds(self) -> int:
        """Seconds until the next look after one that found a problem."""

    @property
    def out_of_range(self) -> str:
        """``clamp`` or ``refuse``."""


@runtime_checkable
class GpuExporter(Protocol):
    """A construct that exports the metrics of GPUs."""

    @property
    def name(self) -> str:
        """Name of its DaemonSet and its Service."""

    @property
    def namespace(self) -> str:
        """Namespace it lives in."""

    @property
    def series(self) -> GpuSeries:
        """What it publishes."""


def gpu_exporter(given: object) -> GpuExporter:
    """Return the exporter that a user hands over, if it is one.

    Raises:
        GpuConstructsError: It is none.
    """
    if isinstance(given, GpuExporter) and isinstance(given.series, GpuSeries):
        return given
    raise GpuConstructsError(f"exporter must be a DcgmExporter or a NvidiaGpuExporter; got {type(given).__name__}")


def dcgm_series(
    *,
    job: str | None,
    metrics: Collection[str],
    hostname_label: str,
    pods: NamedPods,
    scrape_interval_seconds: int = 30,
) -> GpuSeries:
    """Return the series of the DCGM exporter.

    Args:
        job: See ``GpuSeries``.
        metrics: Fields that are exported, without those that are labels.
        hostname_label: ``Hostname`` or ``hostname``, as the release writes it.
        pods: See ``GpuSeries``.
        scrape_interval_seconds: See ``GpuSeries``.
    """
    return GpuSeries(
        dialect="dcgm",
        job=job,
        metrics=frozenset(metrics),
        labels=Labels(node=hostname_label, gpu="gpu", uuid="UUID", model="modelName"),
        pods=pods,
        scrape_interval_seconds=scrape_interval_seconds,
    )


def nvidia_smi_series(*, job: str | None, metrics: Collection[str], scrape_interval_seconds: int = 30) -> GpuSeries:
    """Return the series of nvidia_gpu_exporter, whose node is a label that our scrape objects add."""
    return GpuSeries(
        dialect="nvidia_smi",
        job=job,
        metrics=frozenset(metrics),
        labels=Labels(node="node", gpu="index", uuid="uuid", model="name"),
        pods="none",
        scrape_interval_seconds=scrape_interval_seconds,
    )
