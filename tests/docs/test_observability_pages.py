"""The pages on exporters, metrics, dashboard and alerts: their tables and numbers are the code's."""

import json
import re
from pathlib import Path
from typing import Any

import yaml
from cdk8s import App, Chart, Testing

import dashboard_picture
import documents
import gpu_constructs
from documents import Page, objects_in, of_kind
from gpu_constructs import (
    DcgmExporter,
    GpuAlerts,
    GpuConstructsError,
    GpuNamespace,
    NvidiaGpuExporter,
    PowerLimit,
    Sharing,
    Talos,
)
from gpu_constructs.catalog import versions
from gpu_constructs.kube import pod_security
from gpu_constructs.kube.pod_specs import pod_specs
from gpu_constructs.observability import daemonset, nvidia_gpu_exporter_pod
from gpu_constructs.observability.alert_rules import ALERT_NAMES
from gpu_constructs.observability.metrics import metric_set
from gpu_constructs.observability.nvidia_smi_fields import exported_metrics, fields
from gpu_constructs.observability.scrape import SCRAPE_KINDS

SETS = ("seed", "default", "recommended", "profiling")
DCGM, SMI, DASHBOARD, ALERTS = map(Page, ("dcgm-exporter", "nvidia-gpu-exporter", "dashboard", "gpu-alerts"))


def exporter_of(**given: Any) -> list[dict[str, Any]]:
    chart = Chart(App(), "gpu")
    DcgmExporter(chart, "exporter", **given)
    made: list[dict[str, Any]] = Testing.synth(chart)
    return made


# --- the DCGM exporter ----------------------------------------------------------------------------------------


def test_each_example_is_of_the_exporter_and_has_alerts_where_it_makes_them(tmp_path: Path) -> None:
    for number, app in enumerate(DCGM.apps):
        (folder := tmp_path / str(number)).mkdir()
        written = DCGM.written(number, folder)
        assert "dcgm-exporter" in {one["metadata"]["name"] for one in written}
        assert ("PrometheusRule" in {one["kind"] for one in written}) == ("GpuAlerts" in app)


def test_lists_and_kinds_to_scrape_are_the_code_s() -> None:
    assert DCGM.column("`metrics=`") == [f'"{name}"' for name in SETS]
    assert DCGM.column("`scrape=`") == [f'"{kind}"' for kind in SCRAPE_KINDS]
    for kind, _, needs in DCGM.table("`scrape=`"):
        try:
            exporter_of(scrape=kind.strip('`"'), service=False)
        except GpuConstructsError:
            assert needs == "the Service"
        else:
            assert needs == ""
    releases = {row[0].strip('`"'): row[1].strip("`") for row in DCGM.table("`version=`")}
    assert releases.items() <= {version: release.image for version, release in versions.DCGM_EXPORTER.items()}.items()
    assert f"The library supports {documents.spans(versions.DCGM_EXPORTER)}" in DCGM.text


def test_the_table_of_rights_says_what_the_options_bring() -> None:
    for options, *said in DCGM.table("options"):
        given = {} if options == "defaults" else eval(f"dict({options.strip('`')})", {"Sharing": Sharing})
        pod = of_kind("DaemonSet", exporter_of(**given))["spec"]["template"]["spec"]
        security = pod["containers"][0]["securityContext"]
        of_the_node = ["kubelet's folder"] * any("hostPath" in volume for volume in pod["volumes"])
        of_the_node += ["processes"] * bool(pod.get("hostPID"))
        levels = ("restricted", "baseline", "privileged")
        assert said == [
            "root" if security["runAsUser"] == 0 else str(security["runAsUser"]),
            "yes" if "add" in security["capabilities"] else "no",
            ", ".join(of_the_node) or "nothing",
            "yes" if pod["automountServiceAccountToken"] else "no",
            next(level for level in levels if not list(pod_security.violations(pod, level))),
        ]


