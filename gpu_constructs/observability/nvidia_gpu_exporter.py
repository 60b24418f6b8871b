"""GPU metrics without privileges: nvidia_gpu_exporter with what scrapes and shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from constructs import Construct

from gpu_constructs import _fields, _references, placement, versions
from gpu_constructs._config_map import sha256
from gpu_constructs._construct import GpuObject, checked
from gpu_constructs._container_security import POD
from gpu_constructs._daemonset import daemonset
from gpu_constructs._labels import object_labels, selector_labels
from gpu_constructs._manifest import Manifest
from gpu_constructs._references import NamedObject
from gpu_constructs._resources import Resources, container_resources
from gpu_constructs.errors import GpuConstructsError, short_errors
from gpu_constructs.namespace import namespace_name, require_privileged
from gpu_constructs.observability import nvidia_gpu_exporter_pod as pods
from gpu_constructs.observability.exporter_options import ExporterService
from gpu_constructs.observability.gpu_series import GpuSeries, nvidia_smi_series
from gpu_constructs.observability.nvidia_smi_fields import AUTO, Backend, exported_metrics
from gpu_constructs.observability.scrape import Scrape, ScrapeKind, scrape_manifest
from gpu_constructs.observability.user_mounts import beside_own
from gpu_constructs.observability.web_config import (
    WEB_CONFIG_KEY,
    BasicAuth,
    Tls,
    probe,
    scrape_access,
    web_config,
    web_config_object,
)
from gpu_constructs.placement import Toleration
from gpu_constructs.platforms import DEFAULT_PLATFORM, GPU_PRESENT, Kubernetes, Platform
from gpu_constructs.provided import Provided, placement_of
from gpu_constructs.runtime_class import runtime_class_name
from gpu_constructs.update_strategy import UpdateStrategy
from gpu_constructs.workload.env import AnyEnvValue, environment
from gpu_constructs.workload.volume import Mountable, mounts


class NvidiaGpuExporter(GpuObject):
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
        name: Of the DaemonSet and the Service.
        namespace: It lives in.
        series: What is exported, for ``GpuAlerts`` and ``GpuDashboard``.
        api_object: The DaemonSet.

    Source:
        utkuozdemir/nvidia_gpu_exporter@v1.14.0: charts/nvidia-gpu-exporter, internal/app/app.go,
        docs/CONFIGURE.md, docs/METRICS.md
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        namespace: str | NamedObject = pods.DEFAULT_NAMESPACE,
        platform: Platform = DEFAULT_PLATFORM,
        version: str | versions.Unverified = versions.DEFAULT_NVIDIA_GPU_EXPORTER,
        name: str = pods.NAME,
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
        tls: Tls | None = None,
        basic_auth: BasicAuth | None = None,
        scrape: ScrapeKind | Scrape = "ServiceMonitor",
        scrape_labels: Mapping[str, str] | None = None,
        dashboard: bool = True,
        service: bool | ExporterService = True,
        port: int = 9835,
        telemetry_path: str = "/metrics",
        log_level: Literal["debug", "info", "warn", "error"] = "info",
        log_format: Literal["logfmt", "json"] = "logfmt",
        host_network: bool = False,
        env: Mapping[str, str | AnyEnvValue] | None = None,
        volumes: Mapping[str, Mountable] | None = None,
        runtime_class: str | NamedObject | None = None,
        service_account: str | NamedObject | None = None,
        tolerations: Sequence[Toleration] = (),
        node_selector: Mapping[str, str] | None = None,
        affinity: Mapping[str, Any] | None = None,
        image: str | None = None,
        image_pull_policy: str = "IfNotPresent",
        image_pull_secrets: Sequence[str] = (),
        resources: Resources | None = None,
        priority_class_name: str | None = None,
        update_strategy: UpdateStrategy | None = None,
        pod_labels: Mapping[str, str] | None = None,
        pod_annotations: Mapping[str, str] | None = None,
        security_context: Mapping[str, Any] | None = None,
        pod_security_context: Mapping[str, Any] | None = None,
    ) -> None:
        """Make the exporter.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            namespace: By name or object; ``restricted`` is enough.
            platform: ``Talos("1.12")`` or ``Kubernetes()``; decides the runtime class.
            version: Release of the program; its chart counts one major release further.
            name: In front of the names of all objects.
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
            tls: A certificate for the exporter, which the scrape object then uses.
            basic_auth: Passwords for the exporter, and with which the scrape object logs in.
            scrape: Kind of the scrape object, or a ``Scrape`` with its options; ``none`` leaves it out. By
                default every 30 seconds, or as often as the GPUs are read in the background.
            scrape_labels: Labels by which the monitoring stack finds the scrape object, such as
                ``release: kube-prometheus-stack``.
            dashboard: Whether to emit the Grafana dashboard; ``GpuDashboard`` has options for it.
            service: Whether to emit the Service, or its options. Kinds that scrape pods do without.
            port: Of the metrics, in the pod and in the Service.
            telemetry_path: Where the metrics are.
            log_level: ``debug``, ``info``, ``warn`` or ``error``.
            log_format: ``logfmt`` or ``json``.
            host_network: Run in the node's network, for which the namespace must be privileged.
            env: Further environment variables.
            volumes: Further mounts by path.
            runtime_class: Name or object. None: the platform decides. Without the nvidia runtime the exporter
                runs and reports ``nvidia_smi_last_collect_success 0``, or with the backend ``nvml`` ends.
            service_account: An existing ServiceAccount, by name or object, such as one with pull secrets. No
                token of it is mounted.
            tolerations: Taints of the GPU nodes, on top of ``nvidia.com/gpu``.
            node_selector: Node labels, besides ``nvidia.com/gpu.present=true``.
            affinity: Affinity of the pods, as Kubernetes writes it.
            image: Another ``repository:tag`` or digest, made for the same backend.
            image_pull_policy: ``IfNotPresent``, ``Always`` or ``Never``.
            image_pull_secrets: Names of Secrets for the image's registry.
            resources: By default requests of 50m CPU and 64Mi and a memory limit of 256Mi.
            priority_class_name: None by default: losing metrics must not evict workloads.
            update_strategy: Node by node by default.
            pod_labels: Further labels of the pods.
            pod_annotations: Further annotations of the pods.
            security_context: Of the container, instead of one that holds nothing.
            pod_security_context: Of the pod, on top of the runtime's own seccomp profile.

        Raises:
            GpuConstructsError: A value above is not allowed; a field that the backend does not know, or without
                which the labels would be missing; an option of the other backend; a privilege that the
                namespace refuses; a password or a certificate that the scrape object has nothing for.
        """
        _fields.label_value("id", id)
        if instance is None:
            instance = id if name == pods.NAME else name
        _fields.label_value("instance", instance)
        where = namespace_name(namespace)
        if compute_apps:
            require_privileged("namespace", namespace, "compute_apps sees the node's processes (hostPID)")
        if host_network:
            require_privileged("namespace", namespace, "host_network shares the node's network")
        _fields.dns_label("name", name)
        if len(name) > pods.LONGEST_NAME:
            raise GpuConstructsError(
                f"name must have at most {pods.LONGEST_NAME} characters, since others follow; got {name!r}"
            )
        release = versions.release_of(versions.NVIDIA_GPU_EXPORTER, version, "nvidia_gpu_exporter")
        metrics = exported_metrics(
            backend,
            query_field_names,
            query_field_names_exclude,
            compute_apps=compute_apps,
            pcie_throughput=pcie_throughput,
        )
        pods.check_backend(
            backend, nvidia_smi_command, compute_apps_mig=compute_apps_mig, pcie_throughput=pcie_throughput
        )
        if compute_apps_mig and not compute_apps:
            raise GpuConstructsError("compute_apps_mig must be False without compute_apps, whose series it labels")
        _fields.port_number("port", port)
        pods.check_times(collect_interval_seconds, collect_timeout_seconds)
        for keyword, given in {
            "affinity": affinity,
            "env": env,
            "image": image,
            "image_pull_policy": image_pull_policy,
            "image_pull_secrets": image_pull_secrets,
            "node_selector": node_selector,
            "pod_annotations": pod_annotations,
            "pod_labels": pod_labels,
            "pod_security_context": pod_security_context,
            "priority_class_name": priority_class_name,
            "security_context": security_context,
            "telemetry_path": telemetry_path,
        }.items():
            if given is not None:
                pods.CHECKS[keyword](keyword, given)
        scraped = Scrape.of(scrape, scrape_labels)
        served = ExporterService() if service is True else service
        scraped.require_way(has_service=served is not False, is_guarded=bool(tls or basic_auth))
        scraped.warn_of_another(
            service_annotations=served.annotations if isinstance(served, ExporterService) else {},
            pod_annotations=pod_annotations or {},
        )
        account = None
        if service_account is not None:
            account = _references.name_of("service_account", service_account, "ServiceAccount")
        web = web_config(tls, basic_auth)

        selector = selector_labels(name=pods.NAME, instance=instance, component="exporter")
        labels = object_labels(selector, version=release.version)
        metadata: dict[str, Any] = {"name": name, "namespace": where, "labels": labels}
        flags = {
            "--web.listen-address": f":{port}",
            "--web.telemetry-path": telemetry_path,
            "--nvidia-smi-command": nvidia_smi_command,
            "--query-field-names": ",".join(query_field_names),
            "--query-field-names-exclude": ",".join(query_field_names_exclude) or None,
            "--collect.backend": "nvml" if backend == "nvml" else "exec",
            "--collect.interval": f"{collect_interval_seconds}s" if collect_interval_seconds else None,
            "--collect.timeout": f"{collect_timeout_seconds}s",
            "--log.level": log_level,
            "--log.format": log_format,
            "--web.config.file": f"{pods.WEB_CONFIG_DIRECTORY}/{WEB_CONFIG_KEY}" if web else None,
        }
        switches = {
            "--collect.compute-apps": compute_apps,
            "--collect.compute-apps-mig": compute_apps_mig,
            "--collect.pcie-throughput": pcie_throughput,
        }
        mounted, sources = mounts(volumes or {}, shared_memory=None)
        own_mounts, own_sources = pods.guard_volumes(tls, basic_auth, f"{name}-web-config" if web else None)
        mounted, sources = beside_own(own_mounts, mounted, sources)
        container = {
            "name": pods.NAME,
            "image": image or pods.pod_image(release, backend, is_verified=isinstance(version, str)),
            "imagePullPolicy": image_pull_policy,
            "args": [
                *(word for flag, value in flags.items() if value is not None for word in (flag, value)),
                *(flag for flag, is_on in switches.items() if is_on),
            ],
            "env": [
                # Every GPU of the node without asking for one, and no more of the driver than reading takes.
                {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
                {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility"},
                *environment(env or {}, visible_devices_is_managed=False),
            ],
            "ports": [{"name": pods.PORT_NAME, "containerPort": port, "protocol": "TCP"}],
            # Each question at start may take the timeout, and killing nvidia-smi two seconds more.
            "startupProbe": probe(
                "/-/ready",
                pods.PORT_NAME,
                tls,
                basic_auth,
                period=5,
                failures=6 + pods.RUNS_AT_START * (collect_timeout_seconds + 2) // 5,
            ),
            "livenessProbe": probe("/-/healthy", pods.PORT_NAME, tls, basic_auth, period=20, failures=3),
            "readinessProbe": probe("/-/ready", pods.PORT_NAME, tls, basic_auth, period=10, failures=3),
            "resources": container_resources(resources, default=pods.DEFAULT_RESOURCES),
            "securityContext": dict(security_context) if security_context is not None else pods.unprivileged(),
            "volumeMounts": [*own_mounts, *mounted] or None,
        }
        architecture = {pods.ARCHITECTURE: "amd64"} if backend == "nvml" else {}
        pod = {
            "affinity": affinity or None,
            "automountServiceAccountToken": False,
            "containers": [container],
            "dnsPolicy": "ClusterFirstWithHostNet" if host_network else None,
            "enableServiceLinks": False,
            "hostNetwork": host_network or None,
            "hostPID": compute_apps or None,
            "imagePullSecrets": [{"name": secret} for secret in image_pull_secrets] or None,
            "nodeSelector": {GPU_PRESENT: "true", **architecture, **(node_selector or {})},
            "priorityClassName": priority_class_name,
            "runtimeClassName": runtime_class_name(runtime_class, platform),
            # A Secret's files belong to root; a group makes them readable to others.
            "securityContext": {**POD, **({"fsGroup": pods.USER} if web else {}), **(pod_security_context or {})},
            "serviceAccountName": account,
            "tolerations": placement.tolerations((placement.GPU_TAINT,), tolerations),
            "volumes": [*own_sources, *sources] or None,
        }
        exporter = daemonset(
            metadata={**metadata, "labels": {**(pod_labels or {}), **labels}},
            selector=selector,
            annotations={**(pod_annotations or {}), **({pods.WEB_CONFIG_CHECKSUM: sha256(web)} if web else {})},
            pod_spec=pod,
            update_strategy=(update_strategy or UpdateStrategy.rolling_update(max_unavailable=1)).to_manifest(),
        )
        manifests: dict[str, dict[str, Any]] = {"Default": exporter}
        if web:
            manifests["web-config"] = web_config_object({**metadata, "name": f"{name}-web-config"}, web, basic_auth)
        if isinstance(served, ExporterService):
            found_by = scraped.annotations(port, telemetry_path)
            annotated = {**metadata, "annotations": {**served.annotations, **found_by} or None}
            manifests["service"] = served.to_manifest(annotated, selector, port=port, port_name=pods.PORT_NAME)
        if scraped.is_object:
            manifests["scrape"] = scrape_manifest(
                scraped,
                name=name,
                namespace=where,
                labels=labels,
                selector_labels=selector,
                port=pods.PORT_NAME,
                collect_interval_seconds=collect_interval_seconds or pods.SCRAPE_INTERVAL_SECONDS,
                access=scrape_access(tls, basic_auth, server_name=f"{name}.{where}.svc"),
                path=telemetry_path,
            )
        super().__init__(scope, id)
        self.name = name
        self.namespace = where
        self.series: GpuSeries = nvidia_smi_series(
            job=name if scraped.is_object else None,
            metrics=metrics,
            scrape_interval_seconds=scraped.interval_seconds
            or collect_interval_seconds
            or pods.SCRAPE_INTERVAL_SECONDS,
        )
        self.provides = Provided(platform=platform, runs_on=(placement_of(pod),))
        for child, manifest in manifests.items():
            Manifest(self, child, manifest)
        if dashboard:
            from gpu_constructs.observability.gpu_dashboard import GpuDashboard

            GpuDashboard(self, "dashboard", exporter=self)

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
        version: str | versions.Unverified = versions.DEFAULT_NVIDIA_GPU_EXPORTER,
        platform: Platform = Kubernetes(),  # noqa: B008
        strict: bool = True,
    ) -> NvidiaGpuExporter:
        """Make the exporter from the values of its Helm chart.

        Emits the same objects under the same names, but for the deviations that the page "Coming from the
        Helm chart" lists.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            values: What the values file says, as Python; the chart's own defaults need not be in it.
            release_name: Of the Helm release; names and labels are made from it as Helm does.
            namespace: Of the Helm release.
            version: Of the program, one major release behind the chart's: 1.14.0 for chart 2.14.0.
            platform: What the values cannot say; plain Kubernetes by default, which adds nothing.
            strict: Refuse a key that the chart does not read, or whose value it or the exporter would refuse
                or ignore. False drops such a key with a warning.

        Raises:
            GpuConstructsError: See ``strict``; and whatever the keywords themselves raise.
        """
        # The table of the chart's keys is for those who come from it.
        from gpu_constructs.observability import nvidia_gpu_exporter_helm

        path = f"{scope.node.path}/{id}".lstrip("/") if isinstance(scope, Construct) else ""
        try:
            options = nvidia_gpu_exporter_helm.exporter_options(
                values,
                release_name=release_name,
                namespace=namespace,
                version=version,
                platform=platform,
                strict=strict,
            )
        except GpuConstructsError as error:
            raise error.at(path) from None
        return cls(scope, id, version=version, platform=platform, **options)
