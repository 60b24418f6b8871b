"""The page on nvidia_gpu_exporter: its programs run as written, and what it says of metrics and rights is so."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from cdk8s import App, Chart, Testing

import dist
import documents
from gpu_constructs import GpuAlerts, GpuConstructsError, NvidiaGpuExporter, pod_security
from gpu_constructs.observability import daemonset, nvidia_gpu_exporter_pod
from gpu_constructs.observability.nvidia_smi_fields import exported_metrics, metric_name
from gpu_constructs.pod_specs import pod_specs

PAGE = dist.ROOT / "docs" / "nvidia-gpu-exporter.md"
PROGRAMS = [block.text for block in documents.blocks(PAGE, "python")]
APPS = [program for program in PROGRAMS if "synth(app)" in program]


def written_by(program: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[dist.Manifest]:
    monkeypatch.chdir(folder)
    exec(compile(program, "nvidia-gpu-exporter.md", "exec"), {})
    files = sorted(folder.rglob("*.k8s.yaml"))
    return [one for file in files for one in yaml.safe_load_all(file.read_text(encoding="utf-8")) if one]


@pytest.mark.parametrize("number", range(len(APPS)))
def test_a_block_runs_as_written(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = written_by(APPS[number], tmp_path, monkeypatch)
    level = "privileged" if "compute_apps" in APPS[number] else "restricted"
    (spec, *_) = [spec for one in objects if one["kind"] == "DaemonSet" for spec in pod_specs(one)]
    assert bool(pod_security.violations(spec, "restricted")) == (level == "privileged")
    stated = [
        one["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] for one in objects if one["kind"] == "Namespace"
    ]
    assert stated in ([level], [])


def test_the_refused_block_gives_the_error_that_is_shown() -> None:
    (block,) = set(PROGRAMS) - set(APPS)
    with pytest.raises(GpuConstructsError) as refused:
        exec(block, {})
    assert [shown.text for shown in documents.blocks(PAGE, "text")] == [f"{refused.value}\n"]


def test_the_table_of_fields_names_the_metrics_that_they_become() -> None:
    rows = documents.table(PAGE, "field")
    assert len(rows) > 15
    for field, metric in rows:
        assert metric.strip("`") == metric_name(field.strip("`"))


def test_the_table_of_both_exporters_says_what_they_ask_for() -> None:
    rows = {row[0]: row[1:] for row in documents.table(PAGE, "what")}
    ours, theirs = nvidia_gpu_exporter_pod.DEFAULT_RESOURCES, daemonset.DEFAULT_RESOURCES
    asked = [f"{each['requests']['memory']}, {each['limits']['memory']}" for each in (theirs, ours, ours)]
    assert rows["Memory asked for, and at most"] == asked
    for name, metric in (("Energy counter", "energy_joules_total"), ("XID errors", "xid_errors_total")):
        known = [f"nvidia_smi_{metric}" in exported_metrics(backend) for backend in ("nvidia-smi", "nvml")]
        assert [cell == "yes" for cell in rows[name][1:]] == known


def test_the_alerts_that_are_left_out_are_those_named() -> None:
    def alerts(**given: object) -> set[str]:
        chart = Chart(App(), "gpu")
        exporter = NvidiaGpuExporter(chart, "exporter", dashboard=False, **given)  # type: ignore[arg-type]
        GpuAlerts(chart, "alerts", exporter=exporter)
        (rules,) = (one for one in Testing.synth(chart) if one["kind"] == "PrometheusRule")
        return {rule["alert"] for group in rules["spec"]["groups"] for rule in group["rules"] if "alert" in rule}

    assert {"GpuCollectionFailing", "GpuCollectionStale"} <= alerts()
    assert not {"GpuIdleWhileAllocated", "GpuPcieReplays"} & alerts(backend="nvml")
    assert {name for name in alerts(backend="nvml") - alerts() if "Xid" not in name} == set()
    assert "GpuXidCritical" in alerts(backend="nvml") - alerts()


def test_every_link_leads_somewhere() -> None:
    for target in documents.links(PAGE):
        file, _, anchor = target.partition("#")
        assert (PAGE.parent / file).exists(), target
        assert not anchor or anchor in documents.anchors(PAGE.parent / file if file else PAGE), target
