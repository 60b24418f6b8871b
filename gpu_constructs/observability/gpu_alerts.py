"""`GpuAlerts`: alert rules for GPUs, for Prometheus or VictoriaMetrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from constructs import Construct

from gpu_constructs.errors import GpuConstructsError, refuse_if
from gpu_constructs.kube import fields, references
from gpu_constructs.kube.labels import object_labels, selector_labels
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.observability.alert_rules import DEVICE_PLUGIN, Options, Severity, gpu_rules, rule_groups
from gpu_constructs.observability.alert_thresholds import AlertThresholds
from gpu_constructs.observability.gpu_series import GpuExporter, KeepsPowerLimits, gpu_exporter
from gpu_constructs.observability.scrape import check_re2
from gpu_constructs.tree.construct import GpuObject, checked
from gpu_constructs.tree.manifest import Manifest

_API_VERSIONS = {"PrometheusRule": "monitoring.coreos.com/v1", "VMRule": "operator.victoriametrics.com/v1beta1"}
_DEFAULT_THRESHOLDS = AlertThresholds()
_ALERT_LABEL = fields.regex(r"(?!__)[A-Za-z_][A-Za-z0-9_]*\Z")
# Prometheus treats braces as a template. Blanks and quotes would end the link where people read the alert.
_ADDRESS = fields.regex(r"https?://[^\s/?#{}<>\"'`\\]+[^\s#{}<>\"'`\\]*\Z")


class GpuAlerts(GpuObject):
    """Alert rules for GPUs, for the device plugin, and for the power limits of ``PowerLimit`` constructs.

    Emits one ``PrometheusRule`` or ``VMRule``, whose kind must exist in the cluster. It contains the alerts of
    docs/runbook.md and five recording rules: ``gpu:utilization:percent``, ``gpu:memory_used:mib``,
    ``gpu:memory_used:ratio``, ``gpu:power:watts`` and ``gpu:temperature:celsius``. Each recording rule has one value
    for each GPU, even if several pods share the GPU. No alert needs profiling metrics. If a GPU does not report a
    value, such as ECC errors of a GeForce, the alerts on that value never fire.

    The construct omits alerts that need a metric or a label that the exporter may not have:

    - With nvidia_gpu_exporter: alerts about PCIe replays and idle pods. Without the NVML image of the exporter also
      alerts about XIDs.
    - With the DCGM exporter: alerts about readings that fail or are too old. Before release 4.0.0 also the alert about
      recovery actions, such as a reset, that the NVIDIA driver requests for a GPU.
    - With an exporter whose series have no label with the pod: the alert about idle pods.
    - If the library does not know the value of the label ``job`` (``scrape="none"`` or ``"annotations"``): alerts about
      idle pods, about nodes without metrics, and about exporter pods that do not answer. For nvidia_gpu_exporter also
      the alert about lost GPUs, because the series may have no label ``node``.

    If you create a ``GpuAlerts`` for each of two exporters, set ``kube_state_metrics=False`` for the second one.
    Otherwise the alerts about nodes and pods exist twice, because they apply to the whole cluster.

    Attributes:
        rules: Names of the rules in the object, without duplicates.
        api_object: The PrometheusRule or VMRule.

    Source:
        CRDs of prometheus-operator v0.93.0 and VictoriaMetrics operator v0.74.1
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        exporter: GpuExporter,
        kind: Literal["PrometheusRule", "VMRule"] = "PrometheusRule",
        namespace: str | NamedObject | None = None,
        name: str = "gpu-alerts",
        labels: Mapping[str, str] | None = None,
        thresholds: AlertThresholds = _DEFAULT_THRESHOLDS,
        power_limit: KeepsPowerLimits | Mapping[str, KeepsPowerLimits] | None = None,
        device_plugin: str | None = DEVICE_PLUGIN,
        kube_state_metrics: bool = True,
        leave_out: Sequence[str] = (),
        severities: Mapping[str, Severity] | None = None,
        runbook_url: str | None = None,
        alert_labels: Mapping[str, str] | None = None,
    ) -> None:
        """Create the object with the alert rules.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct.
            exporter: ``DcgmExporter`` or ``NvidiaGpuExporter`` whose metrics the alerts use.
            kind: Kind of the object, ``PrometheusRule`` or ``VMRule``. If the CRD is in the cluster, the
                VictoriaMetrics operator converts a ``PrometheusRule``, so you need only one object.
            namespace: Name or object of the namespace. None, the default: the namespace of the exporter.
            name: Name of the object, and prefix of the names of its rule groups.
            labels: Labels with which the monitoring stack selects the object, such as
                ``release: kube-prometheus-stack``.
            thresholds: Thresholds of the alerts, and the times for which a value must exceed them.
            power_limit: The ``PowerLimit`` of the GPUs. An alert compares the power limit of each GPU with the limit in
                the ``PowerLimit``. If node pools have different limits, pass a mapping from a regular expression of the
                full node name to the ``PowerLimit``. The first match wins, and a node without a match has no alert.
                None, the default: no alerts about power limits.
            device_plugin: Name of the DaemonSet of the device plugin, or a regular expression for it. None omits the
                alerts about the device plugin.
            kube_state_metrics: Whether kube-state-metrics runs in the cluster. False omits alerts that need it.
            leave_out: Names of rules to omit.
            severities: Severities that replace the defaults, by name of the alert.
            runbook_url: Address of a runbook for the people on call, such as a copy of docs/runbook.md. Each link ends
                in ``#`` and the name of the alert in lower case. None, the default: the alerts have no links. Even
                then, the description of an alert states what to check first.
            alert_labels: Labels of every alert, for routing.

        Raises:
            GpuConstructsError: If the options of the exporter disable a metric that a rule needs, or the scrape
                interval is longer than 120 seconds. Also if ``leave_out`` or ``severities`` names an unknown rule, or
                another value is not allowed.
        """
        fields.label_value("id", id)
        fields.dns_subdomain("name", name)
        watched = gpu_exporter(exporter)
        where = watched.namespace if namespace is None else references.name_of("namespace", namespace, "Namespace")
        fields.labels("labels", labels or {})
        _check_alert_labels(alert_labels or {})
        if device_plugin is not None:
            _check_name("device_plugin", "the name of a DaemonSet", device_plugin, "Pass None to omit its alerts")
        _check_power_limits(power_limit)
        if runbook_url is not None and not (_ADDRESS.match(runbook_url) and runbook_url.isprintable()):
            raise GpuConstructsError(
                "runbook_url must be an absolute address, like 'https://wiki.example.com/runbook', "
                f"without '#', braces, quotes and blanks, got {runbook_url[:80]!r}. Leave runbook_url out if alerts "
                "need no link"
            )
        options = Options(
            thresholds=thresholds,
            device_plugin=device_plugin,
            kube_state_metrics=kube_state_metrics,
            power=power_limit,
            leave_out=leave_out,
            severities=severities or {},
            runbook_url=runbook_url,
            alert_labels=alert_labels or {},
        )
        rules = gpu_rules(watched.series, options)
        refuse_if(not rules, "leave_out", "keep at least one rule. If you want no rules, remove the GpuAlerts")
        super().__init__(scope, id)
        self.rules = tuple(dict.fromkeys(rule.name for rule in rules))
        own = object_labels(selector_labels(name="gpu-alerts", instance=id, component="alerts"))
        Manifest(
            self,
            "Default",
            {
                "apiVersion": _API_VERSIONS[kind],
                "kind": kind,
                "metadata": {"name": name, "namespace": where, "labels": {**own, **(labels or {})}},
                "spec": {"groups": rule_groups(name, rules)},
            },
        )


