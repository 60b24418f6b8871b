"""Alerts on GPUs: what is written down for Prometheus or VictoriaMetrics to watch."""

from __future__ import annotations

import re
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
_ALERT_LABEL = re.compile(r"(?!__)[A-Za-z_][A-Za-z0-9_]*\Z")
# Prometheus takes braces for a template, and an address ends at blanks and quotes where messages are read.
_ADDRESS = re.compile(r"https?://[^\s/?#{}<>\"'`\\]+[^\s#{}<>\"'`\\]*\Z")


class GpuAlerts(GpuObject):
    """Alerts on what an exporter tells of GPUs, and on what hands GPUs out and keeps their limits.

    Emits one ``PrometheusRule`` or ``VMRule``, whose kind must be installed in the cluster. It holds five
    recording rules (``gpu:utilization:percent``, ``gpu:memory_used:mib``, ``gpu:memory_used:ratio``,
    ``gpu:power:watts`` and ``gpu:temperature:celsius``: one value per GPU, whoever shares it) and the alerts of
    docs/runbook.md. No alert takes profiling metrics; what a GPU does not tell, such as ECC errors of a
    GeForce, raises none.

    Alerts for which there is no metric are left out: of nvidia_gpu_exporter XIDs (its NVML
    image alone has them), PCIe replays and idle pods; of the DCGM exporter those on its own readings and, before
    release 4.0.0, what the driver asks for; of either, idle pods where it names none. Where its job is not known
    (``scrape="none"`` or ``"annotations"``) also that it is down, idle pods, nodes without metrics and, of
    nvidia_gpu_exporter, lost GPUs: nobody knows what the labels of a target would be.

    With a ``GpuAlerts`` for each of two exporters, give the second ``kube_state_metrics=False``, or the alerts on
    nodes and pods come twice: they are about the whole cluster.

    Attributes:
        rules: Names of the rules that are in it, each once.
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
        """Make the alerts.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            exporter: The ``DcgmExporter`` or ``NvidiaGpuExporter`` whose metrics they are about.
            kind: Kind of the object. The VictoriaMetrics operator converts a ``PrometheusRule`` where the CRD
                is installed, so one is enough.
            namespace: By name or object. None: the exporter's.
            name: Name of the object, and what the names of its groups start with.
            labels: Labels by which the monitoring stack finds the object, such as
                ``release: kube-prometheus-stack``.
            thresholds: From what value on an alert is one.
            power_limit: The ``PowerLimit`` of these GPUs; every GPU is held against what it asks for. Where pools
                have one each, a mapping from a regular expression of node names, all of the name, to its
                ``PowerLimit``; the first that fits wins, and other nodes are left alone. None: no alert on power
                limits.
            device_plugin: Name of the device plugin's DaemonSet, or a regular expression of it; None leaves
                the alerts on it out.
            kube_state_metrics: Whether kube-state-metrics is there; False leaves out what takes it.
            leave_out: Names of rules not wanted.
            severities: Other severities, by alert.
            runbook_url: Address of the runbook that those on call can open, such as a copy of docs/runbook.md;
                ``#`` and the alert's name in lower case follow. None: alerts hold no link; their description says
                what to look at first.
            alert_labels: Labels of every alert, for routing.

        Raises:
            GpuConstructsError: The exporter is not told to export what a rule needs or is scraped less often than
                every 120 seconds, a name is not that of a rule, or another value is not allowed.
        """
        fields.label_value("id", id)
        fields.dns_subdomain("name", name)
        watched = gpu_exporter(exporter)
        where = watched.namespace if namespace is None else references.name_of("namespace", namespace, "Namespace")
        fields.labels("labels", labels or {})
        _check_alert_labels(alert_labels or {})
        if device_plugin is not None:
            _check_name("device_plugin", "the name of a DaemonSet", device_plugin, "pass None to leave its alerts out")
        _check_power_limits(power_limit)
        if runbook_url is not None and not (_ADDRESS.match(runbook_url) and runbook_url.isprintable()):
            raise GpuConstructsError(
                "runbook_url must be an address that opens from a message, like 'https://wiki.example.com/runbook', "
                f"without '#', braces, quotes and blanks; got {runbook_url[:80]!r}; leave it out for no link"
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
        refuse_if(not rules, "leave_out", "leave a rule in; leave the GpuAlerts out for none")
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
                f"alert_labels must have names of letters, digits and '_' as keys, without '__' in front; got {label!r}"
            )
        if label in ("severity", "alertname"):
            raise GpuConstructsError(f"alert_labels must not hold {label!r}; pass severities for another severity")


def _check_name(field: str, what: str, given: str, way_out: str) -> None:
    what = f"{what} or a regular expression"
    refuse_if(not given or not given.isprintable(), field, f"be {what}", given, way_out=way_out)
    check_re2(field, given, what, way_out)


def _check_power_limits(given: object) -> None:
    if isinstance(given, Mapping) and not given:
        raise GpuConstructsError("power_limit must not be an empty mapping; leave it out for no alert on power limits")
    pools = given if isinstance(given, Mapping) else {None: given} if given is not None else {}
    for nodes, limit in pools.items():
        field = "power_limit" if nodes is None else f"power_limit[{nodes!r}]"
        if nodes is not None:
            fields.of_type("power_limit key", nodes, str)
            _check_name("power_limit key", "the name of a node", nodes, "write '.*' for all nodes")
        if not isinstance(limit, KeepsPowerLimits):
            raise GpuConstructsError(
                f"{field} must be a PowerLimit; got {type(limit).__name__}; where pools have one each, map node "
                "names to them"
            )