def test_the_catalogue_lists_every_metric_and_explains_the_labels_of_series() -> None:
    page = Page("metrics")
    sets = {name: {metric.field for metric in metric_set(name, "4.8.3")} for name in SETS}
    old = {metric.field for metric in metric_set("profiling", "3.4.2")}
    rows = []
    for metric in metric_set("profiling", "4.8.3"):
        first = next(name for name in SETS if metric.field in sets[name])
        since = "" if metric.field in old else "4.x"
        rows.append([f"`{metric.field}`", metric.prometheus_type, metric.help, first, since])
    assert page.table("metric") == rows
    known = {"gpu", "UUID", "modelName", "hostname", "pod", "namespace", "container", "exporter_pod", "node"}
    assert known <= set(page.column("label"))


def test_the_names_of_objects_are_those_that_are_made() -> None:
    names = {manifest["metadata"]["name"] for manifest in exporter_of(platform=Talos())}
    assert set(re.findall(r"`(dcgm-exporter-[a-z-]+)`", DCGM.raw)) <= names


# --- the exporter without privileges --------------------------------------------------------------------------


def test_pods_need_privileges_for_the_apps_of_a_gpu_only(tmp_path: Path) -> None:
    for number, app in enumerate(SMI.apps):
        (folder := tmp_path / str(number)).mkdir()
        objects = SMI.written(number, folder)
        level = "privileged" if "compute_apps" in app else "restricted"
        (spec, *_) = [spec for one in objects if one["kind"] == "DaemonSet" for spec in pod_specs(one)]
        assert bool(pod_security.violations(spec, "restricted")) == (level == "privileged")
        labels = [one["metadata"]["labels"] for one in objects if one["kind"] == "Namespace"]
        assert [one["pod-security.kubernetes.io/enforce"] for one in labels] in ([level], [])


def test_fields_become_the_metrics_that_are_said() -> None:
    rows = SMI.table("field")
    assert len(rows) > 15
    assert [metric.strip("`") for _, metric in rows] == [fields()[field.strip("`")]["metric"] for field, _ in rows]


def test_both_exporters_ask_for_what_the_table_says() -> None:
    rows = {row[0]: row[1:] for row in SMI.table("property")}
    ours, theirs = nvidia_gpu_exporter_pod.DEFAULT_RESOURCES, daemonset.DEFAULT_RESOURCES
    asked = [f"{each['requests']['memory']}, {each['limits']['memory']}" for each in (theirs, ours, ours)]
    assert rows["Memory request and limit"] == asked
    for name, metric in (("Energy counter", "energy_joules_total"), ("XID errors", "xid_errors_total")):
        known = [f"nvidia_smi_{metric}" in exported_metrics(backend) for backend in ("nvidia-smi", "nvml")]
        assert [cell == "yes" for cell in rows[name][1:]] == known


def test_the_alerts_that_are_left_out_are_those_named() -> None:
    def alerts(**given: Any) -> set[str]:
        chart = Chart(App(), "gpu")
        exporter = NvidiaGpuExporter(chart, "exporter", dashboard=False, **given)
        GpuAlerts(chart, "alerts", exporter=exporter)
        groups = of_kind("PrometheusRule", Testing.synth(chart))["spec"]["groups"]
        return {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule}

    by_smi, by_nvml = alerts(), alerts(backend="nvml")
    assert {"GpuCollectionFailing", "GpuCollectionStale"} <= by_smi
    assert not {"GpuIdleWhileAllocated", "GpuPcieReplays"} & by_nvml
    assert "GpuXidCritical" in by_nvml - by_smi
    assert all("Xid" in name for name in by_nvml - by_smi)


# --- the dashboard --------------------------------------------------------------------------------------------

CONTENTS = dashboard_picture.contents().values()
PANELS = [panel for content in CONTENTS for panel in content["panels"]]


def boards(number: int, folder: Path) -> list[dict[str, Any]]:
    made = folder / str(number)
    made.mkdir()
    labelled = [one for one in DASHBOARD.written(number, made) if one["metadata"].get("labels")]
    return [one for one in labelled if one["metadata"]["labels"].get("grafana_dashboard") == "1"]


