"""What the rows of ``smi_deviations`` ask: values of a case, conditions, what one side alone holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from parity_compare import ABSENT, Context, Difference, OneSided
from parity_dropped import Condition, Governed
from parity_exporter_conditions import (
    amount,
    chart_label,
    chart_named,
    every,
    instance,
    is_cut,
    is_dropped,
    key_is,
    named,
    pod_label,
    says_no_resources,
    says_no_seccomp_profile,
)
from parity_fields import Fields, canonical
from parity_smi_exporter import CHART, MAIN, PROGRAM, our_steps
from parity_told import seconds, steps_told

__all__ = [
    "amount",
    "chart_label",
    "chart_named",
    "every",
    "instance",
    "is_cut",
    "is_dropped",
    "key_is",
    "named",
    "pod_label",
    "says_no_resources",
    "says_no_seccomp_profile",
]

_MAIN = ("pod", "containers", f"[{MAIN}]")
GPU_TOLERATION = canonical({"effect": "NoSchedule", "key": "nvidia.com/gpu", "operator": "Exists"})


def _pods(context: Context, side: str) -> Fields:
    return context.fields[side, "exporter", "DaemonSet", None]


def _setting(context: Context, side: str, flag: str) -> Any:
    return _pods(context, side).get(("settings", flag), ABSENT)


def _kind(difference: Difference) -> str:
    return difference.object.partition(" ")[2]


# --- values ---------------------------------------------------------------------------------------------------


def program(difference: Difference, context: Context) -> Any:
    return PROGRAM


def chart_image(difference: Difference, context: Context) -> Any:
    value = context.release.value
    return f"{value('image.repository', '')}:{value('image.tag') or PROGRAM}"


def namespace(difference: Difference, context: Context) -> Any:
    return context.release.namespace


def service_port(difference: Difference, context: Context) -> Any:
    return context.release.value("service.port")


def host_port(difference: Difference, context: Context) -> Any:
    return context.release.value("hostPort.port")


def port(difference: Difference, context: Context) -> Any:
    return _pods(context, "ours").get((*_MAIN, "ports", "[http]", "containerPort"), ABSENT)


def startup_failures(difference: Difference, context: Context) -> Any:
    """Half a minute, and three questions, which take the timeout and two seconds at most."""
    timeout = int(str(_setting(context, "ours", "collect-timeout")).removesuffix("s"))
    return 6 + 3 * (timeout + 2) // 5


def our_timeout(difference: Difference, context: Context) -> Any:
    interval = context.fields_of("ours", difference).get((*difference.path[:3], "interval"))
    return min(10, interval) if isinstance(interval, int) else ABSENT


def our_interval(difference: Difference, context: Context) -> Any:
    """As often as the GPUs are read, or every half minute."""
    return int(str(_setting(context, "ours", "collect-interval")).removesuffix("s")) or 30


def our_step(difference: Difference, context: Context) -> Any:
    return dict(our_steps(_kind(difference), context.release)).get(difference.path[-1], ABSENT)


def sidecar_label(difference: Difference, context: Context) -> Any:
    """The label that the chart's dashboards are found by."""
    value = context.release.value
    is_it = difference.path[-1] == f"[{value('grafanaDashboard.label')}]"
    return value("grafanaDashboard.labelValue", "") if is_it else ABSENT


def dashboard_annotation(difference: Difference, context: Context) -> Any:
    return context.release.value("grafanaDashboard.annotations", {}).get(difference.path[-1][1:-1], ABSENT)


def bearer_token_file(difference: Difference, context: Context) -> Any:
    return context.release.value("serviceMonitor.bearerTokenFile")


# --- conditions -----------------------------------------------------------------------------------------------


def has_another_name(difference: Difference, context: Context) -> bool:
    return context.release.chart_name != CHART


def is_our_dashboard(difference: Difference, context: Context) -> bool:
    return difference.path[-1] == f"{context.release.our_fullname}.json"


def says_another_sidecar_label(difference: Difference, context: Context) -> bool:
    return context.is_dropped("grafanaDashboard.label") or context.is_dropped("grafanaDashboard.labelValue")


def says_no_security_context(difference: Difference, context: Context) -> bool:
    return not context.release.given_value("securityContext") or context.is_dropped("securityContext")


def reads_the_library(difference: Difference, context: Context) -> bool:
    return _setting(context, "ours", "collect-backend") == "nvml"


def says_nothing_of_nodes(label: str) -> Condition:
    def holds(difference: Difference, context: Context) -> bool:
        is_said = label in (context.release.given_value("nodeSelector") or {})
        return not is_said or context.is_dropped("nodeSelector")

    return holds


def takes_no_probe(difference: Difference, context: Context) -> bool:
    """The values take this probe away by null."""
    return context.release.given.get(difference.path[3], ABSENT) is None


