"""`GpuDashboard`: the Grafana dashboard of an exporter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from constructs import Construct

from gpu_constructs.cluster.namespace import namespace_name
from gpu_constructs.errors import GpuConstructsError, refuse_if
from gpu_constructs.kube import fields
from gpu_constructs.kube.config_map import config_map
from gpu_constructs.kube.labels import object_labels, selector_labels
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.observability.gpu_series import GpuExporter, gpu_exporter
from gpu_constructs.tree.construct import GpuObject, checked
from gpu_constructs.tree.manifest import Manifest

_UID = fields.regex(r"[A-Za-z0-9_-]{1,40}\Z")
_REFRESH = fields.regex(r"([1-9][0-9]*(s|m|h|d))?\Z")
_USUAL_NAMES = ("dcgm-exporter", "nvidia-gpu-exporter")
_SIDECAR_LABELS = {"grafana_dashboard": "1"}


class GpuDashboard(GpuObject):
    """A Grafana dashboard that shows the GPUs of a cluster: use, power, pods, scheduling, errors and profiling.

    Emits one ConfigMap ``<exporter>-dashboard``, which the sidecar of Grafana loads by its label. Its key is
    ``<exporter>.json``. The dashboard queries only metrics that the exporter has. It counts a GPU once, even if several
    pods share it.

    Attributes:
        name: Name of the ConfigMap.
        namespace: Namespace of the ConfigMap.
        json: A new copy of the dashboard as a dict. You can change the copy and write it to a file.
        api_object: The ConfigMap.

    Source:
        kiwigrid/k8s-sidecar and the Grafana chart, ``sidecar.dashboards``; Grafana 10.4 documentation,
        "Dashboard JSON model"
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        exporter: GpuExporter,
        namespace: str | NamedObject | None = None,
        name: str | None = None,
        labels: Mapping[str, str] | None = None,
        folder: str | None = None,
        folder_annotation: str = "grafana_folder",
        title: str | None = None,
        uid: str | None = None,
        datasource_type: Literal["prometheus", "victoriametrics-metrics-datasource"] = "prometheus",
        kube_state_metrics: bool = True,
        refresh: str = "1m",
    ) -> None:
        """Create the dashboard.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct.
            exporter: ``DcgmExporter`` or ``NvidiaGpuExporter`` whose metrics the dashboard shows.
            namespace: Name or object of the namespace. None, the default: the namespace of the exporter. The sidecar
                looks there only with ``searchNamespace: ALL``, which kube-prometheus-stack sets. In the namespace of
                Grafana, the sidecar always finds the ConfigMap.
            name: Name of the ConfigMap. None, the default: ``<exporter>-dashboard``.
            labels: Labels by which the sidecar finds the ConfigMap. None, the default: ``grafana_dashboard: "1"``, the
                label of the Grafana chart and of kube-prometheus-stack.
            folder: Folder in Grafana. None, the default: the general folder.
            folder_annotation: Key of the annotation that contains the name of the folder; ``grafana_folder`` by
                default. Set ``folderAnnotation`` of the sidecar to the same key, because the sidecar has no default.
            title: Title of the dashboard. None, the default: ``NVIDIA GPUs``, or ``NVIDIA GPUs (nvidia-smi)`` for
                ``NvidiaGpuExporter``. If you set ``name`` of the exporter, the title ends in that name.
            uid: Unique ID in Grafana, up to 40 letters, digits, ``-`` and ``_``. None, the default:
                ``gpu-constructs-gpus``, with ``-nvidia-smi`` for ``NvidiaGpuExporter``. If you set ``name`` of the
                exporter, the ID is ``gpus-`` and that name. These IDs differ, so one Grafana can contain the dashboards
                of several exporters.
            datasource_type: Data source type: ``prometheus``, which also reads VictoriaMetrics, or
                ``victoriametrics-metrics-datasource``, the plugin of VictoriaMetrics.
            kube_state_metrics: Whether kube-state-metrics runs in the cluster. False omits the panels with GPU requests
                and pending pods.
            refresh: Interval at which Grafana updates the panels, such as ``1m``. An empty text disables updates.

        Raises:
            GpuConstructsError: If a value is not allowed.
        """
        fields.label_value("id", id)
        shown = gpu_exporter(exporter)
        where = shown.namespace if namespace is None else namespace_name(namespace)
        called = f"{shown.name}-dashboard" if name is None else name
        fields.dns_subdomain("name", called)
        found_by = _SIDECAR_LABELS if labels is None else labels
        fields.labels("labels", found_by)
        fields.labels("folder_annotation", {folder_annotation: ""})
        for field, text in (("folder", folder), ("title", title)):
            if text is not None and not (text.strip() and text.isprintable()):
                raise GpuConstructsError(
                    f"{field} must be printable text, got {text!r}. Leave it out to use the default"
                )
        refuse_if(uid is not None and not _UID.match(uid), "uid", "be 1 to 40 letters, digits, '-' and '_'", uid)
        refuse_if(not _REFRESH.match(refresh), "refresh", "be a number and s, m, h or d, such as '1m', or ''", refresh)
        # The import is here because the panels are a large table that an app without a dashboard does not need.
        from gpu_constructs.observability.dashboard import DEFAULT_TITLES, dashboard, json_text

        if shown.name not in _USUAL_NAMES:
            title = title or f"{DEFAULT_TITLES[shown.series.dialect]}: {shown.name}"
            uid = uid or f"gpus-{shown.name}"[:40]
        content = dashboard(
            shown.series,
            title=title,
            uid=uid,
            datasource_type=datasource_type,
            kube_state_metrics=kube_state_metrics,
            refresh=refresh,
        )
        super().__init__(scope, id)
        self.name = called
        self.namespace = where
        self._text = json_text(content)
        own = object_labels(selector_labels(name="gpu-dashboard", instance=id, component="dashboard"))
        metadata: dict[str, Any] = {"name": called, "namespace": where, "labels": {**own, **found_by}}
        if folder is not None:
            metadata["annotations"] = {folder_annotation: folder}
        Manifest(self, "Default", config_map(metadata, {f"{shown.name}.json": self._text}))

    @property
    def json(self) -> dict[str, Any]:
        """A new copy of the dashboard as a dict. You can change the copy and write it to a file."""
        import json

        copy: dict[str, Any] = json.loads(self._text)
        return copy
