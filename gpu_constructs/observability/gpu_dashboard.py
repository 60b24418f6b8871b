"""GPU metrics, shown: the Grafana dashboard of an exporter."""

from __future__ import annotations

import re
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

_UID = re.compile(r"[A-Za-z0-9_-]{1,40}\Z")
_REFRESH = re.compile(r"([1-9][0-9]*(s|m|h|d))?\Z")
_USUAL_NAMES = ("dcgm-exporter", "nvidia-gpu-exporter")
_SIDECAR_LABELS = {"grafana_dashboard": "1"}


class GpuDashboard(GpuObject):
    """Shows fleet, GPUs, power, pods, scheduling, errors and profiling in Grafana, as far as an exporter tells them.

    Emits one ConfigMap ``<exporter>-dashboard``, which Grafana's sidecar loads by its label; its key is
    ``<exporter>.json``. Only metrics that the exporter publishes are asked for; GPUs that pods share count once.

    Attributes:
        name: Name of the ConfigMap.
        namespace: Its namespace.
        json: The dashboard, a new copy each time, to be changed and written elsewhere.
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
        """Make the dashboard.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            exporter: The ``DcgmExporter`` or ``NvidiaGpuExporter`` whose metrics it shows.
            namespace: By name or object. None: the exporter's, where the sidecar looks only if it is told to
                (``searchNamespace: ALL``, as kube-prometheus-stack does); Grafana's own needs no such setting.
            name: Name of the ConfigMap; None: ``<exporter>-dashboard``.
            labels: Labels by which the sidecar finds it; None: ``grafana_dashboard: "1"``, the one of the
                Grafana chart and of kube-prometheus-stack.
            folder: Folder in Grafana. None: the general one.
            folder_annotation: Annotation that names the folder to the sidecar, its ``folderAnnotation``, which
                has no default there; this is the customary one.
            title: None: ``NVIDIA GPUs``, for ``NvidiaGpuExporter`` with ``(nvidia-smi)``; behind it the
                exporter's name where it has one of its own.
            uid: Its identity in Grafana, up to 40 letters, digits, ``-`` and ``_``. None: ``gpu-constructs-gpus``,
                for ``NvidiaGpuExporter`` with ``-nvidia-smi``, or ``gpus-`` and the exporter's own name, so that
                all can live in one Grafana.
            datasource_type: ``prometheus``, which also reads VictoriaMetrics; or the plugin of VictoriaMetrics.
            kube_state_metrics: False leaves out what is requested and what waits.
            refresh: How often Grafana reads anew, such as ``1m``; ``""`` for never.

        Raises:
            GpuConstructsError: A value above is not allowed.
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
                raise GpuConstructsError(f"{field} must be printable text; got {text!r}; leave it out for the default")
        refuse_if(uid is not None and not _UID.match(uid), "uid", "be 1 to 40 letters, digits, '-' and '_'", uid)
        refuse_if(not _REFRESH.match(refresh), "refresh", "be a number and s, m, h or d, such as '1m', or ''", refresh)
        # The panels are a large table: only for those who want them.
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
        """The dashboard, a new copy each time, to be changed and written elsewhere."""
        import json

        copy: dict[str, Any] = json.loads(self._text)
        return copy
