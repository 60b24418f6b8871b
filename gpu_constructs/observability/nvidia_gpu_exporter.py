"""`NvidiaGpuExporter`: an exporter that needs no privileges, with its ServiceMonitor and its dashboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

from constructs import Construct

from gpu_constructs.catalog import versions
from gpu_constructs.catalog.platforms import DEFAULT_PLATFORM, Platform
from gpu_constructs.cluster.namespace import namespace_name, require_privileged
from gpu_constructs.facts.provided import Provided, placement_of
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.observability import nvidia_gpu_exporter_pod as pod
from gpu_constructs.observability.exporter import Exporter
from gpu_constructs.observability.exporter_object import ExporterObject
from gpu_constructs.observability.exporter_options import ExporterOptions
from gpu_constructs.observability.gpu_series import nvidia_smi_series
from gpu_constructs.observability.nvidia_gpu_exporter_values import exporter_options
from gpu_constructs.observability.nvidia_smi_fields import AUTO, Backend, exported_metrics
from gpu_constructs.tree.construct import checked


class NvidiaGpuExporter(ExporterObject):
    """The nvidia_gpu_exporter. It exports the metrics of every GPU to Prometheus and needs no privileges.

    Emits these objects:

    - the DaemonSet and the Service ``nvidia-gpu-exporter``;
    - the ServiceMonitor ``nvidia-gpu-exporter``, or an object of the kind that ``scrape`` names. The cluster must have
      its CRD;
    - the ConfigMap ``nvidia-gpu-exporter-dashboard``, which the sidecar of Grafana loads by the label
      ``grafana_dashboard``;
    - with ``tls`` or ``basic_auth``: the web configuration ``nvidia-gpu-exporter-web-config``. It is a Secret if it
      contains hashes of passwords, otherwise a ConfigMap.

    The metrics have no label with the pod that uses a GPU. If you need this label, use ``DcgmExporter``.

    The pods run on nodes with the label ``nvidia.com/gpu.present=true`` and request no GPU. They run as user 65534,
    with a read-only root filesystem, and without capabilities, host paths or a token. The Pod Security level
    ``restricted`` admits them, except with ``compute_apps`` or ``host_network``, which need the level ``privileged``.

    Attributes:
        name: Name of the DaemonSet and the Service.
        namespace: Namespace of the objects.
        series: Series that the exporter produces, for ``GpuAlerts`` and ``GpuDashboard``.
        api_object: The DaemonSet.

    Source:
        utkuozdemir/nvidia_gpu_exporter@v1.14.0: charts/nvidia-gpu-exporter, internal/app/app.go,
        docs/CONFIGURE.md, docs/METRICS.md
    """

    _default_version = versions.DEFAULT_NVIDIA_GPU_EXPORTER
    _options_of = staticmethod(exporter_options)

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        namespace: str | NamedObject = pod.DEFAULT_NAMESPACE,
        platform: Platform = DEFAULT_PLATFORM,
        version: str | versions.Unverified = versions.DEFAULT_NVIDIA_GPU_EXPORTER,
        name: str = pod.NAME,
        instance: str | None = None,
        backend: Backend = "nvidia-smi",
        nvidia_smi_command: str = "nvidia-smi",
        query_field_names: Sequence[str] = (AUTO,),
        query_field_names_exclude: Sequence[str] = (),
        collect_interval_seconds: int = 0,
        collect_timeout_seconds: int = 10,
        compute_apps: bool = False,
        compute_apps_mig: bool = False,
        pcie_throughput: bool = False,
        telemetry_path: str = "/metrics",
        log_level: Literal["debug", "info", "warn", "error"] = "info",
        log_format: Literal["logfmt", "json"] = "logfmt",
        **options: Unpack[ExporterOptions],
    ) -> None:
        """Create the exporter.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct.
            namespace: Name or object of the namespace. The Pod Security level ``restricted`` is enough.
            platform: ``Talos("1.12")`` or ``Kubernetes()``. It determines the runtime class.
            version: Release of the exporter. The version of its Helm chart is one major version ahead.
            name: Prefix of the names of all objects.
            instance: Value of the label ``app.kubernetes.io/instance``, which distinguishes the pods of two exporters.
                None, the default: the construct ID, or ``name`` if you set one.
            backend: Source of the readings. With ``nvidia-smi``, the default, the exporter runs that program for each
                reading and kills it after a timeout. ``nvml`` is a library of the NVIDIA driver. It adds metrics of XID
                errors, energy and MIG devices. The image for ``nvml`` exists only for amd64.
            nvidia_smi_command: Command to run instead of ``nvidia-smi``. It must print the same output. The image has
                no shell, so a script needs another image.
            query_field_names: Fields to query, by their names in ``nvidia-smi --help-query-gpu``. ``AUTO``, the
                default, queries all fields that the driver knows. If you list fields, the driver must know each field.
                Otherwise, the exporter exits when it starts.
            query_field_names_exclude: Patterns of fields to omit, in which ``*`` matches any text, such as
                ``remapped_rows.histogram.*``.
            collect_interval_seconds: Time between two readings, in seconds. 0, the default, reads the GPUs at each
                scrape. Simultaneous scrapes share one reading.
            collect_timeout_seconds: Time limit of a reading, in seconds. 10 by default. A reading at a scrape must also
                end half a second before the timeout of the scraper. After the limit, the metrics report a failed
                reading.
            compute_apps: Whether to export the memory of each compute process on a GPU. The pods then see the processes
                of the node (hostPID), so the namespace must allow privileged pods. A MIG GPU also needs
                ``security_context={"privileged": True}`` and ``env={"NVIDIA_MIG_MONITOR_DEVICES": "all"}``.
            compute_apps_mig: Whether to add the MIG device of a process as a label. Needs ``backend="nvml"``.
            pcie_throughput: Whether to measure the PCIe traffic, which takes 40 ms for each GPU. Needs
                ``backend="nvml"``.
            telemetry_path: HTTP path of the metrics.
            log_level: Lowest level of log messages: ``debug``, ``info``, ``warn`` or ``error``.
            log_format: Format of the log: ``logfmt`` or ``json``.
            options: Options of all exporters. For nvidia_gpu_exporter:

                - ``port`` is 9835 by default.
                - ``scrape`` by default has an interval of ``collect_interval_seconds``, or 30 seconds if that is 0.
                - ``host_network`` needs a namespace that allows privileged pods.
                - ``runtime_class`` must select the NVIDIA runtime. Otherwise readings fail
                  (``nvidia_smi_last_collect_success 0``), or with the backend ``nvml`` the exporter ends.
                - ``service_account`` sets the account of the pods, but they mount no token.
                - ``image`` must contain the chosen ``backend``.
                - ``resources`` by default request 50m CPU and 64Mi, with a memory limit of 256Mi.
                - ``priority_class_name`` has no default, because missing metrics do not justify the eviction of
                  workloads.

        Raises:
            GpuConstructsError: If a value is not allowed, or the backend does not know a field or does not support an
                option. Also if the namespace does not allow privileged pods that an option needs, or the scraper would
                have no password or client certificate.
        """
        if compute_apps:
            require_privileged("namespace", namespace, "compute_apps sees the node's processes (hostPID)")
        if options.get("host_network"):
            require_privileged("namespace", namespace, "host_network shares the node's network")
        release = versions.release_of(versions.NVIDIA_GPU_EXPORTER, version, "nvidia_gpu_exporter")
        exporter = Exporter(
            program=pod.NVIDIA_GPU_EXPORTER,
            id=id,
            name=name,
            namespace=namespace_name(namespace),
            instance=instance,
            version=release.version,
            interval_seconds=collect_interval_seconds or pod.SCRAPE_INTERVAL_SECONDS,
            options=options,
            path=telemetry_path,
        )
        args = pod.arguments(
            exporter,
            backend=backend,
            nvidia_smi_command=nvidia_smi_command,
            query_field_names=query_field_names,
            query_field_names_exclude=query_field_names_exclude,
            collect_interval_seconds=collect_interval_seconds,
            collect_timeout_seconds=collect_timeout_seconds,
            compute_apps=compute_apps,
            compute_apps_mig=compute_apps_mig,
            pcie_throughput=pcie_throughput,
            log_level=log_level,
            log_format=log_format,
        )
        image = pod.pod_image(release, backend, is_verified=isinstance(version, str))
        pods = exporter.pods(image, platform, {pod.ARCHITECTURE: "amd64"} if backend == "nvml" else {})
        metrics = exported_metrics(
            backend,
            query_field_names,
            query_field_names_exclude,
            compute_apps=compute_apps,
            pcie_throughput=pcie_throughput,
        )
        manifests = pod.smi_manifests(
            exporter, pods, args, collect_timeout_seconds=collect_timeout_seconds, compute_apps=compute_apps
        )
        super().__init__(scope, id)
        runs_on = placement_of(manifests["Default"]["spec"]["template"]["spec"])
        self.provides = Provided(platform=platform, runs_on=(runs_on,))
        series = nvidia_smi_series(job=exporter.job, metrics=metrics, scrape_interval_seconds=exporter.scrape_seconds)
        self._emit(exporter, series, manifests)
