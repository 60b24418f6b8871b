"""Inventories from the nodes of a running cluster."""

import json
import warnings

import pytest

from gpu_constructs.catalog.inventory import GpuInventory
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.errors import GpuConstructsError, GpuConstructsWarning
from gpu_constructs.kube.placement import Taint
from refusals import refusal
from tables import cases

RTX_3090 = "NVIDIA-GeForce-RTX-3090"
A100 = "NVIDIA-A100-SXM4-40GB"


def node(name="talos-1", allocatable=None, taints=None, unschedulable=None, **labels):
    spec = {"taints": taints, "unschedulable": unschedulable}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **of_gfd(labels)}},
        "spec": {key: value for key, value in spec.items() if value is not None},
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", **of_gfd(allocatable or {})}},
    }


def of_gfd(values):
    return {f"nvidia.com/{key.replace('__', '-').replace('_', '.')}": str(value) for key, value in values.items()}


def gpu(product, count, replicas=1, strategy="none", memory=None):
    given = {"gpu_product": product, "gpu_count": count, "gpu_replicas": replicas, "gpu_sharing__strategy": strategy}
    return given | ({} if memory is None else {"gpu_memory": memory})


def mig(profile, count, product, replicas=1, strategy="none"):
    of = {"count": count, "product": product, "replicas": replicas, "sharing__strategy": strategy}
    return {f"mig__{profile}_{key}": value for key, value in of.items()}


def inventory(*nodes):
    return GpuInventory.from_nodes({"apiVersion": "v1", "kind": "List", "items": list(nodes)})


