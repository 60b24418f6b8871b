import pytest

from gpu_constructs.capacity.node_labels import labels_of, single_profile
from gpu_constructs.feature_discovery import nfd
from gpu_constructs.feature_discovery.node_feature_discovery import NfdWorker, NodeFeatureDiscovery
from gpu_constructs.gpu_models import GPU_MODELS
from gpu_constructs.inventory import GpuNode
from gpu_constructs.sharing import Sharing

A100 = "NVIDIA A100-SXM4-40GB"
RTX = "NVIDIA GeForce RTX 5070 Ti"


OF_CLASS_AND_VENDOR = {"sources": {"pci": {"deviceLabelFields": ["class", "vendor"]}}}
OURS = nfd.published_labels(NodeFeatureDiscovery())


def gpu_labels(labels):
    return {key.removeprefix("nvidia.com/"): value for key, value in labels.items() if key.startswith("nvidia.com/")}


def test_a_node_of_its_own_has_all_that_can_be_known():
    assert labels_of(GpuNode(name="talos-1", gpu_model=RTX), Sharing.none(), nfd=OURS) == {
        "kubernetes.io/hostname": "talos-1",
        "kubernetes.io/os": "linux",
        "feature.node.kubernetes.io/pci-10de.present": "true",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": "NVIDIA-GeForce-RTX-5070-Ti",
        "nvidia.com/gpu.memory": "16303",
        "nvidia.com/gpu.count": "1",
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/gpu.family": "blackwell",
        "nvidia.com/gpu.compute.major": "12",
        "nvidia.com/gpu.compute.minor": "0",
        "nvidia.com/mig.capable": "false",
        "nvidia.com/mps.capable": "false",
    }


@pytest.mark.parametrize(
    "discovery", [None, nfd.published_labels(NodeFeatureDiscovery(worker=NfdWorker(config=OF_CLASS_AND_VENDOR)))]
)
def test_labels_of_pci_devices_are_those_that_the_discovery_publishes(discovery):
    labels = labels_of(GpuNode(name="n", gpu_model=RTX), Sharing.none(), nfd=discovery)
    assert not any("pci-" in label for label in labels)


def test_nodes_of_a_pool_have_names_that_nobody_knows():
    assert "kubernetes.io/hostname" not in labels_of(GpuNode(name="pool", count=2), Sharing.none())


def test_of_a_board_that_is_not_known_little_is_said():
    assert gpu_labels(labels_of(GpuNode(name="n", gpus=2, vram="24Gi"), Sharing.none())) == {
        "gpu.present": "true",
        "gpu.memory": "24576",
        "gpu.count": "2",
        "gpu.replicas": "1",
        "gpu.sharing-strategy": "none",
        "mps.capable": "false",
    }
    assert "nvidia.com/gpu.memory" not in labels_of(GpuNode(name="n"), Sharing.none())


def test_memory_that_no_pod_gets_is_still_the_boards():
    node = GpuNode(name="n", gpu_model=RTX, vram_reserved="1Gi")
    assert labels_of(node, Sharing.none())["nvidia.com/gpu.memory"] == "16303"


def test_a_node_has_no_label_whose_value_is_too_long():
    boards = GpuNode(
        name="n", gpu_model="NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", mig_layout={"1g.24gb": 4}
    )
    labels = gpu_labels(labels_of(boards, Sharing.none(), "single"))
    assert "gpu.product" not in labels
    assert labels["gpu.count"] == "4"


def test_what_is_declared_wins():
    node = GpuNode(name="n", gpu_model=RTX, labels={"nvidia.com/gpu.product": "mine", "kubernetes.io/hostname": "h"})
    labels = labels_of(node, Sharing.none())
    assert (labels["nvidia.com/gpu.product"], labels["kubernetes.io/hostname"]) == ("mine", "h")
    assert (
        labels_of(node, Sharing.none(), declared={"x": "y"})["nvidia.com/gpu.product"] == "NVIDIA-GeForce-RTX-5070-Ti"
    )


