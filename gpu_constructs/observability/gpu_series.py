"""What an exporter tells about a GPU, as alerts and dashboards ask for it: one value per GPU, in one unit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

Quantity = Literal[
    "utilization",
    "copy_utilization",
    "encoder_utilization",
    "decoder_utilization",
    "vram_used",
    "vram_free",
    "vram_reserved",
    "temperature",
    "memory_temperature",
    "slowdown_temperature",
    "power",
    "power_limit",
    "power_limit_min",
    "power_limit_max",
    "power_limit_default",
    "enforced_power_limit",
    "energy",
    "sm_clock",
    "memory_clock",
    "fan_speed",
    "performance_state",
    "power_throttled",
    "thermal_throttled",
    "ecc_corrected",
    "ecc_uncorrected",
    "row_remap_pending",
    "row_remap_failure",
    "recovery_action",
    "pcie_link_width",
    "pcie_max_link_width",
]
"""Percent, MiB, degrees Celsius, watts, joules (counter), MHz, seconds held back (counter), numbers."""

QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)

_DCGM: Mapping[Quantity, tuple[str, str]] = {
    "utilization": ("GPU_UTIL", ""),
    "copy_utilization": ("MEM_COPY_UTIL", ""),
    "encoder_utilization": ("ENC_UTIL", ""),
    "decoder_utilization": ("DEC_UTIL", ""),
    "vram_used": ("FB_USED", ""),
    "vram_free": ("FB_FREE", ""),
    "vram_reserved": ("FB_RESERVED", ""),
    "temperature": ("GPU_TEMP", ""),
    "memory_temperature": ("MEMORY_TEMP", ""),
    "slowdown_temperature": ("SLOWDOWN_TEMP", ""),
    "power": ("POWER_USAGE", ""),
    "power_limit": ("POWER_MGMT_LIMIT", ""),
    "power_limit_min": ("POWER_MGMT_LIMIT_MIN", ""),
    "power_limit_max": ("POWER_MGMT_LIMIT_MAX", ""),
    "power_limit_default": ("POWER_MGMT_LIMIT_DEF", ""),
    "enforced_power_limit": ("ENFORCED_POWER_LIMIT", ""),
    "energy": ("TOTAL_ENERGY_CONSUMPTION", " / 1e3"),
    "sm_clock": ("SM_CLOCK", ""),
    "memory_clock": ("MEM_CLOCK", ""),
    "fan_speed": ("FAN_SPEED", ""),
    "performance_state": ("PSTATE", ""),
    "power_throttled": ("POWER_VIOLATION", " / 1e9"),
    "thermal_throttled": ("THERMAL_VIOLATION", " / 1e9"),
    "ecc_corrected": ("ECC_SBE_VOL_TOTAL", ""),
    "ecc_uncorrected": ("ECC_DBE_VOL_TOTAL", ""),
    "row_remap_pending": ("ROW_REMAP_PENDING", ""),
    "row_remap_failure": ("ROW_REMAP_FAILURE", ""),
    "recovery_action": ("GET_GPU_RECOVERY_ACTION", ""),
    "pcie_link_width": ("PCIE_LINK_WIDTH", ""),
    "pcie_max_link_width": ("PCIE_MAX_LINK_WIDTH", ""),
}
# Source: utkuozdemir/nvidia_gpu_exporter@v1.14.0:internal/integration/testdata, docs/METRICS.md.
_NVIDIA_SMI: Mapping[Quantity, tuple[str, str]] = {
    "utilization": ("utilization_gpu_ratio", " * 100"),
    "copy_utilization": ("utilization_memory_ratio", " * 100"),
    "encoder_utilization": ("utilization_encoder_ratio", " * 100"),
    "decoder_utilization": ("utilization_decoder_ratio", " * 100"),
    "vram_used": ("memory_used_bytes", " / 2^20"),
    "vram_free": ("memory_free_bytes", " / 2^20"),
    "vram_reserved": ("memory_reserved_bytes", " / 2^20"),
    "temperature": ("temperature_gpu", ""),
    "memory_temperature": ("temperature_memory", ""),
    "power": ("power_draw_watts", ""),
    "power_limit": ("power_limit_watts", ""),
    "power_limit_min": ("power_min_limit_watts", ""),
    "power_limit_max": ("power_max_limit_watts", ""),
    "power_limit_default": ("power_default_limit_watts", ""),
    "enforced_power_limit": ("enforced_power_limit_watts", ""),
    "energy": ("energy_joules_total", ""),
    "sm_clock": ("clocks_current_sm_clock_hz", " / 1e6"),
    "memory_clock": ("clocks_current_memory_clock_hz", " / 1e6"),
    "fan_speed": ("fan_speed_ratio", " * 100"),
    "performance_state": ("pstate", ""),
    "power_throttled": ("clocks_event_reasons_counters_sw_power_cap_seconds", ""),
    "thermal_throttled": ("clocks_event_reasons_counters_hw_thermal_slowdown_seconds", ""),
    "ecc_corrected": ("ecc_errors_corrected_volatile_total", ""),
    "ecc_uncorrected": ("ecc_errors_uncorrected_volatile_total", ""),
    "row_remap_pending": ("remapped_rows_pending", ""),
    "row_remap_failure": ("remapped_rows_failure", ""),
    "recovery_action": ("gpu_recovery_action", ""),
    "pcie_link_width": ("pcie_link_width_current", ""),
    "pcie_max_link_width": ("pcie_link_width_max", ""),
}

_PER_INSTANCE = frozenset(
    {
        "DCGM_FI_DEV_FB_USED",
        "DCGM_FI_DEV_FB_FREE",
        "DCGM_FI_DEV_FB_RESERVED",
        "DCGM_FI_PROF_SM_OCCUPANCY",
        *(
            f"DCGM_FI_PROF_{name}_ACTIVE"
            for name in ("GR_ENGINE", "SM", "PIPE_TENSOR", "PIPE_FP64", "PIPE_FP32", "PIPE_FP16", "DRAM")
        ),
    }
)
"""Of a MIG GPU these come once per instance; everything else is the whole GPU's, repeated for each."""


