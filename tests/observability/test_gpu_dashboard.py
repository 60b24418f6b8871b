import json
from typing import NamedTuple

from cdk8s import ApiObject, App, Chart, JsonPatch, Testing

import dashboard_picture
import dist
from gpu_constructs import GpuNamespace
from gpu_constructs.observability.dashboard import dashboard
from gpu_constructs.observability.gpu_dashboard import GpuDashboard
from gpu_constructs.observability.gpu_series import GpuSeries, dcgm_series, nvidia_smi_series
from gpu_constructs.observability.metrics import metric_set

FIELDS = [metric.field for metric in metric_set("recommended", "4.8.3") if metric.prometheus_type != "label"]


class Exporter(NamedTuple):
    name: str
    namespace: str
    series: GpuSeries


DCGM = Exporter(
    "dcgm-exporter",
    "nvidia-gpu-operator",
    dcgm_series(job="dcgm-exporter", metrics=FIELDS, hostname_label="hostname", pods="one"),
)
SMI = Exporter(
    "nvidia-gpu-exporter",
    "monitoring",
    nvidia_smi_series(job="nvidia-gpu-exporter", metrics=["nvidia_smi_temperature_gpu", "nvidia_smi_gpu_info"]),
)


def made(**given):
    return GpuDashboard(Chart(App(), "gpu"), "board", **{"exporter": DCGM, **given})


def config_map(**given):
    (manifest,) = Testing.synth(ApiObject.of(made(**given)).chart)
    return manifest


def test_it_makes_one_config_map(objects, snapshot):
    chart = Chart(App(), "gpu")
    GpuDashboard(chart, "board", exporter=DCGM, folder="GPUs")
    (manifest,) = objects(chart)
    assert [{**manifest, "data": dict.fromkeys(manifest["data"], "(the dashboard)\n")}] == snapshot


def test_options_reach_the_dashboard(keywords):
    given = keywords
    assert made(**given).json == dashboard(DCGM.series, **given)


def test_labels_and_the_annotation_of_its_folder_are_those_of_the_sidecar():
    metadata = config_map(labels={"dashboards": "gpu"}, folder="GPUs", folder_annotation="target-directory")["metadata"]
    assert metadata["annotations"] == {"target-directory": "GPUs"}
    assert ("grafana_dashboard" in metadata["labels"], metadata["labels"]["dashboards"]) == (False, "gpu")


def test_its_namespace_is_that_of_the_exporter_by_default():
    board = made()
    assert (board.name, board.namespace) == ("dcgm-exporter-dashboard", "nvidia-gpu-operator")
    board = made(namespace="monitoring", name="gpus")
    assert (board.name, board.namespace) == ("gpus", "monitoring")
    chart = Chart(App(), "gpu")
    own = GpuDashboard(chart, "board", exporter=DCGM, namespace=GpuNamespace(chart, "ns", name="grafana"))
    assert own.namespace == "grafana"
    assert config_map(namespace="default")["metadata"]["namespace"] == "default"


def test_dashboards_of_two_exporters_differ_in_name_key_and_uid():
    chart = Chart(App(), "gpu")
    boards = [GpuDashboard(chart, one.name, exporter=one, namespace="grafana") for one in (DCGM, SMI)]
    manifests = Testing.synth(chart)
    assert len({manifest["metadata"]["name"] for manifest in manifests}) == 2
    assert len({key for manifest in manifests for key in manifest["data"]}) == 2
    assert len({board.json["uid"] for board in boards}) == 2


def test_its_json_is_a_copy_that_users_may_change():
    board = made()
    changed = board.json
    changed["panels"] = changed["panels"][:2]
    assert len(board.json["panels"]) > 40
    board.api_object.add_json_patch(JsonPatch.replace("/data/dcgm-exporter.json", json.dumps(changed)))
    (manifest,) = Testing.synth(ApiObject.of(board).chart)
    assert json.loads(manifest["data"]["dcgm-exporter.json"])["panels"] == changed["panels"]


def test_a_value_that_grafana_or_kubernetes_rejects_is_rejected(refused):
    series = dcgm_series(job="x", metrics=[], hostname_label="h", pods="one")
    refused(made, at="gpu/board: ", WITHOUT_METRICS=DCGM._replace(series=series))


def test_the_picture_in_the_documents_shows_this_dashboard():
    for name, content in dashboard_picture.contents().items():
        drawn = (dist.ROOT / "docs" / "images" / f"{name}.svg").read_text(encoding="utf-8")
        assert drawn == dashboard_picture.picture(content), "uv run python tests/dashboard_picture.py draws it anew"


def test_a_picture_shows_every_row_and_panel_and_loads_nothing():
    for content in dashboard_picture.contents().values():
        drawn = dashboard_picture.picture(content)
        for panel in content["panels"]:
            assert f">{panel['title'].replace('&', '&amp;')}<" in drawn, content
        assert drawn.count('class="panel"') == sum(panel["type"] != "row" for panel in content["panels"]), content
        assert "prefers-color-scheme: dark" in drawn, content
        assert drawn.count("http") == 1, content
        assert "url(" not in drawn, content


def test_exporters_with_other_names_have_separate_dashboards():
    train, serve = (made(exporter=DCGM._replace(name=f"dcgm-{pool}")).json for pool in ("train", "serve"))
    assert (train["uid"], train["title"]) == ("gpus-dcgm-train", "NVIDIA GPUs: dcgm-train")
    assert (serve["uid"], serve["title"]) == ("gpus-dcgm-serve", "NVIDIA GPUs: dcgm-serve")
    assert len(made(exporter=DCGM._replace(name="d" * 52)).json["uid"]) == 40
    chosen = made(exporter=DCGM._replace(name="dcgm-train"), uid="mine", title="Mine").json
    assert (chosen["uid"], chosen["title"]) == ("mine", "Mine")
