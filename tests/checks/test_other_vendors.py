"""Objects of Intel, AMD and generic device plugins, in an app with GPUs of NVIDIA."""

import json
import re

import pytest

from app_tables import fits, objects, said
from documents import Page, objects_in
from gpu_constructs import (
    App,
    CapacityPlan,
    Chart,
    DevicePluginChart,
    GpuInventory,
    GpuNode,
    GpuWorkload,
    Include,
    Kubernetes,
    Taint,
    synthesize,
)
from gpu_constructs.catalog.nfd_labels import nfd_labels
from gpu_constructs.checks.rules.table import broken_rules
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.provided import Provided
from gpu_constructs.feature_discovery.config import MASTER, WORKER
from tables import beside

ROWS = beside(__file__, "other_vendors")
PODS = [{"kind": "Deployment", "name": f"user-{at}", "pod": pod} for at, pod in enumerate(ROWS["pods"])]
TAINTED = GpuInventory(nodes=[GpuNode(name="one", taints=[Taint(key="nvidia.com/gpu", effect="NoSchedule")])])
DISCOVERY = Provided(nfd_labels=nfd_labels(WORKER, MASTER))


@pytest.mark.parametrize("discovery", [True, "external"])
def test_objects_of_other_vendors_stay_as_they_are_and_count_as_no_gpus(discovery, tmp_path):
    given = objects([*ROWS["objects"], *PODS], "kube-system")
    (tmp_path / "theirs.yaml").write_text("---\n".join(json.dumps(one) + "\n" for one in given), encoding="utf-8")
    app = App(outdir=str(tmp_path / "dist"))
    DevicePluginChart(app, "plugin", platform=Kubernetes(), node_feature_discovery=discovery)
    Include(Chart(app, "theirs"), "all", url=str(tmp_path / "theirs.yaml"))
    ours = {"image": "a:1", "platform": Kubernetes(), "resources": {"limits": {"memory": "8Gi"}}}
    GpuWorkload(Chart(app, "ours", namespace="kube-system"), "ours", **ours)
    CapacityPlan(app, TAINTED)
    assert list(synthesize(app).warnings) == []
    written = objects_in(tmp_path / "dist")
    assert [one for one in given if one not in written] == []
    report = json.loads((tmp_path / "dist/reports/capacity-plan.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in report["consumers"]] == ["ours"]


@pytest.mark.parametrize("row", ROWS["labels_of_other_devices"], ids=lambda row: row["label"])
def test_a_label_of_another_device_is_an_error_only_if_the_discovery_of_the_app_does_not_publish_it(row):
    pods = objects([{"kind": "Job", "pod": {"containers": [{}], "nodeSelector": {row["label"]: "true"}}}])
    for provided, says in (((), []), ((DISCOVERY,), row["says"])):
        assert fits(said(list(broken_rules(Facts(pods, provided)))), says)


def test_the_page_names_the_resources_of_these_pods():
    listed = [
        name for row in Page("device-plugin").table("resource") for name in re.findall("`([a-z.]+/[a-z0-9]+)`", row[0])
    ]
    asked = {name for pod in ROWS["pods"] for name in pod["containers"][0].get("limits", {})}
    assert {*listed} == {*asked, "nvidia.com/gpu"}
