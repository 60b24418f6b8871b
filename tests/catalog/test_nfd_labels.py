"""The configuration of Node Feature Discovery determines the node labels that it publishes."""

import pytest
from cdk8s import Chart

from gpu_constructs import (
    CapacityPlan,
    Delivery,
    DevicePluginChart,
    External,
    GpuNamespace,
    GpuOperator,
    GpuWorkload,
    Kubernetes,
    synthesize,
)
from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.catalog.nfd_labels import nfd_labels
from gpu_constructs.errors import SynthesisError
from gpu_constructs.feature_discovery.node_feature_discovery import NfdMaster, NfdWorker, NodeFeatureDiscovery
from tables import cases

VENDOR, CLASS = "pci-10de.present", "pci-0300_10de.present"


def publishes(label, config=None, *, master=None):
    discovery = NodeFeatureDiscovery(worker=NfdWorker(config=config or {}), master=NfdMaster(config=master or {}))
    worker, master_file = discovery.worker.document(), discovery.master.document()
    return nfd_labels(worker, master_file).publishes(label if "/" in label else f"feature.node.kubernetes.io/{label}")


def test_the_configuration_of_the_worker_determines_the_labels(rows):
    for label, config, is_published in rows:
        assert publishes(label, config) is is_published, (label, config, is_published)


def test_the_master_can_restrict_the_labels():
    assert not publishes(VENDOR, master={"labelWhiteList": "^gpu"})


def test_the_default_labels_of_the_program_contain_the_class():
    assert nfd_labels({}, {}).publishes(f"feature.node.kubernetes.io/{CLASS}")
    assert not nfd_labels({}, {}).publishes(f"feature.node.kubernetes.io/{VENDOR}")


def selecting(app, label, ignore_rules=(), **plugin):
    DevicePluginChart(app, "plugin", platform=Kubernetes(), **plugin)
    chart = Chart(app, "team", namespace="team")
    GpuNamespace(chart, "namespace", name="team")
    selector = {f"feature.node.kubernetes.io/{label}": "true"}
    GpuWorkload(chart, "train", image="a:1", platform=Kubernetes(), node_selector=selector, ignore_rules=ignore_rules)
    return CapacityPlan(app, GpuInventory(nodes=[GpuNode(name="n", gpu_model="RTX 3090")]), unchecked="off")


def test_a_label_that_the_apps_discovery_does_not_publish_is_an_error(app):
    selecting(app, CLASS)
    with pytest.raises(SynthesisError, match=r"team/train: selects nodes by the label .*which plugin does not publish"):
        synthesize(app)


def test_no_node_of_the_plan_has_a_label_that_the_apps_discovery_does_not_publish(app):
    plan = selecting(app, CLASS, ignore_rules=["R12"])
    with pytest.raises(SynthesisError, match=rf"has no label feature.node.kubernetes.io/{CLASS}"):
        synthesize(app)
    assert plan.plan.all_fits == "no"


@cases
def test_a_label_that_the_discovery_can_publish_is_accepted(app, label, options):
    plan = selecting(app, label, **options)
    synthesize(app)
    # The app does not declare which nodes have a label of another discovery.
    assert plan.plan.all_fits in ("yes", "conditional")


def test_a_declared_label_is_accepted(app):
    External(app, "other-discovery", node_labels=[f"feature.node.kubernetes.io/{CLASS}"])
    plan = selecting(app, CLASS)
    synthesize(app)
    assert plan.plan.all_fits == "conditional"


def test_a_label_that_files_on_nodes_can_define_is_only_a_warning(app):
    selecting(app, "team.gpu")
    with pytest.warns(UserWarning, match=r"which plugin does not publish with its configuration"):
        synthesize(app)


@cases
def test_the_values_of_the_operator_configure_its_discovery(chart, values, label, is_published):
    given = {"node-feature-discovery": values} if values else {}
    operator = GpuOperator(chart, "operator", platform=Kubernetes(), delivery=Delivery.values(), values=given)
    assert operator.provides.publishes(f"feature.node.kubernetes.io/{label}") is is_published