def read(*nodes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (found,) = inventory(*nodes).nodes
    return found


def test_a_file_is_read_too(tmp_path):
    path = tmp_path / "nodes.json"
    path.write_text(json.dumps({"kind": "List", "items": [node(allocatable={"gpu": 1}, **gpu(RTX_3090, 1))]}))
    assert GpuInventory.from_nodes(path).nodes[0].name == "talos-1"
    with pytest.raises(GpuConstructsError, match=r"nodes must be a readable JSON file, got '.*': No such file"):
        GpuInventory.from_nodes(tmp_path / "other.json")


def test_labels_of_paused_operator_components_are_dropped():
    found = read(
        node(
            allocatable={"gpu": 1},
            gpu_deploy_device__plugin="paused-for-driver-upgrade",
            gpu_deploy_dcgm="false",
            **gpu(RTX_3090, 1),
        )
    )
    assert {key for key in found.labels if ".deploy." in key} == {"nvidia.com/gpu.deploy.dcgm"}


def test_the_mig_strategy_of_a_board_without_mig_is_ignored():
    assert read(node(allocatable={"gpu": 1}, mig_strategy="single", **gpu(RTX_3090, 1))).mig_strategy is None


def test_a_node_without_sharing_has_its_boards():
    found = read(node(allocatable={"gpu": 2}, **gpu(RTX_3090, 2, memory=24576), gpu_family="ampere"))
    assert (found.name, found.gpu_model, found.gpus, found.count) == ("talos-1", "NVIDIA GeForce RTX 3090", 2, 1)
    assert (found.vram, found.vram_mib, found.sharing) == (None, 24576, Sharing.none())
    assert (found.mig_layout, found.mig_strategy) == (None, None)
    assert found.labels["nvidia.com/gpu.family"] == "ampere"
    assert found.labels["kubernetes.io/hostname"] == "talos-1"


@cases
def test_slots_are_not_boards(labels, allocatable, sharing):
    found = read(node(allocatable=allocatable, **labels))
    assert (found.gpus, found.gpu_model, found.sharing) == (1, "NVIDIA GeForce RTX 3090", sharing)


def test_with_single_the_count_is_that_of_devices_and_the_product_states_the_profile():
    labels = gpu(f"{A100}-MIG-1g.5gb", 14, memory=4864) | {"mig_strategy": "single"}
    found = read(node(allocatable={"gpu": 14}, **labels))
    assert (found.gpu_model, found.gpus, found.vram_mib) == ("NVIDIA A100-SXM4-40GB", 2, 40960)
    assert found.layouts == ({"1g.5gb": 7},) * 2
    assert (found.mig_strategy, found.sharing) == ("single", Sharing.none())


def test_an_uncertain_number_of_boards_with_single_is_a_warning():
    labels = gpu(f"{A100}-MIG-3g.20gb", 3) | {"mig_strategy": "single"}
    with pytest.warns(
        GpuConstructsWarning, match=r"node 'talos-1' has 3 MIG devices of '3g\.20gb', and no label states"
    ):
        (found,) = inventory(node(allocatable={"gpu": 3}, **labels)).nodes
    assert found.layouts == ({"3g.20gb": 2}, {"3g.20gb": 1})


@pytest.mark.parametrize("suffix", ["1g.5gb.me", "1g.24gb-me"])
def test_attributes_of_a_profile_are_kept(suffix):
    found = read(node(allocatable={"gpu": 1}, **gpu(f"Board-MIG-{suffix}", 1), mig_strategy="single"))
    assert found.layouts == ({suffix.replace("gb.", "gb+"): 1},)
    assert (found.gpu_model, found.vram) == (None, None)


def test_an_invalid_mig_layout_is_ignored_with_a_warning():
    bad = node("bad", **gpu(f"{A100}-MIG-INVALID", 0, 0, "", memory=0), mig_strategy="single")
    good = node("good", {"gpu": 1}, **gpu(RTX_3090, 1))
    with pytest.warns(GpuConstructsWarning, match=r"node 'bad' is ignored: .*MIG-INVALID"):
        assert [one.name for one in inventory(bad, good).nodes] == ["good"]


def test_with_mixed_devices_are_spread_evenly_if_possible():
    labels = gpu(A100, 2, 0, memory=40960) | {"mig_strategy": "mixed"}
    labels |= mig("1g.5gb", 4, f"{A100}-MIG-1g.5gb") | mig("3g.20gb", 2, f"{A100}-MIG-3g.20gb")
    found = read(node(allocatable={"mig-1g.5gb": 4, "mig-3g.20gb": 2}, **labels))
    assert found.layouts == ({"1g.5gb": 2, "3g.20gb": 1},) * 2
    assert (found.gpus, found.mig_strategy, found.sharing) == (2, "mixed", Sharing.none())


def test_devices_that_cannot_be_even_are_spread_so_that_they_fit(expected):
    labels = gpu(A100, 3, 0) | {"mig_strategy": "mixed"}
    labels |= mig("4g.20gb", 1, "x") | mig("2g.10gb", 3, "x") | mig("1g.5gb", 7, "x") | mig("1g.10gb", 1, "x")
    allocatable = {"mig-4g.20gb": 1, "mig-2g.10gb": 3, "mig-1g.5gb": 7, "mig-1g.10gb": 1}
    found = read(node(allocatable=allocatable, **labels))
    spread = [(profile, count) for layout in found.layouts for profile, count in layout.items()]
    assert {p: sum(n for q, n in spread if q == p) for p, _ in spread} == expected


def test_boards_without_mig_are_listed_after_those_with_mig():
    labels = gpu(A100, 3, 1) | {"mig_strategy": "mixed"} | mig("7g.40gb", 1, f"{A100}-MIG-7g.40gb")
    found = read(node(allocatable={"gpu": 2, "mig-7g.40gb": 1}, **labels))
    assert found.layouts == ({"7g.40gb": 1}, {}, {})


def test_whole_boards_and_mig_devices_have_their_own_sharing():
    labels = gpu(f"{A100}-SHARED", 2, 4, "time-slicing") | {"mig_strategy": "mixed"}
    labels |= mig("1g.5gb", 7, f"{A100}-MIG-1g.5gb-SHARED", 2, "time-slicing")
    found = read(node(allocatable={"gpu": 4, "mig-1g.5gb": 14}, **labels))
    assert found.layouts == ({"1g.5gb": 7}, {})
    assert found.sharing == Sharing.time_slicing(resources={"nvidia.com/gpu": 4, "nvidia.com/mig-1g.5gb": 2})


def test_devices_that_do_not_fit_on_the_boards_are_rejected():
    labels = gpu(A100, 1, 0) | {"mig_strategy": "mixed"} | mig("4g.20gb", 2, "x")
    assert refusal(inventory, node(allocatable={"mig-4g.20gb": 2}, **labels)) == (
        "node 'talos-1': mig_layout must be MIG devices that fit on the boards, got 2 x '4g.20gb' on 1 x NVIDIA "
        "A100-SXM4-40GB. The node labels can be old. Wait for their next update, or describe the node as a GpuNode"
    )


def test_an_unknown_board_has_the_memory_in_the_label():
    found = read(node(allocatable={"gpu": 1}, **gpu("NVIDIA-Something-New", 1, memory=99999)))
    assert (found.gpu_model, found.vram_mib) == (None, 99999)


@pytest.mark.parametrize(("label", "mib"), [(46068, 46068), (49140, 49140), (51200, 49140), ("many", 49140)])
def test_a_label_with_less_memory_than_the_model_applies(label, mib):
    assert read(node(allocatable={"gpu": 1}, **gpu("NVIDIA-RTX-A6000", 1, memory=label))).vram_mib == mib


def test_a_node_that_takes_no_pods_keeps_its_taints():
    not_ready = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
    own = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    found = read(node(allocatable={"gpu": 1}, taints=[own, not_ready], unschedulable=True, **gpu(RTX_3090, 1)))
    assert found.taints == (
        Taint(value="present"),
        Taint(key="node.kubernetes.io/not-ready", effect="NoExecute"),
        Taint(key="node.kubernetes.io/unschedulable"),
    )


def test_nodes_without_gpus_are_left_out():
    found = inventory(node("control-plane"), node("gpu", {"gpu": 1}, **gpu(RTX_3090, 1)), node("none", {"gpu": 0}))
    assert [one.name for one in found.nodes] == ["gpu"]


@cases
def test_a_node_that_advertises_less_than_its_labels_state_is_a_warning(allocatable, offered, promised):
    labels = gpu(f"{RTX_3090}-SHARED", 1, 5, "time-slicing")
    with pytest.warns(
        GpuConstructsWarning, match=f"node 'talos-1' advertises {offered}, but its labels state {promised}, "
    ):
        (found,) = inventory(node(allocatable=allocatable, **labels)).nodes
    assert found.sharing == Sharing.time_slicing(replicas=5)


def test_without_feature_discovery_resources_determine_the_boards():
    found = read(node(allocatable={"gpu": 3}))
    assert (found.gpus, found.gpu_model, found.vram_mib, found.sharing) == (3, None, None, Sharing.none())
    divided = read(node(allocatable={"gpu": 1, "mig-1g.5gb": 7, "mig-7g.40gb": 1}))
    assert divided.layouts == ({"7g.40gb": 1}, {"1g.5gb": 7}, {})


def test_slots_of_an_unknown_number_of_boards_count_as_one_board():
    with pytest.warns(GpuConstructsWarning, match=r"advertises 8 of nvidia\.com/gpu\.shared, and no label states"):
        (found,) = inventory(node(allocatable={"gpu.shared": 8})).nodes
    assert (found.gpus, found.sharing) == (1, Sharing.time_slicing(replicas=8, rename_by_default=True))


def test_json_that_is_too_deep_is_rejected():
    assert refusal(GpuInventory.from_nodes, "[" * 100_000).startswith("nodes must be JSON, got other text: ")


def test_a_value_that_is_not_a_list_of_gpu_nodes_is_rejected(rows):
    for given, says in rows:
        assert refusal(GpuInventory.from_nodes, given) == says


@pytest.mark.parametrize("part", ["metadata", "spec", "status"])
@cases
def test_a_node_with_a_wrong_structure_does_not_crash(part, wrong):
    odd = {**node("odd", {"gpu": 1}, **gpu(RTX_3090, 1)), part: wrong}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            inventory(odd, node("good", {"gpu": 1}))
        except GpuConstructsError:
            assert part == "metadata"


def test_the_search_for_impossible_layouts_gives_up():
    counts = {"4g.20gb": 8, "3g.20gb": 9, "2g.10gb": 9, "1g.5gb": 5, "1g.10gb": 20}
    labels = gpu(A100, 16, 0) | {key: value for p, n in counts.items() for key, value in mig(p, n, "x").items()}
    with pytest.raises(GpuConstructsError, match=r"mig_layout must be MIG devices that fit on the boards"):
        inventory(node(allocatable={f"mig-{p}": n for p, n in counts.items()}, **labels))
