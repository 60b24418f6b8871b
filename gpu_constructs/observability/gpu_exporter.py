"""What alerts and dashboards need to know of an exporter."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.observability.gpu_series import GpuSeries


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
    """Give the exporter that a user handed over, if it is one.

    Raises:
        GpuConstructsError: It is none.
    """
    if (
        isinstance(given, GpuExporter)
        and isinstance(given.series, GpuSeries)
        and isinstance(given.name, str)
        and isinstance(given.namespace, str)
    ):
        return given
    raise GpuConstructsError(f"exporter must be a DcgmExporter or a NvidiaGpuExporter; got {type(given).__name__}")
