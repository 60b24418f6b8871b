"""GPU metrics without privileges: nvidia_gpu_exporter with what scrapes and shows them."""

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
from gpu_constructs.observability.exporter import Exporter, ExporterObject
from gpu_constructs.observability.exporter_options import ExporterOptions
from gpu_constructs.observability.gpu_series import nvidia_smi_series
from gpu_constructs.observability.nvidia_gpu_exporter_values import exporter_options
from gpu_constructs.observability.nvidia_smi_fields import AUTO, Backend, exported_metrics
from gpu_constructs.tree.construct import checked


class NvidiaGpuExporter(ExporterObject):
    """Exports the metrics of every GPU, in Prometheus' format, without any privilege.

    Emits DaemonSet and Service ``nvidia-gpu-exporter``; the scrape object ``nvidia-gpu-exporter``, whose kind
    must be installed in the cluster; ConfigMap ``nvidia-gpu-exporter-dashboard``, which Grafana's sidecar loads
    by the label ``grafana_dashboard``; with ``tls`` or ``basic_auth`` the web configuration
    ``nvidia-gpu-exporter-web-config``, a Secret where it holds passwords' hashes.

    The pods run on nodes labelled ``nvidia.com/gpu.present=true``, take no GPU slot and know no pods: which pod
    uses a GPU, only ``DcgmExporter`` tells. They run as nobody, with no capability, no host path, no token and a
    read-only root, so the Pod Security level ``restricted`` takes them; ``compute_apps`` and ``host_network``
    need ``privileged``.

    Attributes:
        name: Name of the DaemonSet and the Service.
        namespace: Namespace of the objects.
        series: Series that are exported, for ``GpuAlerts`` and ``GpuDashboard``.
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
        """Make the exporter.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            namespace: By name or object; ``restricted`` is enough.
            platform: ``Talos("1.12")`` or ``Kubernetes()``; decides the runtime class.
            version: Release of the program; its chart counts one major release further.
            name: Prefix of the names of all objects.
            instance: The label ``app.kubernetes.io/instance``, which tells the pods of two exporters apart. None
                is the construct's id, or the name where you give another one.
            backend: What reads the GPUs: ``nvidia-smi``, run for each reading and killed when it hangs; or
                ``nvml``, the driver's library, which adds XID errors, energy and MIG instances, and whose image
                is for amd64 only.
            nvidia_smi_command: Another command that prints what nvidia-smi does. The image has no shell, so it
                takes an image of your own.
            query_field_names: What to ask for, as ``nvidia-smi --help-query-gpu`` lists it, or ``AUTO``, all
                that the driver knows. The exporter ends at start with a name that the driver does not know.
            query_field_names_exclude: What to leave out, ``*`` standing for anything, such as
                ``remapped_rows.histogram.*``.
            collect_interval_seconds: Seconds between two readings in the background; 0 reads at each scrape,
                scrapes at the same time sharing one reading.
            collect_timeout_seconds: Seconds that a reading may take. At a scrape it also ends half a second
                before the scraper gives up: the answer then says that the reading failed.
            compute_apps: Export each process that computes on a GPU, with its memory. The pods then see the
                node's processes (hostPID), for which the namespace must be privileged. On a MIG GPU it takes
                ``security_context={"privileged": True}`` and ``env={"NVIDIA_MIG_MONITOR_DEVICES": "all"}`` too.
            compute_apps_mig: Label those with their MIG instance; with ``nvml``.
            pcie_throughput: Measure the traffic on the bus, which takes 40 ms for each GPU; with ``nvml``.
            telemetry_path: Where the metrics are.
            log_level: ``debug``, ``info``, ``warn`` or ``error``.
            log_format: ``logfmt`` or ``json``.
            options: ``port`` is 9835 by default. The default ``scrape`` scrapes every 30 seconds, or as often as the
                GPUs are read in the background. ``host_network`` needs a privileged namespace. Without the nvidia
                runtime the exporter runs and reports ``nvidia_smi_last_collect_success 0``, or with the backend
                ``nvml`` ends. No token of a ``service_account`` is mounted. An ``image`` must be made for the same
                backend. ``resources`` are requests of 50m CPU and 64Mi and a memory limit of 256Mi by default. No
                ``priority_class_name`` by default: losing metrics must not evict workloads.

        Raises:
            GpuConstructsError: A value above is not allowed; a field that the backend does not know, or without
                which the labels would be missing; an option of the other backend; a privilege that the
                namespace refuses; a password or a certificate that the scrape object has nothing for.
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
