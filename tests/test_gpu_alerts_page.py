"""The page on alerts: its examples run one after the other, and what it names is there."""

from __future__ import annotations

import re

from cdk8s import App, Chart, Testing

import dist
import documents
import gpu_constructs
from gpu_constructs.observability.alert_rules import ALERT_NAMES

PAGE = dist.ROOT / "docs" / "gpu-alerts.md"


def test_the_examples_run_one_after_the_other():
    app = App()
    names = {"app": app, "chart": Chart(app, "gpu")}
    for block in documents.blocks(PAGE, "python"):
        exec(block.text, names)
    rules = [m for m in Testing.synth(names["chart"]) if m["kind"] in ("PrometheusRule", "VMRule")]
    assert {m["kind"] for m in rules} == {"PrometheusRule", "VMRule"}
    (routed,) = [m for m in rules if m["metadata"]["name"] == "gpu-alerts-routed"]
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