@pytest.mark.parametrize(
    ("sharing", "product", "replicas", "strategy", "mps"),
    [
        (Sharing.none(), "NVIDIA-GeForce-RTX-5070-Ti", "1", "none", "false"),
        (Sharing.time_slicing(replicas=5), "NVIDIA-GeForce-RTX-5070-Ti-SHARED", "5", "time-slicing", "false"),
        (
            Sharing.time_slicing(replicas=5, rename_by_default=True),
            "NVIDIA-GeForce-RTX-5070-Ti",
            "5",
            "time-slicing",
            "false",
        ),
        (Sharing.mps(replicas=10), "NVIDIA-GeForce-RTX-5070-Ti-SHARED", "10", "mps", "true"),
        (
            Sharing.time_slicing(resources={"nvidia.com/mig-1g.5gb": 2}),
            "NVIDIA-GeForce-RTX-5070-Ti",
            "1",
            "none",
            "false",
        ),
    ],
)
def test_sharing_shows_in_the_labels(sharing, product, replicas, strategy, mps):
    labels = gpu_labels(labels_of(GpuNode(name="n", gpu_model=RTX, gpus=2), sharing))
    assert labels["gpu.product"] == product
    assert labels["gpu.replicas"] == replicas
    assert labels["gpu.sharing-strategy"] == strategy
    assert labels["mps.capable"] == mps
    # Boards, not slots.
    assert labels["gpu.count"] == "2"
    assert "mig.strategy" not in labels


def a100(layout, gpus=1):
    return GpuNode(name="n", gpu_model=A100, gpus=gpus, mig_layout=layout)


