"""The page on the DCGM exporter: its examples run, and its tables say what the code does."""

from __future__ import annotations

import re

import pytest
from cdk8s import App, Chart, Testing

import dist
import documents
import gpu_constructs
from gpu_constructs import DcgmExporter, GpuNamespace, NvidiaRuntimeClass, Sharing, Talos, pod_security, versions
from gpu_constructs.observability.metrics import metric_set
from gpu_constructs.observability.scrape import SCRAPE_KINDS

PAGE = dist.ROOT / "docs" / "dcgm-exporter.md"
CATALOGUE = dist.ROOT / "docs" / "metrics.md"
EXAMPLES = [block.text for block in documents.blocks(PAGE, "python")]
SETS = ("seed", "default", "recommended", "profiling")


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_is_a_whole_app(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(EXAMPLES[number], {})
    written = "".join(path.read_text() for path in tmp_path.rglob("*.k8s.yaml"))
    assert "name: dcgm-exporter\n" in written
    assert ("kind: PrometheusRule" in written) == ("GpuAlerts" in EXAMPLES[number])


def test_the_table_of_metric_lists_names_each():
    assert [row[0] for row in documents.table(PAGE, "`metrics=`")] == [f'`"{name}"`' for name in SETS]


def test_the_table_of_scrape_kinds_names_each_and_what_it_needs():
    rows = documents.table(PAGE, "`scrape=`")
    assert [row[0] for row in rows] == [f'`"{kind}"`' for kind in SCRAPE_KINDS]
    for kind, _, needs in rows:
        chart = Chart(App(), "gpu")
        try:
            DcgmExporter(chart, "exporter", scrape=kind.strip('`"'), service=False)
        except gpu_constructs.GpuConstructsError:
            assert needs == "the Service"
        else:
            assert needs == ""


@pytest.mark.parametrize("row", documents.table(PAGE, "options"), ids=lambda row: row[0])
def test_the_table_of_rights_says_what_the_options_bring(row):
    options, user, sys_admin, of_the_node, token, level = row
    given = {} if options == "nothing said" else eval(f"dict({options.strip('`')})", {"Sharing": Sharing})
    chart = Chart(App(), "gpu")
    DcgmExporter(chart, "exporter", **given)
    (made,) = [manifest for manifest in Testing.synth(chart) if manifest["kind"] == "DaemonSet"]
    pod = made["spec"]["template"]["spec"]
    security = pod["containers"][0]["securityContext"]
    assert ("root" if security["runAsUser"] == 0 else str(security["runAsUser"])) == user
    assert ("yes" if "add" in security["capabilities"] else "no") == sys_admin
    taken = ["kubelet's folder"] * any("hostPath" in volume for volume in pod["volumes"])
    taken += ["processes"] * bool(pod.get("hostPID"))
    assert (", ".join(taken) or "nothing") == of_the_node
    assert ("yes" if pod["automountServiceAccountToken"] else "no") == token
    reached = next(
        candidate
        for candidate in ("restricted", "baseline", "privileged")
        if not list(pod_security.violations(pod, candidate))
    )
    assert reached == level


def test_the_table_of_releases_is_the_code_s():
    rows = documents.table(PAGE, "`version=`")
    assert {row[0].strip('`"'): row[1].strip("`") for row in rows} == {
        version: release.image for version, release in versions.DCGM_EXPORTER.items()
    }


def catalogue_rows():
    """What the catalogue's table must say, from the code."""
    sets = {name: {metric.field for metric in metric_set(name, "4.8.3")} for name in SETS}
    old = {metric.field for metric in metric_set("profiling", "3.4.2")}
    for metric in metric_set("profiling", "4.8.3"):
        first = next(name for name in SETS if metric.field in sets[name])
        yield [f"`{metric.field}`", metric.prometheus_type, metric.help, first, "" if metric.field in old else "4.x"]


def test_the_catalogue_lists_every_metric_with_its_type_its_meaning_and_the_first_list_that_has_it():
    assert documents.table(CATALOGUE, "metric") == list(catalogue_rows())


def test_the_catalogue_explains_the_labels_that_series_carry():
    labels = {row[0].strip("`") for row in documents.table(CATALOGUE, "label")}
    assert {"gpu", "UUID", "modelName", "hostname", "pod", "namespace", "container", "exporter_pod", "node"} <= labels


def test_the_names_on_the_page_are_the_objects_names():
    chart = Chart(App(), "gpu")
    GpuNamespace(chart, "namespace")
    NvidiaRuntimeClass(chart, "runtime-class")
    DcgmExporter(chart, "exporter", platform=Talos())
    names = {manifest["metadata"]["name"] for manifest in Testing.synth(chart)}
    named = set(re.findall(r"`(dcgm-exporter-[a-z-]+)`", PAGE.read_text()))
    assert named <= names
