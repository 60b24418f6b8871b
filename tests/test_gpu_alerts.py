"""The construct: one object, of the kind the cluster has, found by the stack and valid under its CRD."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest
import yaml
from cdk8s import App, Chart, Testing

import invariants
from alert_scenarios import Wish, dcgm, nvidia_smi
from gpu_constructs import GpuNamespace, synth
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.observability.alert_rules import ALERT_NAMES, DEVICE_PLUGIN, Options
from gpu_constructs.observability.alert_thresholds import AlertThresholds
from gpu_constructs.observability.dcgm_exporter import DcgmExporter
from gpu_constructs.observability.gpu_alerts import GpuAlerts
from gpu_constructs.observability.gpu_exporter import GpuExporter
from gpu_constructs.observability.gpu_series import GpuSeries
from gpu_constructs.observability.nvidia_gpu_exporter import NvidiaGpuExporter
from gpu_constructs.power.power_limit import PowerLimit
from schemas import schema_errors

KINDS = {"PrometheusRule": "monitoring.coreos.com/v1", "VMRule": "operator.victoriametrics.com/v1beta1"}


@dataclass
class Exporter:
    series: GpuSeries
    name: str = "dcgm-exporter"
    namespace: str = "nvidia-gpu-operator"


DCGM = Exporter(dcgm())
NVIDIA_SMI = Exporter(nvidia_smi(), "nvidia-gpu-exporter", "monitoring")


def power_limit(**given):
    """What a PowerLimit tells of itself."""
    told = {
        "name": "nvidia-powerlimit",
        "namespace": "gpu",
        "wishes": (Wish(watts=300),),
        "interval_seconds": 1800,
        "retry_seconds": 15,
        "out_of_range": "clamp",
    }
    return SimpleNamespace(**{**told, **given})


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


def refusal(**given):
    with pytest.raises(GpuConstructsError) as refused:
        made(**given)
    return str(refused.value)


def test_the_stub_is_what_alerts_take_for_an_exporter():
    assert isinstance(DCGM, GpuExporter)


@pytest.mark.parametrize("exporter", [DCGM, NVIDIA_SMI], ids=lambda one: one.series.dialect)
@pytest.mark.parametrize("kind", KINDS)
def test_the_object_satisfies_its_crd(kind, exporter):
    manifest = rendered(kind=kind, exporter=exporter, power_limit=power_limit(), labels={"release": "stack"})
    assert (manifest["kind"], manifest["apiVersion"]) == (kind, KINDS[kind])
    assert schema_errors(manifest) == []
    assert manifest["metadata"]["namespace"] == exporter.namespace


def test_both_kinds_hold_the_same_rules():
    first, second = (rendered(kind=kind)["spec"] for kind in KINDS)
    assert first == second


def test_the_stack_finds_it_by_its_labels():
    labels = rendered(labels={"release": "kube-prometheus-stack"})["metadata"]["labels"]
    assert labels == {
        "app.kubernetes.io/name": "gpu-alerts",
        "app.kubernetes.io/instance": "alerts",
        "app.kubernetes.io/component": "alerts",
        "app.kubernetes.io/managed-by": "cdk8s",
        "release": "kube-prometheus-stack",
    }


def test_name_and_namespace_can_be_given(chart):
    where = GpuNamespace(chart, "namespace", name="monitoring", pod_security="baseline")
    GpuAlerts(chart, "alerts", exporter=DCGM, name="gpus", namespace=where)
    (manifest,) = (m for m in Testing.synth(chart) if m["kind"] == "PrometheusRule")
    assert (manifest["metadata"]["name"], manifest["metadata"]["namespace"]) == ("gpus", "monitoring")
    assert all(group["name"].startswith("gpus-") for group in manifest["spec"]["groups"])


def test_the_main_object_takes_patches():
    found = made()
    assert found.api_object.kind == "PrometheusRule"


def test_it_says_which_rules_it_holds():
    found = made(power_limit=power_limit()).rules
    assert len(found) == len(set(found))
    assert set(ALERT_NAMES) - set(found) == {"GpuCollectionFailing", "GpuCollectionStale"}


def test_a_power_limit_brings_its_own_alerts():
    manifest = rendered(power_limit=power_limit(wishes=(Wish("index", "0", watts=200), Wish(percent=80))))
    drifts = alerts(manifest, "GpuPowerLimitDrift")
    assert [rule["labels"]["wish"] for rule in drifts] == ["index:0", "watts"]
    (down,) = alerts(manifest, "GpuPowerLimitUnavailable")
    assert 'namespace="gpu",daemonset="nvidia-powerlimit"' in down["expr"]
    assert not alerts(rendered(), "GpuPowerLimitUnavailable")


def test_it_takes_our_exporters_and_our_power_limit(chart):
    limit = PowerLimit(chart, "limit", namespace="gpus", limits={"name:*RTX 4090*": "80%"})
    for exporter in (
        DcgmExporter(chart, "dcgm", metrics="recommended"),
        NvidiaGpuExporter(chart, "smi"),
    ):
        job = exporter.series.job
        GpuAlerts(chart, f"alerts-{job}", exporter=exporter, power_limit=limit, name=job)
    manifests = [m for m in Testing.synth(chart) if m["kind"] == "PrometheusRule"]
    assert [m["metadata"]["name"] for m in manifests] == ["dcgm-exporter", "nvidia-gpu-exporter"]
    for manifest in manifests:
        drifts = alerts(manifest, "GpuPowerLimitDrift")
        assert [rule["labels"]["wish"] for rule in drifts] == ["name:*RTX 4090*", "watts"]
        (down,) = alerts(manifest, "GpuPowerLimitUnavailable")
        assert 'namespace="gpus",daemonset="nvidia-powerlimit"' in down["expr"]


@pytest.mark.parametrize(
    ("given", "waits"),
    [
        ({}, "35m"),
        ({"interval_seconds": 10}, "5m"),
        ({"interval_seconds": 3600, "retry_seconds": 600}, "1h14m"),
    ],
)
def test_drift_waits_for_the_agent_to_look_twice(given, waits):
    (drift,) = alerts(rendered(power_limit=power_limit(**given)), "GpuPowerLimitDrift")
    assert drift["for"] == waits


def test_a_wish_that_is_refused_is_not_clamped():
    clamped, refused = (
        alerts(rendered(power_limit=power_limit(out_of_range=word)), "GpuPowerLimitDrift")[0]["expr"]
        for word in ("clamp", "refuse")
    )
    # The range is asked for once more, to see that the board takes a limit at all.
    assert clamped.count("POWER_MGMT_LIMIT_MAX") == refused.count("POWER_MGMT_LIMIT_MAX") + 1 == 2


def test_pools_have_power_limits_of_their_own():
    pools = {"train-.*": power_limit(), "serve-.*": power_limit(name="power-serve", interval_seconds=10)}
    manifest = rendered(power_limit=pools)
    drifts = alerts(manifest, "GpuPowerLimitDrift")
    assert [(rule["labels"]["power_limit"], rule["for"]) for rule in drifts] == [
        ("nvidia-powerlimit", "35m"),
        ("power-serve", "5m"),
    ]
    assert ['hostname=~"train-.*"' in rule["expr"] for rule in drifts] == [True, False]
    (down,) = alerts(manifest, "GpuPowerLimitUnavailable")
    assert 'daemonset="nvidia-powerlimit"' in down["expr"]
    assert 'daemonset="power-serve"' in down["expr"]


def test_the_options_reach_the_rules():
    manifest = rendered(
        thresholds=AlertThresholds(vram_ratio=0.5),
        device_plugin="plugin",
        leave_out=["GpuLost"],
        severities={"GpuTemperatureHigh": "info"},
        runbook_url="https://wiki.example/gpus",
        alert_labels={"team": "gpu"},
    )
    assert alerts(manifest, "GpuMemoryNearlyFull")[0]["expr"].endswith("> 0.5")
    assert 'daemonset="plugin"' in alerts(manifest, "NvidiaDevicePluginUnavailable")[0]["expr"]
    assert not alerts(manifest, "GpuLost")
    (high,) = alerts(manifest, "GpuTemperatureHigh")
    assert high["labels"] == {"severity": "info", "team": "gpu"}
    assert high["annotations"]["runbook_url"] == "https://wiki.example/gpus#gputemperaturehigh"
    without = rendered(device_plugin=None, kube_state_metrics=False)
    assert not any("kube_" in rule["expr"] for rule in alerts(without))


def test_the_default_device_plugin_is_the_table_s():
    assert Options(AlertThresholds()).device_plugin == DEVICE_PLUGIN
    assert alerts(rendered()) == alerts(rendered(device_plugin=DEVICE_PLUGIN))


def test_it_is_applied_after_the_crds(app, tmp_path):
    chart = Chart(app, "gpu")
    GpuNamespace(chart, "namespace")
    GpuAlerts(chart, "alerts", exporter=DCGM)
    synth(app)
    (document,) = yaml.safe_load_all((tmp_path / "dist" / "needs-crds" / "gpu.k8s.yaml").read_text())
    assert document["kind"] == "PrometheusRule"


def test_it_looks_the_same_as_last_time(snapshot):
    assert [rendered(power_limit=power_limit())] == snapshot


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"exporter": "dcgm-exporter"}, "exporter must be a DcgmExporter or a NvidiaGpuExporter; got str"),
        (
            {"exporter": Exporter(replace(dcgm(), scrape_interval_seconds=900))},
            "exporter must be scraped every 120 seconds or more often for alerts, since Prometheus forgets a value",
        ),
        (
            {"kind": "PrometheusRul"},
            "kind must be one of 'PrometheusRule', 'VMRule'; got 'PrometheusRul' (did you mean 'PrometheusRule'?)",
        ),
        ({"leave_out": ["GpuLst"]}, "leave_out must name rules of ours; got 'GpuLst' (did you mean 'GpuLost'?)"),
        ({"leave_out": "GpuLost"}, "leave_out must be a list, got 'GpuLost' (str)"),
        ({"severities": {"GpuLost": "page"}}, "severities['GpuLost'] must be one of 'critical', 'warning', 'info'"),
        (
            {"alert_labels": {"severity": "page"}},
            "alert_labels must not hold 'severity'; pass severities for another severity",
        ),
        (
            {"alert_labels": {"a-b": "c"}},
            "alert_labels must have names of letters, digits and '_' as keys, without '__' in front; got 'a-b'",
        ),
        (
            {"device_plugin": "("},
            "device_plugin must be the name of a DaemonSet or a regular expression; got '(': missing ), unterminated",
        ),
        (
            {"device_plugin": "(?!x)y"},
            "device_plugin must be the name of a DaemonSet or a regular expression that Prometheus reads (RE2: nothing "
            "that looks around or back); got '(?!x)y'; pass None to leave its alerts out",
        ),
        ({"device_plugin": ""}, "device_plugin must be the name of a DaemonSet or a regular expression that Prom"),
        *(
            (
                {"runbook_url": given},
                "runbook_url must be an address that opens from a message, like 'https://wiki.example.com/runbook', "
                f"without '#', braces, quotes and blanks; got {given!r}; leave it out for no link",
            )
            for given in (
                "docs/runbook.md",
                "/runbook",
                "https://",
                "https://wiki.example/a#b",
                "https://wiki.example/{{ $labels.node }}",
                "https://wiki.example/}}",
                "https://wiki.example/a b",
                "https://wiki.example/a\n",
                "javascript:alert(1)",
                "",
            )
        ),
        ({"name": "GPU alerts"}, "name must be a DNS subdomain"),
        ({"labels": {"a b": "c"}}, "labels has a key that is no label key; got 'a b'"),
        (
            {"power_limit": 300},
            "power_limit must be a PowerLimit; got int; where pools have one each, map node names to them",
        ),
        ({"power_limit": {".*": 300}}, "power_limit['.*'] must be a PowerLimit; got int; "),
        (
            {"power_limit": {}},
            "power_limit must not be an empty mapping; leave it out for no alert on power limits",
        ),
        (
            {"power_limit": {"(": power_limit()}},
            "power_limit key must be the name of a node or a regular expression; got '(': missing ), unterminated "
            "subpattern at position 0; write '.*' for all nodes",
        ),
        ({"power_limit": {"": power_limit()}}, "power_limit key must be the name of a node or a regular expression "),
        (
            {"power_limit": {"(?<!a)b": power_limit()}},
            "power_limit key must be the name of a node or a regular expression that Prometheus reads (RE2: ",
        ),
        (
            {"power_limit": {1: power_limit()}},
            "power_limit must have regular expressions of node names as keys; got 1",
        ),
        (
            {"exporter": Exporter(dcgm("default")), "kube_state_metrics": False},
            "exporter must export what the rules need; got none of DCGM_EXP_XID_ERRORS_COUNT (for GpuXidCritical, "
            "GpuXidWarning), ",
        ),
    ],
    ids=lambda part: "-".join(part) if isinstance(part, dict) else "",
)
def test_bad_input_gets_one_error(given, message):
    assert refusal(**given).startswith(f"gpu/alerts: {message}")


def test_alerts_without_a_rule_are_refused():
    from gpu_constructs.observability.alert_rules import RULE_NAMES

    assert refusal(leave_out=list(RULE_NAMES)) == (
        "gpu/alerts: leave_out must leave a rule in; leave the GpuAlerts out for none"
    )


def test_a_refused_alert_leaves_the_chart_as_it_was(chart):
    with pytest.raises(GpuConstructsError):
        GpuAlerts(chart, "alerts", exporter=DCGM, leave_out=["x"])
    assert list(chart.node.children) == []