@pytest.mark.parametrize(
    ("sharing", "product", "replicas"),
    [
        (Sharing.none(), "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "1"),
        (Sharing.time_slicing(replicas=2), "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED", "2"),
        (Sharing.time_slicing(replicas=2, rename_by_default=True), "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "2"),
    ],
)
def test_under_single_the_board_is_labelled_as_its_mig_devices(sharing, product, replicas):
    labels = gpu_labels(labels_of(a100({"1g.5gb": 7}, gpus=2), sharing, "single"))
    assert labels["gpu.product"] == product
    assert labels["gpu.replicas"] == replicas
    assert labels["gpu.count"] == "14"
    assert labels["gpu.memory"] == "4864"
    assert labels["mig.strategy"] == "single"
    assert labels["mig.capable"] == "true"
    assert labels["gpu.family"] == "ampere"


@pytest.mark.parametrize("layout", [[{"1g.5gb": 7}, {}], [{"1g.5gb": 7}, {"7g.40gb": 1}]])
def test_single_with_devices_of_several_kinds_is_labelled_invalid(layout):
    labels = gpu_labels(labels_of(a100(layout, gpus=2), Sharing.none(), "single"))
    assert {key: labels[f"gpu.{key}"] for key in ("product", "count", "replicas", "sharing-strategy", "memory")} == {
        "product": "NVIDIA-A100-SXM4-40GB-MIG-INVALID",
        "count": "0",
        "replicas": "0",
        "sharing-strategy": "",
        "memory": "0",
    }


def test_single_without_mig_devices_labels_the_board():
    labels = gpu_labels(labels_of(a100(None), Sharing.none(), "single"))
    assert labels["gpu.product"] == "NVIDIA-A100-SXM4-40GB"
    assert labels["gpu.memory"] == "40960"
    assert labels["mig.strategy"] == "single"


def test_the_memory_of_a_mig_device_is_left_out_where_it_was_not_measured():
    node = GpuNode(name="n", vram="40Gi", mig_layout={"1g.5gb": 7})
    assert "nvidia.com/gpu.memory" not in labels_of(node, Sharing.none(), "single")
    assert "nvidia.com/mig-1g.5gb.memory" not in labels_of(node, Sharing.none(), "mixed")


def test_under_mixed_each_profile_is_labelled_beside_the_board():
    sharing = Sharing.time_slicing(resources={"nvidia.com/mig-1g.5gb": 2})
    labels = gpu_labels(labels_of(a100({"1g.5gb": 2, "3g.20gb": 1}), sharing, "mixed"))
    assert {key: value for key, value in labels.items() if not key.startswith(("gpu.f", "gpu.compute"))} == {
        "gpu.present": "true",
        "gpu.product": "NVIDIA-A100-SXM4-40GB",
        "gpu.count": "1",
        "gpu.replicas": "0",
        "gpu.sharing-strategy": "none",
        "gpu.memory": "40960",
        "mig-1g.5gb.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED",
        "mig-1g.5gb.count": "2",
        "mig-1g.5gb.replicas": "2",
        "mig-1g.5gb.sharing-strategy": "time-slicing",
        "mig-1g.5gb.memory": "4864",
        "mig-3g.20gb.product": "NVIDIA-A100-SXM4-40GB-MIG-3g.20gb",
        "mig-3g.20gb.count": "1",
        "mig-3g.20gb.replicas": "1",
        "mig-3g.20gb.sharing-strategy": "none",
        "mig-3g.20gb.memory": "19968",
        "mig.strategy": "mixed",
        "mig.capable": "true",
        "mps.capable": "false",
    }


def test_boards_that_are_not_divided_decide_about_sharing():
    labels = gpu_labels(labels_of(a100([{"1g.5gb": 7}, {}], gpus=2), Sharing.time_slicing(replicas=4), "mixed"))
    assert (labels["gpu.product"], labels["gpu.replicas"], labels["gpu.count"]) == (
        "NVIDIA-A100-SXM4-40GB-SHARED",
        "4",
        "2",
    )


def test_attributes_of_a_profile_have_dots_in_labels():
    labels = labels_of(a100({"1g.5gb+me": 1}), Sharing.none(), "mixed")
    assert labels["nvidia.com/mig-1g.5gb.me.product"] == "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb.me"


def test_feature_discovery_gives_up_on_mps_with_mig():
    assert gpu_labels(labels_of(a100({"1g.5gb": 7}), Sharing.mps(replicas=2), "mixed")) == {"gpu.present": "true"}


@pytest.mark.parametrize(
    ("model", "capability"),
    [
        ("NVIDIA GeForce RTX 2080 SUPER", "7.5"),
        (A100, "8.0"),
        ("NVIDIA A10G", "8.6"),
        ("NVIDIA GeForce RTX 3090", "8.6"),
        ("NVIDIA L4", "8.9"),
        ("NVIDIA H200", "9.0"),
        ("NVIDIA B200", "10.0"),
        ("NVIDIA GB200", "10.0"),
        ("NVIDIA B300 SXM6 AC", "10.3"),
        (RTX, "12.0"),
    ],
)
def test_the_compute_capability_follows_from_the_board(model, capability):
    labels = gpu_labels(labels_of(GpuNode(name="n", gpu_model=model), Sharing.none()))
    assert f"{labels['gpu.compute.major']}.{labels['gpu.compute.minor']}" == capability


@pytest.mark.parametrize("model", GPU_MODELS)
def test_every_board_that_is_known_has_its_family_and_capability(model):
    labels = gpu_labels(labels_of(GpuNode(name="n", gpu_model=model), Sharing.none()))
    families = ("maxwell", "pascal", "volta", "turing", "ampere", "ada-lovelace", "hopper", "blackwell")
    assert labels["gpu.family"] in families
    assert "gpu.compute.major" in labels
    assert "gpu.compute.minor" in labels


def test_single_works_with_one_profile_on_every_board_only():
    assert single_profile([{"1g.5gb": 7}, {"1g.5gb": 2}]) == "1g.5gb"
    assert single_profile([{"1g.5gb": 7}, {}]) is None
    assert single_profile([{"1g.5gb": 1, "3g.20gb": 1}]) is None
    assert single_profile([{}]) is None
