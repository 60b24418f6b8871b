"""`DcgmExporter`: the DCGM exporter with its ServiceMonitor (or VMServiceScrape) and its dashboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from constructs import Construct

from gpu_constructs.catalog import versions
from gpu_constructs.catalog.platforms import DEFAULT_PLATFORM, Platform
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.cluster.namespace import DEFAULT_NAMESPACE, component_namespace
from gpu_constructs.facts.provided import Provided, placement_of
from gpu_constructs.kube import fields
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.observability.daemonset import (
    DCGM_EXPORTER,
    DcgmSettings,
    check,
    check_address,
    dcgm_manifests,
    series_of,
)
from gpu_constructs.observability.dcgm_exporter_values import exporter_options
from gpu_constructs.observability.exporter import Exporter
from gpu_constructs.observability.exporter_object import ExporterObject
from gpu_constructs.observability.exporter_options import DebugDump, ExporterOptions, MetricsConfigMap
from gpu_constructs.observability.metrics import COLLECTION_INTERVAL_SECONDS, Metric, MetricSet, chosen_metrics
from gpu_constructs.observability.pod_mapping import PodMapping
from gpu_constructs.observability.pod_mapping import pod_mapping as mapping_of
from gpu_constructs.tree.construct import checked


class DcgmExporter(ExporterObject):
    """The DCGM exporter. It exports the metrics of every GPU to Prometheus, with the name of the pod that uses the GPU.

    Emits these objects:

    - the ConfigMap ``dcgm-exporter-metrics``;
    - the DaemonSet and the Service ``dcgm-exporter``;
    - the ServiceMonitor ``dcgm-exporter``, or an object of the kind that ``scrape`` names. The cluster must have its
      CRD;
    - the ConfigMap ``dcgm-exporter-dashboard``, which the sidecar of Grafana loads by the label ``grafana_dashboard``;
    - if the exporter reads pods or ResourceSlices from the API server: a ServiceAccount, a ClusterRole and a
      ClusterRoleBinding;
    - with ``tls`` or ``basic_auth``: the web configuration ``dcgm-exporter-web-config``. It is a Secret if it contains
      hashes of passwords, otherwise a ConfigMap.

    The pods run on nodes with the label ``nvidia.com/gpu.present=true`` and request no GPU. The options determine the
    rights of the pods:

    - The pods have the capability SYS_ADMIN only for profiling metrics.
    - They run as root for profiling metrics, and for the socket of the kubelet, which pod mapping uses.
    - They mount a ServiceAccount token only for requests to the API server.
    - With release 4 or later, ``pod_mapping=False`` and no profiling metrics, the pods meet the Pod Security level
      ``restricted``.

    Attributes:
        name: Name of the DaemonSet and the Service.
        namespace: Namespace of the objects.
        metrics: Metrics that the exporter exports. Empty if the keyword ``metrics`` is a ``MetricsConfigMap``.
        series: Names and labels of these metrics in Prometheus, for ``GpuAlerts`` and ``GpuDashboard``.
        api_object: The DaemonSet.

    Source:
        NVIDIA/dcgm-exporter@3.3.6-3.4.2 to @4.5.3-4.8.2, deployment/; image 4.6.0-4.8.3 as pinned by
        NVIDIA/gpu-operator@v26.7.0
    """

    _default_version = versions.DEFAULT_DCGM_EXPORTER
    _options_of = staticmethod(exporter_options)

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        namespace: str | NamedObject = DEFAULT_NAMESPACE,
        platform: Platform = DEFAULT_PLATFORM,
        version: str | versions.Unverified = versions.DEFAULT_DCGM_EXPORTER,
        name: str = DCGM_EXPORTER.name,
        instance: str | None = None,
        metrics: MetricSet | MetricsConfigMap | Sequence[Metric | str] = "recommended",
        gpu_models: Sequence[str] = (),
        collect_interval_seconds: int = COLLECTION_INTERVAL_SECONDS,
        pod_mapping: bool | PodMapping = True,
        sharing: Sharing | None = None,
        remote_hostengine: str | None = None,
        debug_dump: bool | DebugDump = False,
        **options: Unpack[ExporterOptions],
    ) -> None:
        """Create the exporter.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct.
            namespace: Name or object of the namespace. It must allow privileged pods for pod mapping (host path) and
                for profiling metrics (SYS_ADMIN).
            platform: ``Talos("1.12")`` or ``Kubernetes()``. It determines the runtime class.
            version: Release of the exporter, from ``"3.4.2"`` to ``"4.8.3"``. The default is the newest one. The
                image of ``"4.8.2"`` lacks libraries for XID and NVLink metrics. Releases 3.x do not support Blackwell
                GPUs.
            name: Prefix of the names of all objects.
            instance: Value of the label ``app.kubernetes.io/instance``, which distinguishes the pods of two exporters.
                None, the default: the construct ID, or ``name`` if you set one.
            metrics: Metrics to export. ``"recommended"``, the default, contains all metrics of the alerts and the
                dashboard. ``"default"`` is the list of the image, and ``"seed"`` has six basic metrics. ``"profiling"``
                adds all metrics of DCGM's profiling module to ``"recommended"``. You can also pass a list of ``Metric``
                objects or DCGM field names, or a ``MetricsConfigMap`` that exists in the cluster.
            gpu_models: Model names of the GPUs, as nvidia-smi prints them, if you know them. If no model supports
                profiling (GeForce before Blackwell), the exporter omits the profiling metrics of ``"default"``,
                ``"recommended"`` and ``"profiling"``, and the pods do not get SYS_ADMIN.
            collect_interval_seconds: Time between two readings of the GPUs, in seconds. 30 by default, as in the
                exporter.
            pod_mapping: Whether the series of a GPU have labels with the pod that uses the GPU, or a ``PodMapping``
                with options. True by default.
            sharing: Strategy with which the device plugin shares the GPUs. With time-slicing or MPS, each pod on a
                shared GPU gets its own series. The exporter then sees the processes of the node and reads pods from the
                API server. If None, the default, the series of a shared GPU have the labels of only one of its pods,
                the last one that the exporter finds.
            remote_hostengine: ``host:port`` of an ``nv-hostengine`` (a DCGM server), such as ``nvidia-dcgm:5555``, that
                reads the GPUs in place of the exporter. The exporter then needs no SYS_ADMIN. If the address is that of
                a Service, the Service must send requests to the exporter's own node (``internalTrafficPolicy: Local``).
            debug_dump: Whether to keep files with the readings, for a bug report, or the options of these files.
            options: Options of all exporters. For the DCGM exporter:

                - ``port`` is 9400 by default. It serves ``/metrics`` and ``/health``.
                - ``runtime_class`` must select the NVIDIA runtime. Otherwise the exporter ends with the error
                  "Cannot init NVML library".
                - ``service_account`` gets the rights that the exporter needs at the API server. If you set none, the
                  construct creates a ServiceAccount.
                - ``resources`` by default request 100m CPU and 256Mi, with a memory limit of 1Gi. Pod mapping uses 400
                  to 500 MiB, and more on nodes with eight GPUs.
                - ``priority_class_name`` has no default, because missing metrics do not justify the eviction of
                  workloads.

        Raises:
            GpuConstructsError: If a value is not allowed, the release does not support an option, the DCGM of the
                release does not know a metric, or no GPU supports the profiling metrics. Also if the scraper lacks a
                client certificate or a password that ``tls`` or ``basic_auth`` requires.
        """
        release = versions.release_of(versions.DCGM_EXPORTER, version, "the DCGM exporter")
        fields.whole_number("collect_interval_seconds", collect_interval_seconds, minimum=1, maximum=3600)
        exporter = Exporter(
            program=DCGM_EXPORTER,
            id=id,
            name=name,
            namespace=component_namespace(namespace),
            instance=instance,
            version=release.version,
            interval_seconds=collect_interval_seconds,
            options=options,
        )
        pods = exporter.pods(release.image, platform)
        exported, is_profiled = chosen_metrics(metrics, release.behaves_like, gpu_models, known_as=release.version)
        if remote_hostengine is not None:
            check_address("remote_hostengine", remote_hostengine)
        settings = DcgmSettings(
            release=release.behaves_like,
            metrics=exported,
            config_map=metrics if isinstance(metrics, MetricsConfigMap) else None,
            # A remote hostengine reads the profiling metrics, so the pods need no right for them.
            is_profiled=is_profiled and remote_hostengine is None,
            mapping=mapping_of(pod_mapping, sharing, release.behaves_like),
            remote_hostengine=remote_hostengine,
            debug_dump=DebugDump() if debug_dump is True else debug_dump or None,
        )
        check(exporter, settings)
        manifests = dcgm_manifests(exporter, settings, pods)
        super().__init__(scope, id)
        self.metrics = exported
        self.provides = Provided(
            platform=platform,
            components=("dcgm-exporter",),
            runs_on=(placement_of(manifests["Default"]["spec"]["template"]["spec"]),),
            profiles_gpus=settings.is_profiled,
            assumed_sharing=sharing,
            names_one_pod=pod_mapping is True and sharing is None,
        )
        self._emit(exporter, series_of(exporter, settings), manifests)
