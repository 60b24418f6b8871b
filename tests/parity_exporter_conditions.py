"""What the rows of ``exporter_deviations`` ask: values of a case, conditions, what one side alone holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from parity_compare import ABSENT, Context, Difference, OneSided, same
from parity_dropped import Condition, Governed
from parity_exporter import CHART, MAIN, METRICS_MAP, METRICS_VOLUME, NEW, OLD, Manifest, our_steps
from parity_fields import Fields, canonical, quantity
from parity_told import seconds, steps_told

OWN_DIRECTORY = "/etc/gpu-constructs/metrics"
_MAIN = ("pod", "containers", f"[{MAIN}]")
_REQUIRED = ("RequireAnyClientCert", "RequireAndVerifyClientCert")
VERIFIED = ("VerifyClientCertIfGiven", "RequireAndVerifyClientCert")
GPU_TOLERATION = canonical({"effect": "NoSchedule", "key": "nvidia.com/gpu", "operator": "Exists"})


def _pods(context: Context, side: str) -> Fields:
    return context.fields[side, "exporter", "DaemonSet", None]


def _setting(context: Context, side: str, flag: str) -> Any:
    return _pods(context, side).get(("settings", flag), ABSENT)


def _port(context: Context) -> Any:
    return _pods(context, "ours").get((*_MAIN, "ports", "[metrics]", "containerPort"), ABSENT)


def every(*conditions: Condition) -> Condition:
    def holds(difference: Difference, context: Context) -> bool:
        return all(condition(difference, context) for condition in conditions)

    return holds


def key_is(*keys: str) -> Condition:
    """The last part of the path is one of the keys, which may hold what a pattern cannot."""

    def holds(difference: Difference, context: Context) -> bool:
        return difference.path[-1].strip("[]") in keys

    return holds


# --- values ---------------------------------------------------------------------------------------------------


def chart_label(difference: Difference, context: Context) -> Any:
    return context.release.labels().get(difference.path[-1].strip("[]"), ABSENT)


def version(difference: Difference, context: Context) -> Any:
    return context.version


def instance(difference: Difference, context: Context) -> Any:
    return context.release.release


def named(suffix: str) -> Callable[[Difference, Context], Any]:
    """Our name with something behind it."""
    return lambda difference, context: f"{context.release.our_fullname}{suffix}"


def chart_named(suffix: str) -> Callable[[Difference, Context], Any]:
    """The chart's name with something behind it."""
    return lambda difference, context: f"{context.release.fullname}{suffix}"


def chart_account(difference: Difference, context: Context) -> Any:
    return context.release.account


def account_of_pods(difference: Difference, context: Context) -> Any:
    return context.chart.refer("ServiceAccount", context.release.account)


def list_from_the_api(difference: Difference, context: Context) -> Any:
    """The ConfigMap of the list that ours mounts."""
    name = our_map(difference, context)
    return f"{context.release.namespace}:{'exporter-metrics-config-map' if name == 'metrics' else name}"


def root_is_read_only(difference: Difference, context: Context) -> Any:
    return context.version != OLD


def kubelet_path(difference: Difference, context: Context) -> Any:
    return context.release.value("kubeletPath")


def our_timeout(difference: Difference, context: Context) -> Any:
    interval = context.fields_of("ours", difference).get((*difference.path[:3], "interval"))
    return min(10, interval) if isinstance(interval, int) else ABSENT


def dump_directory(difference: Difference, context: Context) -> Any:
    """The folder, unless what was said of it is another matter."""
    return context.release.value("debugDump.directory")


def pod_label(difference: Difference, context: Context) -> Any:
    return (context.release.value("podLabels") or {}).get(difference.path[-1][1:-1], ABSENT)


def port(difference: Difference, context: Context) -> Any:
    return _port(context)


def startup_failures(difference: Difference, context: Context) -> Any:
    return 12 + 2 * int(_setting(context, "ours", "collect-interval")) // 1000 // 5


