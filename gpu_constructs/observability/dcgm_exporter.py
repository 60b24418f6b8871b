"""GPU metrics: the DCGM exporter with what scrapes and shows them."""

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
from gpu_constructs.observability.exporter import Exporter, ExporterObject
from gpu_constructs.observability.exporter_options import DebugDump, ExporterOptions, MetricsConfigMap
from gpu_constructs.observability.metrics import COLLECTION_INTERVAL_SECONDS, Metric, MetricSet, chosen_metrics
from gpu_constructs.observability.pod_mapping import PodMapping
from gpu_constructs.observability.pod_mapping import pod_mapping as mapping_of
from gpu_constructs.tree.construct import checked


class DcgmExporter(ExporterObject):
    """Exports the metrics of every GPU, in Prometheus' format, with the pod that holds each GPU.

    Emits ConfigMap ``dcgm-exporter-metrics``; DaemonSet and Service ``dcgm-exporter``; the scrape object
    ``dcgm-exporter``, whose kind must be installed in the cluster; and ConfigMap ``dcgm-exporter-dashboard``,
    which Grafana's sidecar loads by the label ``grafana_dashboard``. Where it reads pods or resource claims
    also a ServiceAccount, a ClusterRole and its binding; with ``tls`` or ``basic_auth`` the web configuration
    ``dcgm-exporter-web-config``, a Secret where it holds passwords' hashes.

    The pods run on nodes labelled ``nvidia.com/gpu.present=true`` and take no GPU slot. What they are allowed
    follows from the options: SYS_ADMIN only for profiling metrics, root only for that and the kubelet's socket,
    which pod mapping asks, a token only where the API server is asked. From release 4 on, with
    ``pod_mapping=False`` and no profiling metrics, they fit the Pod Security level ``restricted``.

    Attributes:
        name: Name of the DaemonSet and the Service.
        namespace: Namespace of the objects.
        metrics: Metrics that are exported; empty for a list of the user's own.
        series: The same, for ``GpuAlerts`` and ``GpuDashboard``.
        api_object: The DaemonSet.

    Source:
        NVIDIA/dcgm-exporter@3.3.6-3.4.2 and @4.5.3-4.8.2, deployment/; image 4.6.0-4.8.3 as pinned by
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
        """Make the exporter.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            namespace: By name or object; it must be privileged for pod mapping (host path) and for profiling
                metrics (SYS_ADMIN).
            platform: ``Talos("1.12")`` or ``Kubernetes()``; decides the runtime class.
            version: Chart and exporter release: ``"4.8.3"`` by default; ``"4.8.2"``, whose image lacks
                libraries and with them XID and NVLink metrics; ``"3.4.2"``, which predates Blackwell GPUs.
            name: Prefix of the names of all objects.
            instance: The label ``app.kubernetes.io/instance``, which tells the pods of two exporters apart. None
                is the construct's id, or the name where you give another one.
            metrics: What to export: ``"recommended"``, what alerts and dashboard ask for; ``"default"``, the
                image's own list; ``"seed"``, six basic ones; ``"profiling"``, all of it; a list of ``Metric``
                or of fields this library knows; or a ``MetricsConfigMap`` that somebody else keeps.
            gpu_models: Models of the GPUs, as nvidia-smi names them, where they are known. When none of them
                can be profiled (GeForce before Blackwell), profiling metrics are left out of a named list, and
                with them SYS_ADMIN.
            collect_interval_seconds: Seconds between two readings of the GPUs. 30, the exporter's own.
            pod_mapping: How the exporter learns which pod holds which GPU; False for not at all.
            sharing: How the device plugin shares the GPUs. With time-slicing or MPS each pod on a shared GPU
                gets its own series: the exporter then sees the node's processes and reads pods from the API
                server. None: one pod of a shared GPU is named, the last one found.
            remote_hostengine: ``host:port`` of an ``nv-hostengine`` that reads the GPUs instead, such as
                ``nvidia-dcgm:5555``; behind a Service it must be the one of the exporter's own node
                (``internalTrafficPolicy: Local``). The exporter then needs no SYS_ADMIN.
            debug_dump: Keep files with what was read, for a bug report.
            options: ``port`` is 9400 by default and serves ``/metrics`` and ``/health``. Without the nvidia runtime
                the exporter ends with "Cannot init NVML library". A ``service_account`` is given what the exporter
                needs if the API server is asked; None: one is made if it is needed. ``resources`` are requests of
                100m CPU and 256Mi and a memory limit of 1Gi by default, since pod mapping takes 400 to 500 MiB and
                nodes with eight GPUs take more. No ``priority_class_name`` by default: losing metrics must not evict
                workloads.

        Raises:
            GpuConstructsError: A value above is not allowed, or the release does not know the option; a metric
                the release's DCGM does not know; profiling metrics where no GPU has them; a password or a
                certificate that the scrape object has nothing for.
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
            # A hostengine elsewhere does the profiling itself.
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
