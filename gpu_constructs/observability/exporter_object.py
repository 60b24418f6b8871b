"""The base class of ``DcgmExporter`` and ``NvidiaGpuExporter``.

It emits the objects of an exporter, and creates an exporter from Helm values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from constructs import Construct

from gpu_constructs.catalog.platforms import Kubernetes, Platform
from gpu_constructs.catalog.versions import Unverified
from gpu_constructs.errors import short_errors
from gpu_constructs.observability.exporter import Exporter, Manifests
from gpu_constructs.observability.gpu_dashboard import GpuDashboard
from gpu_constructs.observability.gpu_series import GpuSeries
from gpu_constructs.tree.construct import GpuObject, ReadsHelmValues, from_values
from gpu_constructs.tree.manifest import Manifest


class ExporterObject(ReadsHelmValues, GpuObject):
    """Base class of the exporter constructs. It emits the objects of the exporter and its dashboard.

    Attributes:
        name: Name of the DaemonSet and the Service.
        namespace: Namespace of the objects.
        series: Series that the exporter exports, for ``GpuAlerts`` and ``GpuDashboard``.
    """

    name: str
    namespace: str
    series: GpuSeries
    _default_version: str
    _options_of: Callable[..., Mapping[str, Any]]

    @classmethod
    @short_errors
    def from_helm_values(
        cls,
        scope: Construct,
        id: str,
        values: Mapping[str, Any],
        *,
        release_name: str,
        namespace: str,
        version: str | Unverified | None = None,
        platform: Platform = Kubernetes(),  # noqa: B008
        strict: bool = True,
    ) -> Self:
        """Create the exporter from the values of its Helm chart.

        Emits the same objects under the same names as the Helm chart, except for the deviations that the page "Coming
        from the Helm chart" of the documentation lists.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct.
            values: Content of the values file, as Python data. It need not contain the defaults of the chart.
            release_name: Name of the Helm release. The names and labels of the objects derive from it, as in Helm.
            namespace: Namespace of the Helm release.
            version: Release of the exporter. For the DCGM exporter, it equals the version of the chart. The chart of
                nvidia_gpu_exporter is one major version ahead: chart 2.14.0 contains release 1.14.0. None, the default:
                the default release of the construct.
            platform: Platform of the cluster, which the values do not contain. The default, ``Kubernetes()``, adds
                no fields.
            strict: Whether to reject misspelled keys, and values that the chart or the exporter would reject. With
                False, the construct drops such keys with a warning. It always drops keys that the chart ignores, with a
                warning.

        Raises:
            GpuConstructsError: The values have problems, which one message lists, or a keyword of the construct is not
                valid.
        """
        return from_values(
            cls,
            cls._options_of,
            scope,
            id,
            values,
            release_name=release_name,
            namespace=namespace,
            version=cls._default_version if version is None else version,
            platform=platform,
            strict=strict,
        )

    def _emit(self, exporter: Exporter, series: GpuSeries, manifests: Manifests) -> None:
        self.name = exporter.name
        self.namespace = exporter.namespace
        self.series = series
        for child, manifest in manifests.items():
            Manifest(self, child, manifest)
        if exporter.options.get("dashboard", True):
            GpuDashboard(self, "dashboard", exporter=self)