def go_memory(difference: Difference, context: Context) -> Any:
    """Three quarters of the container's memory limit."""
    limit = _pods(context, "ours").get((*_MAIN, "resources", "limits", "[memory]"), ABSENT)
    return ABSENT if limit is ABSENT else f"{int(Decimal(str(limit)) * 3 / 4 / 2**20)}MiB"


def amount(text: str) -> str:
    return quantity(text)


def our_interval(difference: Difference, context: Context) -> Any:
    return int(_setting(context, "ours", "collect-interval")) // 1000


def our_step(difference: Difference, context: Context) -> Any:
    honors = context.fields_of("ours", difference).get((*difference.path[:3], "honorLabels")) is True
    return dict(our_steps(honors=honors)).get(difference.path[-1], ABSENT)


def our_file(difference: Difference, context: Context) -> Any:
    return f"{OWN_DIRECTORY}/{_our_list(context)[1]}"


def our_map(difference: Difference, context: Context) -> Any:
    return _our_list(context)[0]


def _our_list(context: Context) -> tuple[str, str]:
    """Name and key of the list: of ours by its role, of somebody else's by its name."""
    foreign = _pods(context, "ours").get(("exports", "the list of"))
    name, _, key = str(foreign).partition(" ")
    return ("metrics", "metrics.csv") if foreign is None else (name, key)


def listed_metric(difference: Difference, context: Context) -> Any:
    """What our pods export, which is what our list holds."""
    return _pods(context, "ours").get(("exports", difference.path[-1]), ABSENT)


def secret(difference: Difference, context: Context) -> Any:
    return context.release.value("tlsServerConfig.existingSecret")


def ca_key(difference: Difference, context: Context) -> Any:
    return context.release.value("tlsServerConfig.caFilename", "ca.crt")


def server_name(difference: Difference, context: Context) -> Any:
    return f"{context.release.our_fullname}.{context.release.namespace}.svc"


def hostname(difference: Difference, context: Context) -> Any:
    return f":{str(difference.chart).rpartition(':')[2]}"


# --- conditions -----------------------------------------------------------------------------------------------


def is_old(difference: Difference, context: Context) -> bool:
    return context.version == OLD


def is_new(difference: Difference, context: Context) -> bool:
    return context.version == NEW


def is_checksum(difference: Difference, context: Context) -> bool:
    return re.fullmatch(r"[0-9a-f]{64}", str(difference.ours)) is not None


def has_another_name(difference: Difference, context: Context) -> bool:
    return context.release.chart_name != CHART


def is_cut(difference: Difference, context: Context) -> bool:
    return context.release.fullname != context.release.our_fullname


def asks_nobody(difference: Difference, context: Context) -> bool:
    return _pods(context, "ours").get(("pod", "automountServiceAccountToken")) is False


def asks_the_api(difference: Difference, context: Context) -> bool:
    return _pods(context, "ours").get(("pod", "automountServiceAccountToken")) is True


def is_not_asked_for(difference: Difference, context: Context) -> bool:
    """A right that the exporter does not use with these settings, or that nothing has."""
    what = difference.path[-1][1:-1].partition(" ")[2]
    reads_pods = any(_setting(context, "ours", f"kubernetes-enable-pod-{word}") == "true" for word in ("labels", "uid"))
    reads_slices = _setting(context, "ours", "kubernetes-enable-dra") == "true"
    used = {
        "pods": reads_pods,
        "pods.resource.k8s.io": False,
        "resourceslices": False,
        "resourceslices.resource.k8s.io": reads_slices,
    }
    return not used.get(what, True)


def is_the_mount_of_the_list(difference: Difference, context: Context) -> bool:
    """Where the chart's pods read their list, or where the chart's own is mounted while another is read."""
    fields = _pods(context, "chart")
    mount = difference.path[:5]
    return fields.get(("reads", "mount")) == mount[-1][1:-1] or fields.get((*mount, "configMap")) == "metrics"


