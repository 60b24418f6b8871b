"""Offers and labels of nodes. The cases are in tables/offers.yaml and tables/labels.yaml."""

from dataclasses import replace

import pytest

from gpu_constructs import Configs, DevicePluginChart, Flags, GpuConstructsWarning, Kubernetes, plan_capacity
from gpu_constructs.capacity.node_labels import labels_of
from gpu_constructs.capacity.supply import node_offers
from gpu_constructs.catalog import versions
from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.facts.provided import GpuOffer, Provided
from gpu_constructs.feature_discovery import manifests as nfd
from gpu_constructs.feature_discovery.node_feature_discovery import NfdWorker, NodeFeatureDiscovery
from tables import beside

GPU = "nvidia.com/gpu"
RTX, A100 = "NVIDIA GeForce RTX 5070 Ti", "NVIDIA A100-SXM4-40GB"
OFFERS, LABELS = beside(__file__, "offers"), beside(__file__, "labels")


def in_words(device):
    """Return a device in the form of the table."""
    said = [f"{device.slots} {device.resource} of GPU {device.gpu}"]
    said += [f"profile {device.profile}"] if device.profile else []
    said += [f"{device.vram_mib} MiB"] if device.vram_mib is not None else []
    said += [f"{device.vram_each_mib} MiB each"] if device.vram_each_mib is not None else []
    said += [f"at most {device.most_each} a container"] if device.most_each is not None else []
    return ", ".join(said)


def the_offer(node, *provided):
    (offer,) = node_offers(GpuInventory(nodes=[node]), provided)
    return offer


def described(offer):
    """Return an offer in the form of the table."""
    return {
        "devices": [in_words(one) for one in offer.devices],
        "notes": list(offer.notes),
        "sharing": offer.sharing,
        "vram_unit_mib": offer.vram_unit_mib,
        "taints": list(offer.taints),
        "watts": list(offer.gpu_watts),
        "labels": dict(offer.labels),
    }


USUAL = {"notes": [], "sharing": "", "vram_unit_mib": None, "taints": []}


@pytest.mark.parametrize("sentence", OFFERS)
def test_a_node_offers_what_its_plugin_advertises(sentence):
    for row in OFFERS[sentence]:
        inventory = GpuInventory(nodes=[row["node"]])
        (offer,) = node_offers(inventory, row.get("provided", ()), row.get("device_classes", ()))
        found, expected = described(offer), USUAL | row["offer"]
        assert {name: found[name] for name in expected} == expected, row


@pytest.mark.parametrize("sentence", LABELS)
def test_a_node_has_its_known_labels(sentence):
    for row in LABELS[sentence]:
        given = {name: value for name, value in row.items() if name != "labels"}
        found = labels_of(**{"sharing": Sharing.none(), **given})
        assert {key.removeprefix("nvidia.com/"): value for key, value in found.items()} == row["labels"], row


# With constructs


# NVIDIA/k8s-device-plugin#1807: patterns of MIG profiles were not anchored before 0.20.0.
@pytest.mark.filterwarnings("ignore:.*passes GDS")
def test_mig_devices_with_attributes_have_the_resource_names_of_the_release(app):
    whole = {"nvidia.com/mig-1g.20gb": 4}
    for version, release in versions.DEVICE_PLUGIN.items():
        named = {"nvidia.com/mig-1g.10gb": 3, "nvidia.com/mig-1g.10gb.me": 1, **whole}
        allocatable = named if version == "0.20.0" else {"nvidia.com/mig-1g.10gb": 4, **whole}
        is_noted = not release.names_mig_attributes
        chart = DevicePluginChart(
            app, f"p{version.replace('.', '-')}", platform=Kubernetes(), version=version, mig_strategy="mixed"
        )
        board = "NVIDIA H100 80GB HBM3"
        layout = [{"1g.10gb+me": 1, "1g.10gb": 3}, {"1g.20gb": 4}]
        offer = the_offer(GpuNode(name="n", gpus=2, gpu_model=board, mig_layout=layout), chart.provides)
        assert offer.allocatable == allocatable
        assert any("omits the attributes of 1g.10gb+me" in note for note in offer.notes) is is_noted


def test_a_stated_mig_strategy_overrides_an_external_file(app, rows):
    for strategy, allocatable in rows:
        flags = Flags(mig_strategy=strategy) if strategy else None
        with pytest.warns(GpuConstructsWarning, match="config-manager"):
            chart = DevicePluginChart(
                app,
                f"of-{strategy or 'a-file'}",
                platform=Kubernetes(),
                config=Configs.external("theirs", default="a", flags=flags),
            )
        board = GpuNode(name="n", gpu_model=A100, mig_layout={"1g.5gb": 7}, gpus=2)
        assert the_offer(board, chart.provides).allocatable == allocatable
        assert ("nvidia.com/mig-*" in chart.provides.gpu_resources) is (strategy in (None, "mixed"))


def test_more_mps_clients_than_an_old_gpu_serves_need_a_newer_board(rows):
    for node, replicas, is_noted in rows:
        offer = the_offer(node, Provided(gpu_offers=[GpuOffer(sharing=Sharing.mps(replicas=replicas))]))
        assert offer.allocatable == {GPU: replicas}
        assert any("its GPUs have compute capability 7.5 or more" in note for note in offer.notes) is is_noted
        web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
        limits = {"containers": [{"name": "web", "resources": {"limits": {GPU: "1"}}}]}
        web["spec"] = {"strategy": {"type": "Recreate"}, "template": {"spec": limits}}
        stated = replace(node, sharing=Sharing.mps(replicas=replicas))
        assert (plan_capacity([web], GpuInventory(nodes=[stated])).all_fits == "conditional") is is_noted


def test_a_node_has_the_label_of_pci_devices_if_discovery_publishes_it():
    by_class = NfdWorker(config={"sources": {"pci": {"deviceLabelFields": ["class", "vendor"]}}})
    for discovery, published in [
        (None, []),
        (NodeFeatureDiscovery(worker=by_class), []),
        (NodeFeatureDiscovery(), ["feature.node.kubernetes.io/pci-10de.present"]),
    ]:
        of_discovery = None if discovery is None else nfd.published_labels(discovery)
        labels = labels_of(GpuNode(name="n", gpu_model=RTX), Sharing.none(), nfd=of_discovery)
        assert [label for label in labels if "pci-" in label] == published