class Query(NamedTuple):
    """An expression in PromQL, and the metrics without which it answers nothing."""

    expr: str
    needs: frozenset[str]


class Labels(NamedTuple):
    """What the labels are called that tell GPUs apart: in every answer, in this order."""

    node: str
    gpu: str
    uuid: str
    model: str


@dataclass(frozen=True, kw_only=True)
class GpuSeries:
    """The series of one exporter.

    Attributes:
        dialect: ``dcgm`` (DcgmExporter) or ``nvidia_smi`` (NvidiaGpuExporter).
        job: What ``job`` is on them; None where nobody knows, because somebody else's object scrapes.
        metrics: Names of the metrics that are exported.
        labels: What the labels of a GPU are called.
        pods: Whether series of a GPU in use name its pod: ``none``; ``one``, a GPU that several share names
            only one of them; ``all``, each pod that shares has its own series.
        scrape_interval_seconds: Seconds between two scrapes; 30 where nobody knows.
    """

    dialect: Literal["dcgm", "nvidia_smi"]
    job: str | None
    metrics: frozenset[str]
    labels: Labels
    pods: Literal["none", "one", "all"]
    scrape_interval_seconds: int = 30

    def has(self, *metrics: str) -> bool:
        """Tell whether all these metrics are exported."""
        return self.metrics.issuperset(metrics)

    def can(self, *queries: Query) -> bool:
        """Tell whether the exporter publishes all that these queries need."""
        return all(self.metrics >= query.needs for query in queries)

    def name_of(self, quantity: Quantity) -> str | None:
        """Give the metric behind a quantity; None where this exporter has none."""
        if self.dialect == "dcgm":
            return f"DCGM_FI_DEV_{_DCGM[quantity][0]}"
        return f"nvidia_smi_{_NVIDIA_SMI[quantity][0]}" if quantity in _NVIDIA_SMI else None

    def quantity(self, quantity: Quantity, **options: object) -> Query | None:
        """Ask for a quantity in its unit; the options are those of ``metric``.

        None where this exporter has no metric for it, or is not told to export it.
        """
        name = self.name_of(quantity)
        if name is None or name not in self.metrics:
            return None
        scale = (_DCGM if self.dialect == "dcgm" else _NVIDIA_SMI)[quantity][1]
        expr, needs = self.metric(name, **options)  # type: ignore[arg-type]
        return Query(f"({expr}{scale})" if scale else expr, needs)

    def metric(
        self,
        name: str,
        *,
        over: str = "{}",
        where: str = "",
        node: str | None = None,
        gpu: str | None = None,
        by: Collection[str] = (),
    ) -> Query:
        """Ask for a metric: one value per GPU.

        A GPU that pods share may be reported once for each of them, with the same value: without ``by`` they
        are one again, so that nothing is counted twice.

        Args:
            name: The metric.
            over: What to do with its series first, such as ``rate({}[5m])``.
            where: Further matchers of its series, such as ``pod!=""``.
            node: Regular expression of the nodes.
            gpu: Regular expression of the GPUs' numbers.
            by: Further labels to keep apart.
        """
        matchers = [f'job="{self.job}"'] if self.job is not None else []
        if node is not None:
            matchers.append(f'{self.labels.node}=~"{node}"')
        instance = ("GPU_I_ID",) if not by and name in _PER_INSTANCE else ()
        if self.dialect == "dcgm":
            if gpu is not None:
                matchers.append(f'{self.labels.gpu}=~"{gpu}"')
            kept = (*self.labels, *instance, *by)
            series = over.format(_series(name, matchers, where))
            return Query(f"max by ({', '.join(kept)}) ({series})", frozenset({name}))
        identity = [*matchers, f'{self.labels.gpu}=~"{gpu}"'] if gpu is not None else matchers
        key = f"{self.labels.node}, {self.labels.uuid}"
        value = f"max by ({', '.join((self.labels.node, self.labels.uuid, *by))}) "
        value += f"({over.format(_series(name, matchers, where))})"
        # A GPU that has just got another number is described twice for some minutes: one of the two has to do.
        info = f"topk by ({key}) (1, max by ({', '.join(self.labels)}) ({_series(_GPU_INFO, identity)}))"
        expr = f"({value} * on ({key}) group_left ({self.labels.gpu}, {self.labels.model}) {info})"
        return Query(expr, frozenset({name}))


_GPU_INFO = "nvidia_smi_gpu_info"


def _series(name: str, matchers: list[str], where: str = "") -> str:
    inside = ",".join([*matchers, *([where] if where else [])])
    return f"{name}{{{inside}}}" if inside else name


def dcgm_series(
    *,
    job: str | None,
    metrics: Collection[str],
    hostname_label: str,
    pods: Literal["none", "one", "all"],
    scrape_interval_seconds: int = 30,
) -> GpuSeries:
    """Describe the series of the DCGM exporter.

    Args:
        job: See ``GpuSeries``.
        metrics: Fields that are exported, without those that are labels.
        hostname_label: ``Hostname`` or ``hostname``, as its release writes it.
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
    """Describe the series of nvidia_gpu_exporter, whose node is the label that our scrape objects add."""
    return GpuSeries(
        dialect="nvidia_smi",
        job=job,
        metrics=frozenset(metrics),
        labels=Labels(node="node", gpu="index", uuid="uuid", model="name"),
        pods="none",
        scrape_interval_seconds=scrape_interval_seconds,
    )