def is_unmounted_list(difference: Difference, context: Context) -> bool:
    """The volume of the chart's own list, whose mount the user's list of mounts has taken away."""
    return difference.path[2][1:-1] == canonical({key: METRICS_VOLUME[key] for key in ("configMap",)})


def image_without_tag(difference: Difference, context: Context) -> Any:
    repository = context.release.value("image.repository", "nvcr.io/nvidia/k8s/dcgm-exporter")
    return f"{repository}:{context.version}"


def is_any_reading_dropped(difference: Difference, context: Context) -> bool:
    return any(context.is_dropped(key) for key in _READINGS)


def is_not_read_by_the_chart(difference: Difference, context: Context) -> bool:
    """An entry of the chart's own list as the chart has it, which its pods do not read."""
    fields = _pods(context, "chart")
    mount = fields.get((*_MAIN, "mounts", f"[{fields.get(('reads', 'mount'))}]", "configMap"))
    from_api = fields.get(("reads", "api"))
    is_read = mount == "metrics" if from_api is None else str(from_api).endswith(f":{METRICS_MAP}")
    return not is_read and same(difference.chart, context.release.rendered_list.get(difference.path[-1], ABSENT))


def cannot_profile(difference: Difference, context: Context) -> bool:
    """A profiling metric, while the chart's container lacks SYS_ADMIN."""
    fields = _pods(context, "chart")
    added = [
        fields.get((*_MAIN, "securityContext", "capabilities", "add", f"[{name}]")) for name in ("SYS_ADMIN", "ALL")
    ]
    is_privileged = fields.get((*_MAIN, "securityContext", "privileged")) is True
    return difference.path[-1].startswith("DCGM_FI_PROF_") and True not in added and not is_privileged


def has_own_security_context(difference: Difference, context: Context) -> bool:
    """The values leave the container's security context as the chart has it."""
    default = type(context.release)(release="r", namespace="n", version=context.version, values={})
    is_dropped = context.is_dropped("securityContext")
    return is_dropped or context.release.value("securityContext") == default.value("securityContext")


def profiles_nothing(difference: Difference, context: Context) -> bool:
    exported = [path[1] for path in _pods(context, "ours") if path[0] == "exports"]
    return not any(name.startswith("DCGM_FI_PROF_") or name == "the list of" for name in exported)


def profiles_nothing_itself(difference: Difference, context: Context) -> bool:
    """No profiling metric, or a hostengine elsewhere reads the GPUs."""
    return profiles_nothing(difference, context) or bool(_setting(context, "ours", "remote-hostengine-info"))


def needs_no_root(difference: Difference, context: Context) -> bool:
    has_choice = has_own_security_context(difference, context) and context.version != OLD
    return has_choice and maps_no_pods(difference, context) and profiles_nothing_itself(difference, context)


def needs_no_root_to_read(difference: Difference, context: Context) -> bool:
    return context.version != OLD and maps_no_pods(difference, context) and profiles_nothing_itself(difference, context)


def dumps(difference: Difference, context: Context) -> bool:
    return _setting(context, "ours", "dump-enabled") == "true"


def is_dump_directory(difference: Difference, context: Context) -> bool:
    is_it = difference.path[4][1:-1] == context.release.value("debugDump.directory")
    return is_it and dumps(difference, context)


def maps_no_pods(difference: Difference, context: Context) -> bool:
    return _setting(context, "ours", "kubernetes") == "false"


def says_no_seccomp_profile(difference: Difference, context: Context) -> bool:
    return not context.release.value("podSecurityContext.seccompProfile")


def says_no_resources(difference: Difference, context: Context) -> bool:
    return not context.release.given_value("resources") or context.is_dropped("resources")


def says_no_cpu_limit(difference: Difference, context: Context) -> bool:
    return "cpu" not in (context.release.given_value("resources.limits") or {})


