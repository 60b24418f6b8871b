from gpu_constructs.capacity.node_labels import labels_of
from gpu_constructs.catalog.inventory import GpuNode
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.feature_discovery import manifests as nfd
from gpu_constructs.feature_discovery.node_feature_discovery import NfdWorker, NodeFeatureDiscovery

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


def test_labels_of_pci_devices_are_those_that_the_discovery_publishes():
    for discovery in [None, nfd.published_labels(NodeFeatureDiscovery(worker=NfdWorker(config=OF_CLASS_AND_VENDOR)))]:
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


def test_sharing_shows_in_the_labels():
    for sharing, product, replicas, strategy, mps in [
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
    ]:
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


def test_under_single_the_board_is_labelled_as_its_mig_devices():
    for sharing, product, replicas in [
        (Sharing.none(), "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "1"),
        (Sharing.time_slicing(replicas=2), "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED", "2"),
        (Sharing.time_slicing(replicas=2, rename_by_default=True), "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "2"),
    ]:
        labels = gpu_labels(labels_of(a100({"1g.5gb": 7}, gpus=2), sharing, "single"))
        assert labels["gpu.product"] == product
        assert labels["gpu.replicas"] == replicas
        assert labels["gpu.count"] == "14"
        assert labels["gpu.memory"] == "4864"
        assert labels["mig.strategy"] == "single"
        assert labels["mig.capable"] == "true"
        assert labels["gpu.family"] == "ampere"


def test_single_with_devices_of_several_kinds_is_labelled_invalid():
    for layout in [[{"1g.5gb": 7}, {}], [{"1g.5gb": 7}, {"7g.40gb": 1}]]:
        labels = gpu_labels(labels_of(a100(layout, gpus=2), Sharing.none(), "single"))
        assert {
            key: labels[f"gpu.{key}"] for key in ("product", "count", "replicas", "sharing-strategy", "memory")
        } == {
            "product": "NVIDIA-A100-SXM4-40GB-MIG-INVALID",
            "count": "0",
            "replicas": "0",
            "sharing-strategy": "",
            "memory": "0",
        }


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


def test_feature_discovery_gives_up_on_mps_with_mig():
    assert gpu_labels(labels_of(a100({"1g.5gb": 7}), Sharing.mps(replicas=2), "mixed")) == {"gpu.present": "true"}


def test_the_compute_capability_follows_from_the_board():
    for model, capability in [
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
    ]:
        labels = gpu_labels(labels_of(GpuNode(name="n", gpu_model=model), Sharing.none()))
        assert f"{labels['gpu.compute.major']}.{labels['gpu.compute.minor']}" == capability