def says_no_interval(difference: Difference, context: Context) -> bool:
    return not context.release.value(f"{_section(_kind(difference))}.interval")


def says_no_timeout(difference: Difference, context: Context) -> bool:
    return not context.release.value(f"{_section(_kind(difference))}.scrapeTimeout")


def is_null(path: str) -> Condition:
    """The values take the key away."""

    def holds(difference: Difference, context: Context) -> bool:
        section: Any = context.release.given
        *sections, key = path.split(".")
        for word in sections:
            section = section.get(word) or {}
        return section.get(key, ABSENT) is None

    return holds


def is_flag_of_dropped_arguments(difference: Difference, context: Context) -> bool:
    """A flag that the values say in extraArgs, of which some are dropped."""
    words = [str(word).partition("=")[0].replace(".", "-") for word in context.release.value("extraArgs") or ()]
    flag = difference.path[-1]
    is_dropped = any(key.startswith("extraArgs") for key, _ in context.dropped)
    return is_dropped and (f"--{flag}" in words or f"--no-{flag}" in words)


def is_probe_dropped(difference: Difference, context: Context) -> bool:
    return context.is_dropped(difference.path[3])


def is_on_delete(difference: Difference, context: Context) -> bool:
    return context.release.value("updateStrategy.type") == "OnDelete"


def _section(kind: str) -> str:
    return kind[0].lower() + kind[1:]


# --- what one side alone holds --------------------------------------------------------------------------------


def account(context: Context) -> Iterator[OneSided]:
    """The chart's ServiceAccount."""
    release = context.release
    if release.value("serviceAccount.create"):
        annotations = release.value("serviceAccount.annotations") or None
        metadata = {"name": release.account, "labels": release.labels(), "annotations": annotations}
        yield OneSided("account", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})


def test_pod(context: Context) -> Iterator[OneSided]:
    """The chart's pod of ``helm test``, but for its script; a render without hooks has none."""
    value, release = context.release.value, context.release
    if not value("service.enabled") or context.chart.get("test", "Pod") is None:
        return
    image = value("test.image", {})
    repository, tag = image.get("repository") or "docker.io/library/busybox", image.get("tag") or "1.37"
    yield OneSided(
        "test",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "labels": {
                    "helm.sh/chart": release.labels()["helm.sh/chart"],
                    "app.kubernetes.io/component": "test",
                },
                "annotations": {"helm.sh/hook": "test"},
            },
            "spec": {
                "imagePullSecrets": value("imagePullSecrets") or None,
                "automountServiceAccountToken": False,
                "containers": [
                    {
                        "name": "wget",
                        "image": f"{repository}:{tag}",
                        "imagePullPolicy": image.get("pullPolicy") or "IfNotPresent",
                        "securityContext": {
                            "runAsNonRoot": True,
                            "runAsUser": 65534,
                            "allowPrivilegeEscalation": False,
                            "capabilities": {"drop": ["ALL"]},
                            "seccompProfile": {"type": "RuntimeDefault"},
                        },
                        "command": ["sh", "-c"],
                    }
                ],
                "restartPolicy": "Never",
            },
        },
    )


def asks_the_service(difference: Difference, context: Context) -> bool:
    """The script of the test asks the chart's Service for the metrics."""
    value = context.release.value
    asked = f"'http://{context.release.fullname}:{value('service.port', '')}{value('telemetryPath', '')}'"
    return asked in str(difference.chart)


def alerts(context: Context) -> Iterator[OneSided]:
    """The chart's PrometheusRule, but for the alerts in it."""
    release = context.release
    if release.has_alerts:
        labels = {**release.labels(), **(release.value("prometheusRule.additionalLabels") or {})}
        head = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule"}
        yield OneSided("alerts", {**head, "metadata": {"name": release.fullname, "labels": labels}})


def second_monitor(context: Context) -> Iterator[OneSided]:
    """The chart's PodMonitor beside its ServiceMonitor."""
    if not context.is_dropped("podMonitor.enabled"):
        return
    value, release = context.release.value, context.release
    endpoint = {
        "port": "http",
        "path": value("telemetryPath"),
        "interval": _seconds(value("podMonitor.interval")),
        "scrapeTimeout": _seconds(value("podMonitor.scrapeTimeout")),
        "relabelings": steps_told(value("podMonitor.relabelings")) or None,
        "metricRelabelings": steps_told(value("podMonitor.metricRelabelings")) or None,
    }
    labels = {**release.labels(), **(value("podMonitor.additionalLabels") or {})}
    yield OneSided(
        "exporter",
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PodMonitor",
            "metadata": {"name": release.fullname, "labels": labels},
            "spec": {"podMetricsEndpoints": [endpoint], "selector": {"matchLabels": release.selector()}},
        },
    )


def _seconds(text: Any) -> int | str | None:
    return seconds(str(text)) if text else None


# --- keys that were dropped -----------------------------------------------------------------------------------