def _check_alert_labels(labels: Mapping[str, str]) -> None:
    for label in labels:
        if not _ALERT_LABEL.match(label):
            raise GpuConstructsError(
                "alert_labels must have names of letters, digits and '_' as keys, without a leading '__', got "
                f"{label!r}"
            )
        if label in ("severity", "alertname"):
            raise GpuConstructsError(
                f"alert_labels must not contain {label!r}. To change the severity of an alert, pass severities="
            )


def _check_name(field: str, what: str, given: str, way_out: str) -> None:
    what = f"{what} or a regular expression"
    refuse_if(not given or not given.isprintable(), field, f"be {what}", given, way_out=way_out)
    check_re2(field, given, what, way_out)


def _check_power_limits(given: object) -> None:
    if isinstance(given, Mapping) and not given:
        raise GpuConstructsError(
            "power_limit must not be an empty mapping. Leave power_limit out if you need no alerts on power limits"
        )
    pools = given if isinstance(given, Mapping) else {None: given} if given is not None else {}
    for nodes, limit in pools.items():
        field = "power_limit" if nodes is None else f"power_limit[{nodes!r}]"
        if nodes is not None:
            fields.of_type("power_limit key", nodes, str)
            _check_name("power_limit key", "the name of a node", nodes, "Use '.*' for all nodes")
        if not isinstance(limit, KeepsPowerLimits):
            raise GpuConstructsError(
                f"{field} must be a PowerLimit, got {type(limit).__name__}. If node pools have different limits, pass "
                "a mapping by node name"
            )
