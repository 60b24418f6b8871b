"""Alerts on GPUs: what is written down for Prometheus or VictoriaMetrics to watch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from constructs import Construct

from gpu_constructs import _fields, _references
from gpu_constructs._construct import GpuObject, checked
from gpu_constructs._labels import object_labels, selector_labels
from gpu_constructs._manifest import Manifest
from gpu_constructs._references import NamedObject
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.observability.alert_thresholds import AlertThresholds
from gpu_constructs.observability.gpu_exporter import GpuExporter, gpu_exporter
from gpu_constructs.observability.scrape import re2_problem

if TYPE_CHECKING:
    from gpu_constructs.observability.alert_rules import PowerAgent

_API_VERSIONS = {"PrometheusRule": "monitoring.coreos.com/v1", "VMRule": "operator.victoriametrics.com/v1beta1"}
_DEFAULT_THRESHOLDS = AlertThresholds()
_ALERT_LABEL = re.compile(r"(?!__)[A-Za-z_][A-Za-z0-9_]*\Z")
# RE2, with which Prometheus reads them, knows neither of the two.
_LOOKAROUND = re.compile(r"\(\?(?:[=!]|<[=!])|\\[1-9]")
_SLACK_SECONDS = 240


@runtime_checkable
class KeepsPowerLimits(Protocol):
    """What ``PowerLimit`` tells of itself."""

    @property
    def name(self) -> str:
        """Name of its DaemonSet."""

    @property
    def namespace(self) -> str:
        """Namespace it lives in."""

    @property
    def wishes(self) -> Sequence[Any]:
        """Each with target, pattern, watts and percent, in the order in which they win."""

    @property
    def interval_seconds(self) -> int:
        """Seconds between two looks."""

    @property
    def retry_seconds(self) -> int:
        """Seconds until the next look after one that found a problem."""

    @property
    def out_of_range(self) -> str:
        """``clamp`` or ``refuse``."""


class GpuAlerts(GpuObject):
    """Alerts on what an exporter tells of GPUs, and on what hands GPUs out and keeps their limits.

    Emits one ``PrometheusRule`` or ``VMRule``, whose kind must be installed in the cluster. It holds five
    recording rules (``gpu:utilization:percent``, ``gpu:memory_used:mib``, ``gpu:memory_used:ratio``,
    ``gpu:power:watts`` and ``gpu:temperature:celsius``: one value per GPU, whoever shares it) and the alerts of
    docs/runbook.md. No alert takes profiling metrics; what a GPU does not tell, such as ECC errors of a
    GeForce, raises none.

    Left out without a word are the alerts for which there is no metric: of nvidia_gpu_exporter XIDs (its NVML
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
        device_plugin: str | None = ".*nvidia-device-plugin.*",
        kube_state_metrics: bool = True,
        leave_out: Sequence[str] = (),
        severities: Mapping[str, Literal["critical", "warning", "info"]] | None = None,
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
                every 120 seconds, a name is no rule's, or another value is not allowed.
        """
        _fields.label_value("id", id)
        _fields.dns_subdomain("name", name)
        watched = gpu_exporter(exporter)
        where = watched.namespace if namespace is None else _references.name_of("namespace", namespace, "Namespace")
        _fields.labels("labels", labels or {})
        _check_alert_labels(alert_labels or {})
        if device_plugin is not None:
            _check_expression("device_plugin", "the name of a DaemonSet", device_plugin, _NO_PLUGIN)
        if runbook_url is not None and not (_ADDRESS.match(runbook_url) and runbook_url.isprintable()):
            raise GpuConstructsError(
                "runbook_url must be an address that opens from a message, like 'https://wiki.example.com/runbook', "
                f"without '#', braces, quotes and blanks; got {runbook_url[:80]!r}; leave it out for no link"
            )
        power = _power_agents(power_limit)
        # A table of some size, for those who want alerts.
        from gpu_constructs.observability import alert_rules

        options = alert_rules.Options(
            thresholds=thresholds,
            device_plugin=device_plugin,
            kube_state_metrics=kube_state_metrics,
            power=power,
            leave_out=leave_out,
            severities=severities or {},
            runbook_url=runbook_url,
            alert_labels=alert_labels or {},
        )
        rules = alert_rules.gpu_rules(watched.series, options)
        if not rules:
            raise GpuConstructsError("leave_out must leave a rule in; leave the GpuAlerts out for none")
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
                "spec": {"groups": alert_rules.rule_groups(name, rules)},
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


# Prometheus takes braces for a template, and an address ends at blanks and quotes where messages are read.
_ADDRESS = re.compile(r"https?://[^\s/?#{}<>\"'`\\]+[^\s#{}<>\"'`\\]*\Z")
_NO_PLUGIN = "pass None to leave its alerts out"
_NODES = "write '.*' for all nodes"


def _check_expression(field: str, what: str, given: str, way_out: str) -> None:
    try:
        re.compile(given)
    except re.error as error:
        raise GpuConstructsError(
            f"{field} must be {what} or a regular expression; got {given!r}: {error}; {way_out}"
        ) from None
    if not given or not given.isprintable() or _LOOKAROUND.search(given):
        raise GpuConstructsError(
            f"{field} must be {what} or a regular expression that Prometheus reads (RE2: "
            f"nothing that looks around or back); got {given!r}; {way_out}"
        )
    problem = re2_problem(given)
    if problem:
        raise GpuConstructsError(
            f"{field} must be {what} or a regular expression that Prometheus reads; got {given!r}: {problem}; {way_out}"
        )


def _power_agents(power_limit: object) -> PowerAgent | dict[str, PowerAgent] | None:
    if power_limit is None:
        return None
    if not isinstance(power_limit, Mapping):
        return _power_agent("power_limit", power_limit)
    if not power_limit:
        raise GpuConstructsError("power_limit must not be an empty mapping; leave it out for no alert on power limits")
    agents = {}
    for nodes, limit in power_limit.items():
        if not isinstance(nodes, str):
            raise GpuConstructsError(f"power_limit must have regular expressions of node names as keys; got {nodes!r}")
        _check_expression("power_limit key", "the name of a node", nodes, _NODES)
        agents[nodes] = _power_agent(f"power_limit[{nodes!r}]", limit)
    return agents


def _power_agent(field: str, power_limit: object) -> PowerAgent:
    if not isinstance(power_limit, KeepsPowerLimits):
        raise GpuConstructsError(
            f"{field} must be a PowerLimit; got {type(power_limit).__name__}; where pools have one each, map node "
            "names to them"
        )
    from gpu_constructs.observability.alert_rules import PowerAgent

    corrected = power_limit.interval_seconds + power_limit.retry_seconds
    return PowerAgent(
        namespace=power_limit.namespace,
        name=power_limit.name,
        wishes=power_limit.wishes,
        out_of_range=power_limit.out_of_range,
        # In whole minutes, and then time for its pod to restart and for the new value to be scraped.
        corrects_within=-(-corrected // 60) * 60 + _SLACK_SECONDS,
    )