def says_no_priority(difference: Difference, context: Context) -> bool:
    return not context.release.given_value("priorityClassName")


def says_no_interval(difference: Difference, context: Context) -> bool:
    return not context.release.given_value("serviceMonitor.interval")


def says_nothing_of_labels(difference: Difference, context: Context) -> bool:
    return context.release.given_value("serviceMonitor.honorLabels") is None


def says_no_timeout(difference: Difference, context: Context) -> bool:
    return not context.release.given_value("serviceMonitor.scrapeTimeout")


def has_tls(difference: Difference, context: Context) -> bool:
    return bool(
        context.release.value("tlsServerConfig.enabled") and context.release.value("tlsServerConfig.existingSecret")
    )


def requires_a_certificate(difference: Difference, context: Context) -> bool:
    return has_tls(difference, context) and context.release.value("tlsServerConfig.clientAuthType") in _REQUIRED


def has_tls_for_the_scraper(difference: Difference, context: Context) -> bool:
    """The scraper must ask by TLS, which the chart never tells it."""
    return has_tls(difference, context) and not requires_a_certificate(difference, context)


def only_connects(difference: Difference, context: Context) -> bool:
    is_there = (*difference.path[:4], "tcpSocket", "port") in context.fields_of("ours", difference)
    return is_there and requires_a_certificate(difference, context)


def verifies_nobody(difference: Difference, context: Context) -> bool:
    return context.release.value("tlsServerConfig.clientAuthType") not in VERIFIED


def keeps_dumps_as_said(difference: Difference, context: Context) -> bool:
    return context.release.value("debugDump.compression") is False


def listens_everywhere(difference: Difference, context: Context) -> bool:
    return str(difference.chart).rpartition(":")[0] in ("0.0.0.0", "[::]")


def is_dropped(key: str, why: str = "") -> Condition:
    def holds(difference: Difference, context: Context) -> bool:
        return any(dropped == key and re.match(why, reason, re.S) for dropped, reason in context.dropped)

    return holds


# --- what one side alone holds --------------------------------------------------------------------------------


def _metadata(context: Context, name: str, **more: Any) -> Manifest:
    release = context.release
    return {"name": name, "namespace": release.namespace, "labels": release.labels(), **more}


def useless_rights(context: Context) -> Iterator[OneSided]:
    """The right to read one ConfigMap, which a mounted one does not need."""
    release = context.release
    group = "rbac.authorization.k8s.io"
    role = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["exporter-metrics-config-map"]}
    name = "dcgm-exporter-read-cm"
    yield OneSided(
        "read-cm",
        {
            "apiVersion": f"{group}/v1",
            "kind": "Role",
            "metadata": _metadata(context, name),
            "rules": [{**role, "verbs": ["get"]}],
        },
    )
    yield OneSided(
        "read-cm",
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": _metadata(context, release.fullname),
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": release.account, "namespace": release.namespace}],
        },
    )
    if release.value("serviceAccount.create") and context.ours.get("account", "ServiceAccount") is None:
        annotations = release.value("serviceAccount.annotations")
        token = {"automountServiceAccountToken": _has_token(context)} if context.version != OLD else {}
        yield OneSided(
            "account",
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": _metadata(context, release.account, annotations=annotations),
                **token,
            },
        )


def _has_token(context: Context) -> bool:
    value = context.release.value
    asks = value("kubernetes.enablePodLabels") or value("kubernetes.enablePodUID")
    is_asked = bool((asks and value("kubernetes.rbac.create")) or value("kubernetesDRA.enabled"))
    return is_asked and context.version != OLD


def unread_list(context: Context) -> Iterator[OneSided]:
    """The chart's ConfigMap where ours has none: somebody else keeps the list."""
    if context.ours.get("metrics", "ConfigMap") is not None:
        return
    release = context.release
    labels = release.labels() if context.version != OLD else None
    yield OneSided(
        "metrics",
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": release.namespace, "labels": labels},
            "lists": release.rendered_list,
        },
    )


