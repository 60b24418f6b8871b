"""The page on alerts: its examples are whole apps, and what it names is there."""

from __future__ import annotations

import re

import yaml
from cdk8s import App, Chart, Testing

import dist
import documents
import gpu_constructs
from gpu_constructs.observability.alert_rules import ALERT_NAMES

PAGE = dist.ROOT / "docs" / "gpu-alerts.md"


def test_each_example_is_a_whole_app(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block in documents.blocks(PAGE, "python"):
        exec(block.text, {})
    rules = {
        path.parent.parent.name: [m for m in yaml.safe_load_all(path.read_text()) if m["kind"] != "ServiceMonitor"]
        for path in tmp_path.rglob("needs-crds/*.yaml")
    }
    assert len(rules) == len(documents.blocks(PAGE, "python"))
    assert {m["kind"] for m in rules["dist-alerts-kinds"]} == {"PrometheusRule", "VMRule"}
    (routed,) = rules["dist-alerts-routed"]
    alerts = [rule for group in routed["spec"]["groups"] for rule in group["rules"] if "alert" in rule]
    assert {rule["labels"]["team"] for rule in alerts} == {"ml-platform"}
    assert all(
        rule["annotations"]["runbook_url"].startswith("https://wiki.example.com/gpu-runbook#") for rule in alerts
    )


def test_the_limits_of_pools_go_by_their_nodes():
    chart = Chart(App(), "gpu")
    exporter = gpu_constructs.DcgmExporter(chart, "exporter", dashboard=False)
    limits = {
        f"{pool}-.*": gpu_constructs.PowerLimit(chart, pool, name=pool, watts=watts)
        for pool, watts in (("train", 250), ("serve", 300))
    }
    gpu_constructs.GpuAlerts(chart, "alerts", exporter=exporter, power_limit=limits)
    (made,) = [m for m in Testing.synth(chart) if m["kind"] == "PrometheusRule"]
    assert all(f'"{pool}' in str(made) for pool in limits)


def test_every_alert_it_names_is_one():
    named = set(re.findall(r"\bGpu[A-Z]\w+", PAGE.read_text())) - set(gpu_constructs.__all__)
    assert named <= set(ALERT_NAMES)
