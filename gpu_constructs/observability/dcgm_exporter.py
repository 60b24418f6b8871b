"""GPU metrics: the DCGM exporter with what scrapes and shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from constructs import Construct

from gpu_constructs import _fields, _rbac, _references, placement, versions
from gpu_constructs._config_map import config_map, sha256
from gpu_constructs._construct import GpuObject, checked
from gpu_constructs._container_security import POD_SECURITY_CONTEXT, SECURITY_CONTEXT
from gpu_constructs._daemonset import daemonset
from gpu_constructs._labels import object_labels, selector_labels
from gpu_constructs._manifest import Manifest
from gpu_constructs._references import NamedObject
from gpu_constructs._resources import Resources, container_resources
from gpu_constructs.errors import GpuConstructsError, short_errors, warn
from gpu_constructs.namespace import DEFAULT_NAMESPACE, component_namespace
from gpu_constructs.observability import daemonset as pods
from gpu_constructs.observability import metrics as catalogue
from gpu_constructs.observability.exporter_options import DebugDump, ExporterService, MetricsConfigMap
from gpu_constructs.observability.gpu_series import GpuSeries, dcgm_series
from gpu_constructs.observability.metrics import Metric, MetricSet
from gpu_constructs.observability.pod_mapping import PodMapping
from gpu_constructs.observability.scrape import Scrape, ScrapeKind, scrape_manifest
from gpu_constructs.observability.web_config import BasicAuth, Tls, scrape_access, web_config, web_config_object
from gpu_constructs.placement import Toleration
from gpu_constructs.platforms import DEFAULT_PLATFORM, GPU_PRESENT, Kubernetes, Platform
from gpu_constructs.provided import Provided, placement_of
from gpu_constructs.runtime_class import runtime_class_name
from gpu_constructs.sharing import Sharing
from gpu_constructs.update_strategy import UpdateStrategy
from gpu_constructs.workload.env import AnyEnvValue, environment
from gpu_constructs.workload.volume import Mountable, mounts

NAME = "dcgm-exporter"

_WEB_CONFIG_SINCE = (4, 0, 0)
_DEBUG_DUMP_SINCE = (4, 2, 0)
_NO_LABELS = {"name": "", "instance": "", "component": ""}
_LONGEST_NAME = 63 - len("-web-config")
_ADDRESS = re.compile(
    r"(\[[0-9A-Fa-f:.]+\]|\$\([A-Za-z_][A-Za-z0-9_]*\)|[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?):[0-9]{1,5}\Z"
)


class DcgmExporter(GpuObject):
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
        name: Of the DaemonSet and the Service.
        namespace: It lives in.
        metrics: What is exported; empty for a list that somebody else keeps.
        series: The same, for ``GpuAlerts`` and ``GpuDashboard``.
        api_object: The DaemonSet.

    Source:
        NVIDIA/dcgm-exporter@3.3.6-3.4.2 and @4.5.3-4.8.2, deployment/; image 4.6.0-4.8.3 as pinned by
        NVIDIA/gpu-operator@v26.7.0
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        namespace: str | NamedObject = DEFAULT_NAMESPACE,
        platform: Platform = DEFAULT_PLATFORM,
        version: str | versions.Unverified = versions.DEFAULT_DCGM_EXPORTER,
        name: str = NAME,
        instance: str | None = None,
        metrics: MetricSet | MetricsConfigMap | Sequence[Metric | str] = "recommended",
        gpu_models: Sequence[str] = (),
        collect_interval_seconds: int = catalogue.COLLECTION_INTERVAL_SECONDS,
        pod_mapping: bool | PodMapping = True,
        sharing: Sharing | None = None,
        remote_hostengine: str | None = None,
        tls: Tls | None = None,
        basic_auth: BasicAuth | None = None,
        scrape: ScrapeKind | Scrape = "ServiceMonitor",
        scrape_labels: Mapping[str, str] | None = None,
        dashboard: bool = True,
        service: bool | ExporterService = True,
        port: int = 9400,
        host_network: bool = False,
        debug_dump: bool | DebugDump = False,
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
            namespace: By name or object; it must be privileged for pod mapping (host path) and for profiling
                metrics (SYS_ADMIN).
            platform: ``Talos("1.12")`` or ``Kubernetes()``; decides the runtime class.
            version: Chart and exporter release: ``"4.8.3"`` by default; ``"4.8.2"``, whose image lacks
                libraries and with them XID and NVLink metrics; ``"3.4.2"``, which predates Blackwell GPUs.
            name: In front of the names of all objects.
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
            tls: A certificate for ``/metrics``, which the scrape object then uses.
            basic_auth: Passwords for ``/metrics``, and with which the scrape object logs in.
            scrape: Kind of the scrape object, or a ``Scrape`` with its options; ``none`` leaves it out. The
                VictoriaMetrics operator converts a ``ServiceMonitor`` where the CRD is installed, so one is
                enough.
            scrape_labels: Labels by which the monitoring stack finds the scrape object, such as
                ``release: kube-prometheus-stack``.
            dashboard: Whether to emit the Grafana dashboard; ``GpuDashboard`` has options for it.
            service: Whether to emit the Service, or its options. Kinds that scrape pods do without.
            port: Of ``/metrics`` and ``/health``, in the pod and in the Service.
            host_network: Run in the node's network, where pod addresses are scarce.
            debug_dump: Keep files with what was read, for a bug report.
            env: Further environment variables of the exporter, such as ``DCGM_EXPORTER_LOG_FORMAT``.
            volumes: Further mounts by path, such as ``Volume.host_path`` with a scheduler's job files.
            runtime_class: Name or object. None: the platform decides. Without the nvidia runtime the
                exporter ends with "Cannot init NVML library".
            service_account: An existing ServiceAccount, by name or object; where the API server is asked, it
                is given what the exporter needs. None: one is made where it is needed.
            tolerations: Taints of the GPU nodes, on top of ``nvidia.com/gpu``.
            node_selector: Node labels, besides ``nvidia.com/gpu.present=true``.
            affinity: Affinity of the pods, as Kubernetes writes it.
            image: Another ``repository:tag`` or digest.
            image_pull_policy: ``IfNotPresent``, ``Always`` or ``Never``.
            image_pull_secrets: Names of Secrets for the image's registry.
            resources: By default requests of 100m CPU and 256Mi and a memory limit of 1Gi, since pod mapping
                takes 400 to 500 MiB and nodes with eight GPUs take more.
            priority_class_name: None by default: losing metrics must not evict workloads.
            update_strategy: Node by node by default.
            pod_labels: Further labels of the pods.
            pod_annotations: Further annotations of the pods.
            security_context: Of the container, instead of what the options need; must still hold that.
            pod_security_context: Of the pod, on top of the runtime's own seccomp profile.

        Raises:
            GpuConstructsError: A value above is not allowed, or the release does not know the option; a metric
                the release's DCGM does not know; profiling metrics where no GPU has them; a password or a
                certificate that the scrape object has nothing for.
        """
        _fields.label_value("id", id)
        if instance is None:
            instance = id if name == NAME else name
        _fields.label_value("instance", instance)
        where = component_namespace(namespace)
        _fields.dns_label("name", name)
        if len(name) > _LONGEST_NAME:
            raise GpuConstructsError(
                f"name must have at most {_LONGEST_NAME} characters, since others follow; got {name!r}"
            )
        release = versions.release_of(versions.DCGM_EXPORTER, version, "the DCGM exporter")
        known_as = release.behaves_like
        _fields.whole_number("collect_interval_seconds", collect_interval_seconds, minimum=1, maximum=3600)
        _fields.port_number("port", port)
        exported, is_profiled = _exported(metrics, known_as, gpu_models, known_as=release.version)
        mapping = PodMapping.of(pod_mapping, sharing, known_as)
        if mapping is None and sharing is not None and sharing.strategy != "none":
            raise GpuConstructsError(
                f"sharing must be left out with pod_mapping=False, which names no pod at all; got {sharing.strategy!r}"
            )
        for option, given, since in (
            ("tls", tls, _WEB_CONFIG_SINCE),
            ("basic_auth", basic_auth, _WEB_CONFIG_SINCE),
            ("debug_dump", debug_dump or None, _DEBUG_DUMP_SINCE),
        ):
            if given is not None and catalogue.release_number(known_as) < since:
                first = ".".join(map(str, since))
                raise GpuConstructsError(
                    f"{option} must be left out with version {release.version!r}: it came with {first}; take a later "
                    "version"
                )
        scraped = Scrape.of(scrape, scrape_labels)
        served = ExporterService() if service is True else service
        scraped.require_way(has_service=served is not False, is_guarded=bool(tls or basic_auth))
        scraped.warn_of_another(
            service_annotations=served.annotations if isinstance(served, ExporterService) else {},
            pod_annotations=pod_annotations or {},
        )
        dump = DebugDump() if debug_dump is True else debug_dump
        if host_network and port < 1024:
            raise GpuConstructsError(
                "port must be at least 1024 with host_network=True: the exporter holds no right to bind others; "
                f"got {port}"
            )
        if remote_hostengine is not None:
            if not _ADDRESS.match(remote_hostengine):
                raise GpuConstructsError(f"remote_hostengine must be 'host:port'; got {remote_hostengine!r}")
            _fields.port_number("port of remote_hostengine", int(remote_hostengine.rpartition(":")[2]))
        # A hostengine elsewhere does the profiling itself.
        needs_rights = is_profiled and remote_hostengine is None
        _check_pods(
            is_profiled=needs_rights,
            is_mapped=mapping is not None,
            env=env or {},
            node_selector=node_selector or {},
            affinity=affinity or {},
            image=image,
            image_pull_policy=image_pull_policy,
            image_pull_secrets=image_pull_secrets,
            priority_class_name=priority_class_name,
            pod_labels=pod_labels or {},
            pod_annotations=pod_annotations or {},
            security_context=security_context,
            pod_security_context=pod_security_context or {},
        )
        selector = selector_labels(name=NAME, instance=instance, component="exporter")
        labels = object_labels(selector, version=release.version)
        metadata: dict[str, Any] = {"name": name, "namespace": where, "labels": labels}
        rules = mapping.rules() if mapping else []
        account = None
        if service_account is not None:
            account = _references.name_of("service_account", service_account, "ServiceAccount")
        elif rules:
            account = name
        mounted, sources = mounts(volumes or {}, shared_memory=None)
        web = web_config(tls, basic_auth)
        foreign = metrics if isinstance(metrics, MetricsConfigMap) else None
        csv = "" if foreign else catalogue.counters_csv(exported)
        selected = {GPU_PRESENT: "true", **(node_selector or {})}
        pod = pods.exporter_pod(
            image=image or release.image,
            image_pull_policy=image_pull_policy,
            release=known_as,
            metrics_config_map=str(foreign.config_map) if foreign else f"{name}-metrics",
            metrics_key=foreign.key if foreign else pods.METRICS_KEY,
            is_profiled=needs_rights,
            mapping=mapping,
            collect_interval_seconds=collect_interval_seconds,
            port=port,
            resources=container_resources(resources, default=pods.DEFAULT_RESOURCES),
            remote_hostengine=remote_hostengine,
            tls=tls,
            basic_auth=basic_auth,
            web_config=f"{name}-web-config" if web else None,
            debug_dump=dump or None,
            security_context=security_context,
            pod_security_context=pod_security_context,
            service_account=account,
            runtime_class=runtime_class_name(runtime_class, platform),
            host_network=host_network,
            placement={
                "affinity": affinity or None,
                "imagePullSecrets": [{"name": secret} for secret in image_pull_secrets] or None,
                "nodeSelector": selected,
                "priorityClassName": priority_class_name,
                "tolerations": placement.tolerations((placement.GPU_TAINT,), tolerations),
            },
            env=environment(env or {}, visible_devices_is_managed=False),
            mounts=mounted,
            volumes=sources,
        )
        checksums = {pods.METRICS_CHECKSUM: sha256(csv)} if csv else {}
        if web:
            checksums[pods.WEB_CONFIG_CHECKSUM] = sha256(web)
        exporter = daemonset(
            metadata={**metadata, "labels": {**(pod_labels or {}), **labels}},
            selector=selector,
            annotations={**(pod_annotations or {}), **checksums},
            pod_spec=pod,
            update_strategy=(update_strategy or UpdateStrategy.rolling_update(max_unavailable=1)).to_manifest(),
        )
        series = dcgm_series(
            job=name if scraped.is_object else None,
            metrics=[metric.field for metric in exported if metric.prometheus_type != "label"],
            # Without pods a remote hostengine's name stands where the node's would.
            hostname_label="node" if remote_hostengine and mapping is None else catalogue.hostname_label(known_as),
            pods=_named_pods(mapping, scraped),
            scrape_interval_seconds=scraped.interval_seconds or collect_interval_seconds,
        )
        manifests: dict[str, dict[str, Any]] = {}
        if csv:
            manifests["metrics"] = config_map({**metadata, "name": f"{name}-metrics"}, {pods.METRICS_KEY: csv})
        if web:
            manifests["web-config"] = web_config_object({**metadata, "name": f"{name}-web-config"}, web, basic_auth)
        if rules and service_account is None:
            manifests |= _rbac.service_account(metadata)
        if rules:
            manifests |= _rbac.cluster_role(metadata, rules, account=account)
        manifests["Default"] = exporter
        if isinstance(served, ExporterService):
            annotated = {**metadata, "annotations": {**served.annotations, **scraped.annotations(port)} or None}
            manifests["service"] = served.to_manifest(annotated, selector, port=port, port_name=pods.PORT_NAME)
        if scraped.is_object:
            manifests["scrape"] = scrape_manifest(
                scraped,
                name=name,
                namespace=where,
                labels=labels,
                selector_labels=selector,
                port=pods.PORT_NAME,
                collect_interval_seconds=collect_interval_seconds,
                access=scrape_access(tls, basic_auth, server_name=f"{name}.{where}.svc"),
            )
        if dashboard and not exported:
            raise GpuConstructsError(
                "dashboard must be False with metrics=MetricsConfigMap(...), whose metrics are not known here; "
                "got True; pass dashboard=False"
            )
        super().__init__(scope, id)
        self.name = name
        self.namespace = where
        self.metrics = exported
        self.series: GpuSeries = series
        self.provides = Provided(
            platform=platform,
            components=("dcgm-exporter",),
            runs_on=(placement_of(pod),),
            profiles_gpus=needs_rights,
            assumed_sharing=sharing,
            names_one_pod=pod_mapping is True and sharing is None,
        )
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
        version: str | versions.Unverified = versions.DEFAULT_DCGM_EXPORTER,
        platform: Platform = Kubernetes(),  # noqa: B008
        strict: bool = True,
    ) -> DcgmExporter:
        """Make the exporter from the values of NVIDIA's Helm chart.

        Emits the same objects under the same names, but for the deviations that the page "Coming from the
        Helm chart" lists.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            values: What the values file says, as Python; the chart's own defaults need not be in it.
            release_name: Of the Helm release; names and labels are made from it as Helm does.
            namespace: Of the Helm release.
            version: Of the chart.
            platform: What the values cannot say; plain Kubernetes by default, which adds nothing.
            strict: Refuse a key that the chart does not read, or whose value it or the exporter would refuse
                or ignore. False drops such a key with a warning.

        Raises:
            GpuConstructsError: See ``strict``; and whatever the keywords themselves raise.
        """
        # The table of the chart's keys is for those who come from it.
        from gpu_constructs.observability import dcgm_helm

        path = f"{scope.node.path}/{id}".lstrip("/") if isinstance(scope, Construct) else ""
        try:
            options = dcgm_helm.exporter_options(
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


def _exported(
    given: MetricSet | MetricsConfigMap | Sequence[Metric | str],
    release: str,
    gpu_models: Sequence[str],
    *,
    known_as: str,
) -> tuple[tuple[Metric, ...], bool]:
    """Give the metrics, and whether the exporter must be able to profile."""
    can_profile = True
    if gpu_models:
        from gpu_constructs.gpu_models import doubt_of, has_profiling_metrics

        known = {model: has_profiling_metrics(model) for model in gpu_models}
        can_profile = any(profiles is not False for profiles in known.values())
        for model in (model for model, profiles in known.items() if profiles is None):
            near = doubt_of(model)
            if near is not None:
                warn(f"gpu_models: {model!r} is not the name of a known board{near}; it is taken to have profiling")
    if isinstance(given, MetricsConfigMap):
        if given.is_profiled and not can_profile:
            raise GpuConstructsError(
                f"metrics.is_profiled must be False for {', '.join(map(repr, gpu_models))}: GeForce has no profiling "
                "metrics before Blackwell; got True"
            )
        return (), given.is_profiled
    exported = catalogue.exported_metrics(
        given, release, known_as=known_as, is_profiled=can_profile or given == "profiling"
    )
    is_profiled = catalogue.needs_profiling(exported)
    if is_profiled and not can_profile:
        first = next(metric.field for metric in exported if catalogue.needs_profiling([metric]))
        got = repr(given) if isinstance(given, str) else repr(first)
        raise GpuConstructsError(
            f"metrics must not hold profiling metrics for {', '.join(map(repr, gpu_models))}: GeForce has none before "
            f"Blackwell; got {got}; take metrics='recommended', which leaves them out for such GPUs"
        )
    return exported, is_profiled


def _check_pods(
    *,
    is_profiled: bool,
    is_mapped: bool,
    env: Mapping[str, str | AnyEnvValue],
    node_selector: Mapping[str, str],
    affinity: Mapping[str, Any],
    image: str | None,
    image_pull_policy: str,
    image_pull_secrets: Sequence[str],
    priority_class_name: str | None,
    pod_labels: Mapping[str, str],
    pod_annotations: Mapping[str, str],
    security_context: Mapping[str, Any] | None,
    pod_security_context: Mapping[str, Any],
) -> None:
    _fields.labels("node_selector", node_selector)
    placement.check_affinity(affinity)
    _fields.labels("pod_labels", pod_labels)
    _fields.labels("pod_annotations", dict.fromkeys(pod_annotations, ""))
    for field, keys in (
        ("pod_labels", [key for key in pod_labels if key in object_labels(selector_labels(**_NO_LABELS), version="v")]),
        ("pod_annotations", [key for key in pod_annotations if key.startswith("gpu-constructs/")]),
    ):
        if keys:
            raise GpuConstructsError(f"{field} must not hold {keys[0]!r}: this library sets it; leave it out")
    _fields.one_of("image_pull_policy", image_pull_policy, ("Always", "IfNotPresent", "Never"))
    for secret in image_pull_secrets:
        _fields.dns_subdomain("image_pull_secrets", secret)
    if priority_class_name is not None:
        _fields.dns_subdomain("priority_class_name", priority_class_name)
    if image is not None:
        _fields.image("image", image)
    for variable in env:
        if variable in pods.OWN_VARIABLES:
            place = pods.OWN_VARIABLES[variable]
            if place == "nothing":
                raise GpuConstructsError(
                    f"env must not hold {variable!r}: it takes away labels that alerts and dashboard ask for; leave it "
                    "out"
                )
            way_out = f"set {place}" if place else "leave it out"
            raise GpuConstructsError(f"env must not hold {variable!r}: this library sets it; {way_out}")
    for key in pod_security_context:
        _fields.one_of("pod_security_context key", key, POD_SECURITY_CONTEXT)
    if security_context is not None:
        for key in security_context:
            _fields.one_of("security_context key", key, SECURITY_CONTEXT)
        held = security_context.get("capabilities")
        _fields.of_type("security_context['capabilities']", held, Mapping[str, Sequence[str] | None] | None)
        needed = pods.exporter_rights(is_profiled=is_profiled)
        if not needed.are_in(security_context):
            raise GpuConstructsError(
                f"security_context must hold {needed} for profiling metrics; got {dict(security_context)!r}; leave it "
                "out, or leave those metrics out"
            )
        is_root = security_context.get("runAsUser") in (None, 0) and not security_context.get("runAsNonRoot")
        if not is_root and (is_mapped or is_profiled):
            lost = " and ".join(
                [*(["the kubelet's socket, so no pod is named"] * is_mapped), *(["SYS_ADMIN"] * is_profiled)]
            )
            warn(f"security_context: only root gets {lost}; got {dict(security_context)!r}")


def _named_pods(mapping: PodMapping | None, scrape: Scrape) -> Literal["none", "one", "all"]:
    if mapping is None or scrape.kind == "annotations" or not scrape.honor_labels:
        return "none"
    return "all" if mapping.virtual_gpus else "one"
