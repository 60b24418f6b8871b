"""The time series of a GPU exporter, and PromQL queries that return one value for each GPU.

The exporters have different metrics for the same quantity, such as power in watts. A dialect is the family of metric
names of one exporter: ``dcgm`` or ``nvidia_smi``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube.tables import rows
from gpu_constructs.records import dataclass

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
"""Metrics with a value for each MIG device. Other metrics only repeat the value of the GPU for each MIG device."""


@cache
def quantities() -> Mapping[str, Mapping[str, str]]:
    """Return a dict from each quantity of a GPU, such as ``power``, to its row in ``quantities.csv``.

    The row contains the unit of the quantity, its metric for each dialect, such as ``DCGM_FI_DEV_POWER_USAGE`` for
    ``dcgm``, and the conversion to the unit.
    """
    return {row["quantity"]: row for row in rows(__package__, "quantities.csv")}


class Query(NamedTuple):
    """A PromQL expression, and the names of the metrics that it uses."""

    expr: str
    needs: frozenset[str]


class Labels(NamedTuple):
    """Names of the Prometheus labels that identify a GPU, in the order in which all queries list them."""

    node: str
    gpu: str
    uuid: str
    model: str


@dataclass(frozen=True, kw_only=True)
class GpuSeries:
    """The series that one exporter produces.

    Attributes:
        dialect: Origin of the metric names: ``dcgm`` (DcgmExporter) or ``nvidia_smi`` (NvidiaGpuExporter).
        job: Value of the label ``job``. None if it is unknown, because an object outside of this library scrapes the
            exporter.
        metrics: Names of the exported metrics.
        labels: Names of the labels that identify a GPU.
        pods: Pods in the labels of the series. ``none``: no pod. ``one``: only one pod, even if several pods share the
            GPU. ``all``: each pod that shares the GPU has its own series.
        scrape_interval_seconds: Time between two scrapes, in seconds. 30 if it is unknown.
    """

    dialect: Dialect
    job: str | None
    metrics: frozenset[str]
    labels: Labels
    pods: NamedPods
    scrape_interval_seconds: int = 30

    def metric_of(self, name: str) -> str | None:
        """Return the metric of the exporter for a quantity, such as ``DCGM_FI_DEV_POWER_USAGE`` for ``power``.

        Return None if the exporter has no metric for the quantity. If ``name`` is not a quantity, return it unchanged.
        """
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
        """Return a PromQL query for a metric or a quantity. Return None if the exporter has no metric for the quantity.

        If several pods share a GPU, the exporter may report the same value once for each pod. The query returns this
        value only once, unless ``by`` contains a label of the pod.

        Args:
            name: Name of a metric of the exporter, or of a quantity such as power. ``quantities`` lists the quantities.
                For a quantity, the query converts the value of the metric to the unit of the quantity.
            over: Expression in which ``{}`` stands for the series, such as ``rate({}[5m])``.
            where: Label matchers to add to the series, such as ``pod!=""``.
            boards: Label matchers that select some of the GPUs, such as ``modelName=~".*A100.*"``. Empty: all GPUs.
            node: Regular expression that the node name must match. None: all nodes.
            gpu: Regular expression that the GPU number must match. None: all GPUs.
            by: Further labels of the result, besides those that identify a GPU.
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
            # When a GPU gets another number, two series describe it for some minutes.
            description = f"max by ({', '.join(self.labels)}) ({self.plain(GPU_INFO, of_node, of_gpu)})"
            join = f"* on ({key}) group_left ({self.labels.gpu}, {self.labels.model})"
            expr = f"({value} {join} topk by ({key}) (1, {description}))"
        scale = quantities()[name][f"{self.dialect}_scale"] if name in quantities() else ""
        expr = f"({expr} {scale})" if scale else expr
        if boards and self.dialect == "nvidia_smi":
            # These metrics identify a GPU only by its UUID. Another metric has the other labels of the GPU.
            expr = f"({expr} and on ({key}) {self.plain(GPU_INFO, boards)})"
        return Query(expr, frozenset({metric}))

    def plain(self, name: str, *matchers: str) -> str:
        """Return the PromQL selector of a metric of this exporter, without aggregation or unit conversion.

        Args:
            name: Name of the metric.
            matchers: Label matchers to add, such as ``pod!=""``. The method omits empty ones.
        """
        of_job = f'job="{self.job}"' if self.job is not None else ""
        inside = ",".join(matcher for matcher in (of_job, *matchers) if matcher)
        return f"{name}{{{inside}}}" if inside else name


@runtime_checkable
class KeepsPowerLimits(Protocol):
    """The members of the construct ``PowerLimit`` that the alerts about power limits use, as a protocol."""

    @property
    def name(self) -> str:
        """Name of the DaemonSet."""

    @property
    def namespace(self) -> str:
        """Namespace of the DaemonSet."""

    @property
    def requests(self) -> Sequence[Any]:
        """Requested power limits in order of precedence. Each has the attributes of ``PowerRequest``."""

    @property
    def interval_seconds(self) -> int:
        """Time between two checks of the power limits, in seconds."""

    @property
    def retry_seconds(self) -> int:
        """Time from a check that found a problem until the next check, in seconds."""

    @property
    def out_of_range(self) -> str:
        """Treatment of a limit outside of the range of a board: ``clamp`` or ``refuse``."""


@runtime_checkable
class GpuExporter(Protocol):
    """The members of the exporter constructs that alerts and dashboards use, as a protocol.

    The exporter constructs are ``DcgmExporter`` and ``NvidiaGpuExporter``.
    """

    @property
    def name(self) -> str:
        """Name of the DaemonSet and the Service."""

    @property
    def namespace(self) -> str:
        """Namespace of the objects."""

    @property
    def series(self) -> GpuSeries:
        """Series that the exporter produces."""


def gpu_exporter(given: object) -> GpuExporter:
    """Return the value of the option ``exporter`` after a check that it is an exporter construct.

    Raises:
        GpuConstructsError: If the value is another object.
    """
    if isinstance(given, GpuExporter) and isinstance(given.series, GpuSeries):
        return given
    raise GpuConstructsError(f"exporter must be a DcgmExporter or a NvidiaGpuExporter, got {type(given).__name__}")


def dcgm_series(
    *,
    job: str | None,
    metrics: Collection[str],
    hostname_label: str,
    pods: NamedPods,
    scrape_interval_seconds: int = 30,
) -> GpuSeries:
    """Return the series that a DCGM exporter produces.

    Args:
        job: Value of the label ``job``. None if it is unknown.
        metrics: Exported DCGM fields, except those that only add a label.
        hostname_label: Label with the name of the node: ``Hostname`` or ``hostname``, depending on the release.
        pods: Pods in the labels of the series, as in ``GpuSeries.pods``.
        scrape_interval_seconds: Time between two scrapes, in seconds.
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
    """Return the series that an nvidia_gpu_exporter produces.

    The ServiceMonitor (or object of another kind) from this library adds the label ``node`` to the series.
    """
    return GpuSeries(
        dialect="nvidia_smi",
        job=job,
        metrics=frozenset(metrics),
        labels=Labels(node="node", gpu="index", uuid="uuid", model="name"),
        pods="none",
        scrape_interval_seconds=scrape_interval_seconds,
    )