_POD = "exporter DaemonSet"
_C = f"pod.containers[{MAIN}]"
_SERVICE = "exporter Service"
_MONITORS = "exporter ServiceMonitor|PodMonitor"
_AT = "spec.endpoints|podMetricsEndpoints[*]"
_AFFINITY = ("pod.affinity.**", "pod.nodes[*].**", "pod.nodes.**", "pod.preferred nodes[*].**")


_NAMES = (
    ("exporter DaemonSet|Service|ServiceMonitor|PodMonitor", "metadata.name"),
    ("dashboard ConfigMap", "metadata.name"),
)


def _of_pods(*patterns: str) -> tuple[tuple[str, str], ...]:
    return tuple((_POD, pattern) for pattern in patterns)


_GOVERNED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "image": _of_pods(f"{_C}.image"),
    "image.repository": _of_pods(f"{_C}.image"),
    "image.tag": _of_pods(f"{_C}.image"),
    "image.pullPolicy": _of_pods(f"{_C}.imagePullPolicy"),
    "runtimeClassName": _of_pods("pod.runtimeClassName"),
    "nvidiaVisibleDevices": _of_pods(f"{_C}.env[NVIDIA_VISIBLE_DEVICES]"),
    "nvidiaDriverCapabilities": _of_pods(f"{_C}.env[NVIDIA_DRIVER_CAPABILITIES]"),
    "extraEnv": _of_pods(f"{_C}.env[*].**"),
    "telemetryPath": (*_of_pods("settings.web-telemetry-path"), (_MONITORS, f"{_AT}.path")),
    "nvidiaSmiCommand": _of_pods("settings.nvidia-smi-command"),
    "queryFieldNames": _of_pods("settings.query-field-names"),
    "queryFieldNamesExclude": _of_pods("settings.query-field-names-exclude"),
    "computeApps.enabled": _of_pods("settings.collect-compute-apps"),
    "hostPID": _of_pods("pod.hostPID"),
    "livenessProbe": _of_pods(f"{_C}.livenessProbe.**"),
    "readinessProbe": _of_pods(f"{_C}.readinessProbe.**"),
    "extraArgs": _of_pods(f"{_C}.args[*]"),
    "service.enabled": ((_SERVICE, "**"),),
    "service.annotations": ((_SERVICE, "metadata.annotations[*]"),),
    "service.nodePort": ((_SERVICE, "spec.ports[http].nodePort"),),
    "serviceAccount.name": _of_pods("pod.serviceAccountName"),
    "automountServiceAccountToken": _of_pods("pod.automountServiceAccountToken"),
    "podAnnotations": _of_pods("pod.annotations[*]"),
    "podLabels": _of_pods("pod.labels[*]", "metadata.labels[*]"),
    "podSecurityContext": _of_pods("pod.securityContext.**"),
    "securityContext": _of_pods(f"{_C}.securityContext.**"),
    "resources": _of_pods(f"{_C}.resources.limits|requests[*]"),
    "volumes": _of_pods("pod.volumes[*].**", f"{_C}.mounts[*].**"),
    "volumeMounts": _of_pods("pod.volumes[*].**", f"{_C}.mounts[*].**"),
    "nodeSelector": _of_pods("pod.nodeSelector[*]"),
    "tolerations": _of_pods("pod.tolerations[*]"),
    "affinity": _of_pods(*_AFFINITY),
    "priorityClassName": _of_pods("pod.priorityClassName"),
    "updateStrategy": _of_pods("spec.updateStrategy.**"),
    "revisionHistoryLimit": _of_pods("spec.revisionHistoryLimit"),
    "imagePullSecrets": _of_pods("pod.imagePullSecrets[*].**"),
    "fullnameOverride": _NAMES,
    "nameOverride": _NAMES,
    **{
        f"{section}.{key}": ((f"exporter {kind}", pattern),)
        for section, kind in (("serviceMonitor", "ServiceMonitor"), ("podMonitor", "PodMonitor"))
        for key, pattern in (
            ("interval", f"{_AT}.interval|scrapeTimeout"),
            ("scrapeTimeout", f"{_AT}.scrapeTimeout"),
            ("additionalLabels", "metadata.labels[*]"),
            ("relabelings", f"{_AT}.relabelings[*].**"),
            ("metricRelabelings", f"{_AT}.metricRelabelings[*].**"),
        )
    },
}
# What the chart then says is no word of the values: it follows from the key being there at all.
_DERIVED = (
    "settings.query-field-names|query-field-names-exclude",
    f"{_C}.mounts[*].volume",
    f"{_C}.env[None]",
    f"{_AT}.interval|scrapeTimeout",
    f"{_AT}.relabelings|metricRelabelings[*].action",
    "metadata.name",
)

is_decided_by_what_was_dropped = Governed(_GOVERNED, _DERIVED).is_decided
