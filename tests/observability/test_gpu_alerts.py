"""Tests of `GpuAlerts`: one object of the configured kind, valid under its CRD."""

from dataclasses import dataclass, replace
from functools import partial

from cdk8s import App, Chart, Testing

import invariants
import refusals
from alert_scenarios import Agent, Request, dcgm, nvidia_smi
from gpu_constructs.observability.alert_rules import ALERT_NAMES
from gpu_constructs.observability.dcgm_exporter import DcgmExporter
from gpu_constructs.observability.gpu_alerts import GpuAlerts
from gpu_constructs.observability.gpu_series import GpuSeries
from gpu_constructs.observability.nvidia_gpu_exporter import NvidiaGpuExporter
from gpu_constructs.power.power_limit import PowerLimit
from schemas import schema_errors
from tables import beside

KINDS = {"PrometheusRule": "monitoring.coreos.com/v1", "VMRule": "operator.victoriametrics.com/v1beta1"}


@dataclass
class Exporter:
    series: GpuSeries
    name: str = "dcgm-exporter"
    namespace: str = "nvidia-gpu-operator"


DCGM = Exporter(dcgm())
NVIDIA_SMI = Exporter(nvidia_smi(), "nvidia-gpu-exporter", "monitoring")
SELDOM = Exporter(replace(dcgm(), scrape_interval_seconds=900))


def power_limit(**given):
    """Return the part of a PowerLimit that alerts use."""
    return Agent(**{"requests": (Request(watts=300),), **given})


def made(**given):
    return GpuAlerts(Chart(App(), "gpu"), "alerts", **{"exporter": DCGM, **given})


def rendered(**given):
    chart = Chart(App(), "gpu")
    GpuAlerts(chart, "alerts", **{"exporter": DCGM, **given})
    manifests = Testing.synth(chart)
    invariants.hold_for(manifests)
    (manifest,) = manifests
    return manifest


def alerts(manifest, name=None):
    found = [rule for group in manifest["spec"]["groups"] for rule in group["rules"] if "alert" in rule]
    return [rule for rule in found if name in (None, rule["alert"])]


refusal = partial(refusals.refusal, made)


def test_the_object_satisfies_its_crd():
    for kind in KINDS:
        for exporter in [DCGM, NVIDIA_SMI]:
            manifest = rendered(kind=kind, exporter=exporter, power_limit=power_limit(), labels={"release": "stack"})
            assert (manifest["kind"], manifest["apiVersion"]) == (kind, KINDS[kind]), exporter
            assert schema_errors(manifest) == [], exporter
            assert manifest["metadata"]["namespace"] == exporter.namespace, exporter
            assert manifest["metadata"]["labels"]["release"] == "stack", exporter


def test_the_construct_lists_its_rules():
    found = made(power_limit=power_limit()).rules
    assert len(found) == len(set(found))
    assert set(ALERT_NAMES) - set(found) == {"GpuCollectionFailing", "GpuCollectionStale"}


def test_it_accepts_the_exporters_and_the_power_limit_of_the_library(chart):
    limit = PowerLimit(chart, "limit", namespace="gpus", limits={"name:*RTX 4090*": "80%"})
    for exporter in (
        DcgmExporter(chart, "dcgm", metrics="recommended"),
        NvidiaGpuExporter(chart, "smi"),
    ):
        job = exporter.series.job
        GpuAlerts(chart, f"alerts-{job}", exporter=exporter, power_limit=limit, name=job, namespace="watch")
    manifests = [m for m in Testing.synth(chart) if m["kind"] == "PrometheusRule"]
    assert [m["metadata"]["name"] for m in manifests] == ["dcgm-exporter", "nvidia-gpu-exporter"]
    assert {m["metadata"]["namespace"] for m in manifests} == {"watch"}
    for manifest in manifests:
        drifts = alerts(manifest, "GpuPowerLimitDrift")
        assert [rule["labels"]["request"] for rule in drifts] == ["name:*RTX 4090*", "watts"]
        (down,) = alerts(manifest, "GpuPowerLimitUnavailable")
        assert 'namespace="gpus",daemonset="nvidia-powerlimit"' in down["expr"]


CASES = beside(__file__, "gpu_alerts")["cases"]


def test_drift_waits_for_two_checks_of_the_agent():
    for given, waits in CASES:
        (drift,) = alerts(rendered(power_limit=power_limit(**given)), "GpuPowerLimitDrift")
        assert drift["for"] == waits, given


def test_a_request_that_is_refused_is_not_clamped():
    clamped, refused = (
        alerts(rendered(power_limit=power_limit(out_of_range=word)), "GpuPowerLimitDrift")[0]["expr"]
        for word in ("clamp", "refuse")
    )
    # The expression queries the range again, to check that the board accepts limits.
    assert clamped.count("POWER_MGMT_LIMIT_MAX") == refused.count("POWER_MGMT_LIMIT_MAX") + 1 == 2


def test_the_options_reach_the_rules(keywords):
    manifest = rendered(**keywords)
    assert alerts(manifest, "GpuMemoryNearlyFull")[0]["expr"].endswith("> 0.5")
    assert 'daemonset="plugin"' in alerts(manifest, "NvidiaDevicePluginUnavailable")[0]["expr"]
    assert not alerts(manifest, "GpuLost")
    (high,) = alerts(manifest, "GpuTemperatureHigh")
    assert high["labels"] == {"severity": "info", "team": "gpu"}
    assert high["annotations"]["runbook_url"] == "https://wiki.example/gpus#gputemperaturehigh"
    without = rendered(device_plugin=None, kube_state_metrics=False)
    assert not any("kube_" in rule["expr"] for rule in alerts(without))


def test_it_looks_the_same_as_last_time(snapshot):
    assert [rendered(power_limit=power_limit())] == snapshot


def test_bad_input_gets_one_error(refused):
    short = {"SELDOM": SELDOM, "POWER_LIMIT": power_limit(), "DEFAULT": Exporter(dcgm("default"))}
    refused(made, at="gpu/alerts: ", **short)


def test_alerts_without_a_rule_are_refused():
    from gpu_constructs.observability.alert_rules import RULE_NAMES

    assert refusal(leave_out=list(RULE_NAMES)) == (
        "gpu/alerts: leave_out must keep at least one rule. If you want no rules, remove the GpuAlerts"
    )