def is_tls_dropped(difference: Difference, context: Context) -> bool:
    return _is_tls_dropped(context)


def _is_tls_dropped(context: Context) -> bool:
    return any(context.is_dropped(f"tlsServerConfig.{key}") for key in ("enabled", "existingSecret"))


def are_passwords_dropped(difference: Difference, context: Context) -> bool:
    return context.is_dropped("basicAuth.users")


def is_no_web_configuration_left(difference: Difference, context: Context) -> bool:
    """All that the chart's web configuration says was dropped."""
    return not any(path[0] == "web" for path in _pods(context, "ours"))


def asks_instead_of_connecting(difference: Difference, context: Context) -> bool:
    """Without passwords a probe can ask again."""
    is_there = (*difference.path[:4], "httpGet", "path") in context.fields_of("ours", difference)
    return is_there and are_passwords_dropped(difference, context)


def tls_secret(difference: Difference, context: Context) -> Any:
    """The chart's own; a name that is a template says anything."""
    return difference.chart if secret(difference, context) else f"{context.release.fullname}-tls"


def dropped_certificate(context: Context) -> Iterator[OneSided]:
    """The Secret that the chart fills itself, but for what is in it, and the configuration that names it."""
    if context.version == OLD or not _is_tls_dropped(context):
        return
    if not context.release.value("tlsServerConfig.existingSecret"):
        metadata = _metadata(context, f"{context.release.fullname}-tls")
        yield OneSided("tls", {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"})
    yield _web_config(context)


def dropped_passwords(context: Context) -> Iterator[OneSided]:
    """The configuration that holds nothing but passwords."""
    has_tls = context.release.value("tlsServerConfig.enabled")
    if context.version != OLD and context.is_dropped("basicAuth.users") and not has_tls:
        yield _web_config(context)


def _web_config(context: Context) -> OneSided:
    metadata = _metadata(context, f"{context.release.fullname}-web-config.yml")
    return OneSided("web-config", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


_READINGS = ("kubernetes.enablePodLabels", "kubernetes.enablePodUID", "kubernetesDRA.enabled")


def rights_that_were_dropped(context: Context) -> Iterator[OneSided]:
    """The chart's rights to read pods, where all that asks for them was dropped."""
    release = context.release
    is_dropped = any(context.is_dropped(key) for key in _READINGS)
    if not is_dropped or not _has_token(context) or context.ours.get("read-pods", "ClusterRole") is not None:
        return
    group, name = "rbac.authorization.k8s.io", f"{release.fullname}-read-pods"
    metadata = {"name": name, "labels": release.labels()}
    rule = {
        "apiGroups": ["", "resource.k8s.io"],
        "resources": ["pods", "resourceslices"],
        "verbs": ["get", "list", "watch"],
    }
    head = {"apiVersion": f"{group}/v1", "metadata": metadata}
    yield OneSided("read-pods", {**head, "kind": "ClusterRole", "rules": [rule]})
    yield OneSided(
        "read-pods",
        {
            **head,
            "kind": "ClusterRoleBinding",
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": release.account, "namespace": release.namespace}],
        },
    )


def monitor_that_finds_nothing(context: Context) -> Iterator[OneSided]:
    """The chart's ServiceMonitor, which asks without the certificate that the exporter requires."""
    if not context.is_dropped("serviceMonitor.enabled"):
        return
    value, release = context.release.value, context.release
    selector = {
        key: text
        for key, text in release.labels().items()
        if key.rpartition("/")[2] in ("name", "instance", "component")
    }
    yield OneSided(
        "exporter",
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "ServiceMonitor",
            "metadata": {
                **_metadata(context, release.fullname),
                "labels": {**release.labels(), **(value("serviceMonitor.additionalLabels") or {})},
            },
            "spec": {
                "selector": {"matchLabels": selector},
                "namespaceSelector": {"matchNames": [release.namespace]},
                "endpoints": [
                    {
                        "port": "metrics",
                        "path": "/metrics",
                        "interval": seconds(str(value("serviceMonitor.interval"))),
                        "scrapeTimeout": seconds(str(value("serviceMonitor.scrapeTimeout"))),
                        "honorLabels": value("serviceMonitor.honorLabels"),
                        "relabelings": steps_told(value("serviceMonitor.relabelings")) or None,
                        "metricRelabelings": steps_told(value("serviceMonitor.metricRelabelings")) or None,
                    }
                ],
            },
        },
    )


# --- keys that were dropped -----------------------------------------------------------------------------------

_POD = "exporter DaemonSet"
_C = f"pod.containers[{MAIN}]"
_SETTINGS_AND_LIST = (
    (_POD, "settings.*"),
    (_POD, "exports.*"),
    (_POD, "reads.*"),
    (_POD, "web.**"),
    ("metrics ConfigMap", "**"),
    (_POD, f"{_C}.args[*]"),
    (_POD, f"{_C}.env[*].**"),
    (_POD, f"{_C}.mounts[*].**"),
    (_POD, "pod.volumes[*].**"),
    (_POD, f"{_C}.startupProbe.failureThreshold"),
    (_POD, "pod.annotations[gpu-constructs/metrics-sha256]"),
)
_GOVERNED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "image": ((_POD, f"{_C}.image"),),
    "image.repository": ((_POD, f"{_C}.image"),),
    "image.tag": ((_POD, f"{_C}.image"),),
    "image.pullPolicy": ((_POD, f"{_C}.imagePullPolicy"),),
    "arguments": _SETTINGS_AND_LIST,
    "extraEnv": _SETTINGS_AND_LIST,
    "extraHostVolumes": _SETTINGS_AND_LIST,
    "extraConfigMapVolumes": _SETTINGS_AND_LIST,
    "extraVolumeMounts": _SETTINGS_AND_LIST,
    "customMetrics": ((_POD, "exports.*"), ("metrics ConfigMap", "lists.*")),
    "imagePullSecrets": ((_POD, "pod.imagePullSecrets[*].**"),),
    "hostPID": ((_POD, "pod.hostPID"),),
    "hostNetwork": ((_POD, "pod.hostNetwork|dnsPolicy"),),
    "runtimeClassName": ((_POD, "pod.runtimeClassName"),),
    "priorityClassName": ((_POD, "pod.priorityClassName"),),
    "rollingUpdate": ((_POD, "spec.updateStrategy.**"),),
    "podLabels": ((_POD, "pod.labels[*]"), (_POD, "metadata.labels[*]")),
    "podAnnotations": ((_POD, "pod.annotations[*]"),),
    "podSecurityContext": ((_POD, "pod.securityContext.**"),),
    "securityContext": ((_POD, f"{_C}.securityContext.**"), (_POD, f"{_C}.mounts[/tmp].**")),
    "service.enable": (("exporter Service", "**"),),
    "service.type": (("exporter Service", "spec.type"),),
    "service.clusterIP": (("exporter Service", "spec.clusterIP"),),
    "service.internalTrafficPolicy": (("exporter Service", "spec.internalTrafficPolicy"),),
    "service.annotations": (("exporter Service", "metadata.annotations[*]"),),
    "service.address": ((_POD, "settings.address"),),
    "service.port": (
        (_POD, "settings.address"),
        (_POD, f"{_C}.ports[metrics].containerPort"),
        (_POD, f"{_C}.livenessProbe|readinessProbe.httpGet|tcpSocket.port"),
        ("exporter Service", "spec.ports[metrics].port|targetPort"),
    ),
    "resources": ((_POD, f"{_C}.resources.limits|requests[*]"), (_POD, f"{_C}.env[GOMEMLIMIT]")),
    "serviceMonitor.apiVersion": (("exporter ServiceMonitor", "apiVersion"),),
    "serviceMonitor.interval": (("exporter ServiceMonitor", "spec.endpoints[*].interval|scrapeTimeout"),),
    "serviceMonitor.scrapeTimeout": (("exporter ServiceMonitor", "spec.endpoints[*].scrapeTimeout"),),
    "serviceMonitor.additionalLabels": (("exporter ServiceMonitor", "metadata.labels[*]"),),
    "serviceMonitor.relabelings": (("exporter ServiceMonitor", "spec.endpoints[*].relabelings[*].**"),),
    "serviceMonitor.metricRelabelings": (("exporter ServiceMonitor", "spec.endpoints[*].metricRelabelings[*].**"),),
    "nodeSelector": ((_POD, "pod.nodeSelector[*]"),),
    "tolerations": ((_POD, "pod.tolerations[*]"),),
    "affinity": (
        (_POD, "pod.affinity.**"),
        (_POD, "pod.nodes[*].**"),
        (_POD, "pod.nodes.**"),
        (_POD, "pod.preferred nodes[*].**"),
    ),
    "kubeletPath": ((_POD, f"{_C}.mounts[/var/lib/kubelet/pod-resources].hostPath.path"),),
    "kubernetes.enablePodLabels": (
        (_POD, "settings.kubernetes-enable-pod-labels|kubernetes-pod-label-allowlist-regex"),
    ),
    "kubernetes.enablePodUID": ((_POD, "settings.kubernetes-enable-pod-uid"),),
    "kubernetes.podLabelAllowlistRegex": ((_POD, "settings.kubernetes-pod-label-allowlist-regex"),),
    "kubernetesDRA.enabled": ((_POD, "settings.kubernetes-enable-dra"),),
    "kubernetes.rbac.create": (
        ("read-pods ClusterRole|ClusterRoleBinding", "**"),
        ("account ServiceAccount", "**"),
        (_POD, "pod.automountServiceAccountToken|serviceAccountName"),
    ),
    "debugDump.directory": (
        (_POD, "settings.dump-directory"),
        (_POD, f"{_C}.mounts[*].**"),
    ),
    "debugDump.retention": ((_POD, "settings.dump-retention"),),
    "initContainers": ((_POD, "pod.initContainers[*].**"),),
    "livenessProbe.initialDelaySeconds": ((_POD, f"{_C}.livenessProbe.initialDelaySeconds"),),
    "livenessProbe.periodSeconds": ((_POD, f"{_C}.livenessProbe.periodSeconds"),),
    "readinessProbe.initialDelaySeconds": ((_POD, f"{_C}.readinessProbe.initialDelaySeconds"),),
    "serviceAccount.name": (
        (_POD, "pod.serviceAccountName"),
        ("read-pods ClusterRoleBinding", "subjects[*].**"),
        ("account ServiceAccount", "**"),
    ),
    "tlsServerConfig.certFilename": ((_POD, "web.server.cert_file"),),
    "tlsServerConfig.keyFilename": ((_POD, "web.server.key_file"),),
    "tlsServerConfig.caFilename": ((_POD, "web.server.client_ca_file"),),
    "tlsServerConfig.clientAuthType": ((_POD, "web.server.client_auth_type|client_ca_file"),),
}
# What the chart then says is no word of the values: it follows from the key being there at all.
_DERIVED = (
    f"{_C}.mounts[/etc/dcgm-exporter/default-counters.csv].subPath",
    "pod.dnsPolicy",
    f"{_C}.env[None]",
    f"{_C}.mounts[*].volume",
    "pod.initContainers[*].imagePullPolicy",
    "spec.endpoints[*].interval|scrapeTimeout",
    "exports.*",
    "reads.*",
    "web.**",
    "lists.*",
    "settings.*",
)


is_decided_by_what_was_dropped = Governed(_GOVERNED, _DERIVED).is_decided