def test_dashboards_are_where_and_what_the_programs_say(tmp_path: Path) -> None:
    (board,) = boards(0, tmp_path)
    assert board["metadata"]["namespace"] == "monitoring"
    assert board["metadata"]["annotations"] == {"grafana_folder": "GPUs"}
    two = boards(1, tmp_path)
    contents = [json.loads(text) for one in two for text in one["data"].values()]
    assert {one["uid"] for one in contents} == {"gpus-train", "gpus-serve"}
    assert len({one["title"] for one in contents}) == len({one["metadata"]["name"] for one in two}) == 2
    (changed,) = boards(2, tmp_path)
    content = json.loads(changed["data"]["dcgm-exporter.json"])
    assert content["time"]["from"] == "now-24h"
    assert "team-ai" in content["tags"]
    (hottest,) = (panel for panel in content["panels"] if panel["title"] == "Hottest GPU")
    assert hottest["fieldConfig"]["defaults"]["thresholds"]["steps"][1] == {"color": "orange", "value": 75}
    DASHBOARD.run(DASHBOARD.refused[0], tmp_path)
    assert json.loads((tmp_path / "our-gpus.json").read_text())["uid"] == "our-gpus"


def test_rows_panels_and_variables_that_are_named_are_there() -> None:
    told = DASHBOARD.column("row")
    assert len(told) == len(set(told))
    for content in CONTENTS:
        rows = [panel["title"] for panel in content["panels"] if panel["type"] == "row"]
        assert [title for title in told if title in rows] == rows
    assert set(told) == {panel["title"] for panel in PANELS if panel["type"] == "row"}
    named = set(re.findall(r"(?<!\*)\*([A-Z][^*]+)\*(?!\*)", DASHBOARD.text))
    assert named - {"Save as"} <= {panel["title"] for panel in PANELS} | {"Profiling"}
    assert len(named) > 15
    content, *_ = CONTENTS
    assert DASHBOARD.column("variable") == [variable["label"] for variable in content["templating"]["list"]]
    sizes = [len(json.dumps(content)) for content in CONTENTS]
    assert 25_000 < min(sizes) < max(sizes) < 85_000
    (values,) = DASHBOARD.blocks("yaml")
    sidecar = yaml.safe_load(values)["grafana"]["sidecar"]["dashboards"]
    assert (sidecar["label"], sidecar["labelValue"]) == ("grafana_dashboard", "1")
    assert sidecar["folderAnnotation"] == "grafana_folder"


# --- alerts ---------------------------------------------------------------------------------------------------


def test_alerts_are_of_the_kinds_and_with_the_labels_that_are_said(tmp_path: Path) -> None:
    for app in ALERTS.apps:
        ALERTS.run(app, tmp_path)
    kinds = {one["kind"] for one in objects_in(tmp_path / "dist-alerts-kinds")}
    assert {"PrometheusRule", "VMRule"} <= kinds
    routed = of_kind("PrometheusRule", objects_in(tmp_path / "dist-alerts-routed"))
    alerts = [rule for group in routed["spec"]["groups"] for rule in group["rules"] if "alert" in rule]
    assert {rule["labels"]["team"] for rule in alerts} == {"ml-platform"}
    address = "https://wiki.example.com/gpu-runbook#"
    assert all(rule["annotations"]["runbook_url"].startswith(address) for rule in alerts)


def test_the_limits_of_pools_go_by_their_nodes() -> None:
    chart = Chart(App(), "gpu")
    GpuNamespace(chart, "namespace")
    exporter = DcgmExporter(chart, "exporter", dashboard=False)
    limits = {f"{pool}-.*": PowerLimit(chart, pool, name=pool, watts=watts) for pool, watts in (("a", 250), ("b", 300))}
    GpuAlerts(chart, "alerts", exporter=exporter, power_limit=limits)
    rules = str(of_kind("PrometheusRule", Testing.synth(chart)))
    assert all(f'"{pool}' in rules for pool in limits)


def test_every_alert_that_is_named_is_one() -> None:
    named = set(re.findall(r"\bGpu[A-Z]\w+", ALERTS.raw)) - set(gpu_constructs.__all__)
    assert named <= set(ALERT_NAMES)
