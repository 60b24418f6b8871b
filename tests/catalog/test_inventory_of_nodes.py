"""An inventory read from the nodes of a running cluster."""

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
    with pytest.raises(GpuConstructsError, match=r"nodes must be a file of JSON .*; got '.*': No such file"):
        GpuInventory.from_nodes(tmp_path / "other.json")


def test_what_the_operator_takes_off_a_node_for_a_while_is_not_kept():
    found = read(
        node(
            allocatable={"gpu": 1},
            gpu_deploy_device__plugin="paused-for-driver-upgrade",
            gpu_deploy_dcgm="false",
            **gpu(RTX_3090, 1),
        )
    )
    assert {key for key in found.labels if ".deploy." in key} == {"nvidia.com/gpu.deploy.dcgm"}


def test_a_strategy_that_is_told_of_a_board_without_mig_is_none():
    assert read(node(allocatable={"gpu": 1}, mig_strategy="single", **gpu(RTX_3090, 1))).mig_strategy is None


def test_a_node_without_sharing_has_its_boards():
    found = read(node(allocatable={"gpu": 2}, **gpu(RTX_3090, 2, memory=24576), gpu_family="ampere"))
    assert (found.name, found.gpu_model, found.gpus, found.count) == ("talos-1", "NVIDIA GeForce RTX 3090", 2, 1)
    assert (found.vram, found.vram_mib, found.sharing) == (None, 24576, Sharing.none())
    assert (found.mig_layout, found.mig_strategy) == (None, None)
    assert found.labels["nvidia.com/gpu.family"] == "ampere"
    assert found.labels["kubernetes.io/hostname"] == "talos-1"


@cases
def test_slots_are_no_boards(labels, allocatable, sharing):
    found = read(node(allocatable=allocatable, **labels))
    assert (found.gpus, found.gpu_model, found.sharing) == (1, "NVIDIA GeForce RTX 3090", sharing)


def test_under_single_the_devices_are_the_count_and_the_product_tells_the_profile():
    labels = gpu(f"{A100}-MIG-1g.5gb", 14, memory=4864) | {"mig_strategy": "single"}
    found = read(node(allocatable={"gpu": 14}, **labels))
    assert (found.gpu_model, found.gpus, found.vram_mib) == ("NVIDIA A100-SXM4-40GB", 2, 40960)
    assert found.layouts == ({"1g.5gb": 7},) * 2
    assert (found.mig_strategy, found.sharing) == ("single", Sharing.none())


def test_what_devices_under_single_leave_open_is_told():
    labels = gpu(f"{A100}-MIG-3g.20gb", 3) | {"mig_strategy": "single"}
    with pytest.warns(GpuConstructsWarning, match=r"node 'talos-1' has 3 MIG devices of '3g\.20gb' and no label says"):
        (found,) = inventory(node(allocatable={"gpu": 3}, **labels)).nodes
    assert found.layouts == ({"3g.20gb": 2}, {"3g.20gb": 1})


@pytest.mark.parametrize("suffix", ["1g.5gb.me", "1g.24gb-me"])
def test_attributes_of_a_profile_are_kept(suffix):
    found = read(node(allocatable={"gpu": 1}, **gpu(f"Board-MIG-{suffix}", 1), mig_strategy="single"))
    assert found.layouts == ({suffix.replace("gb.", "gb+"): 1},)
    assert (found.gpu_model, found.vram) == (None, None)


def test_an_invalid_division_is_left_out_with_a_warning():
    bad = node("bad", **gpu(f"{A100}-MIG-INVALID", 0, 0, "", memory=0), mig_strategy="single")
    good = node("good", {"gpu": 1}, **gpu(RTX_3090, 1))
    with pytest.warns(GpuConstructsWarning, match=r"node 'bad' is left out: .*MIG-INVALID"):
        assert [one.name for one in inventory(bad, good).nodes] == ["good"]


def test_under_mixed_devices_are_spread_evenly_where_that_can_be():
    labels = gpu(A100, 2, 0, memory=40960) | {"mig_strategy": "mixed"}
    labels |= mig("1g.5gb", 4, f"{A100}-MIG-1g.5gb") | mig("3g.20gb", 2, f"{A100}-MIG-3g.20gb")
    found = read(node(allocatable={"mig-1g.5gb": 4, "mig-3g.20gb": 2}, **labels))
    assert found.layouts == ({"1g.5gb": 2, "3g.20gb": 1},) * 2
    assert (found.gpus, found.mig_strategy, found.sharing) == (2, "mixed", Sharing.none())


def test_devices_that_go_on_no_board_evenly_are_spread_so_that_each_can_hold_its_own():
    labels = gpu(A100, 3, 0) | {"mig_strategy": "mixed"}
    labels |= mig("4g.20gb", 1, "x") | mig("2g.10gb", 3, "x") | mig("1g.5gb", 7, "x") | mig("1g.10gb", 1, "x")
    allocatable = {"mig-4g.20gb": 1, "mig-2g.10gb": 3, "mig-1g.5gb": 7, "mig-1g.10gb": 1}
    found = read(node(allocatable=allocatable, **labels))
    spread = [(profile, count) for layout in found.layouts for profile, count in layout.items()]
    assert {p: sum(n for q, n in spread if q == p) for p, _ in spread} == {
        "4g.20gb": 1,
        "2g.10gb": 3,
        "1g.5gb": 7,
        "1g.10gb": 1,
    }


def test_boards_that_are_not_divided_are_beside_those_that_are():
    labels = gpu(A100, 3, 1) | {"mig_strategy": "mixed"} | mig("7g.40gb", 1, f"{A100}-MIG-7g.40gb")
    found = read(node(allocatable={"gpu": 2, "mig-7g.40gb": 1}, **labels))
    assert found.layouts == ({"7g.40gb": 1}, {}, {})


def test_whole_boards_and_devices_are_shared_each_in_its_way():
    labels = gpu(f"{A100}-SHARED", 2, 4, "time-slicing") | {"mig_strategy": "mixed"}
    labels |= mig("1g.5gb", 7, f"{A100}-MIG-1g.5gb-SHARED", 2, "time-slicing")
    found = read(node(allocatable={"gpu": 4, "mig-1g.5gb": 14}, **labels))
    assert found.layouts == ({"1g.5gb": 7}, {})
    assert found.sharing == Sharing.time_slicing(resources={"nvidia.com/gpu": 4, "nvidia.com/mig-1g.5gb": 2})


def test_devices_that_their_boards_cannot_hold_are_refused():
    labels = gpu(A100, 1, 0) | {"mig_strategy": "mixed"} | mig("4g.20gb", 2, "x")
    assert refusal(inventory, node(allocatable={"mig-4g.20gb": 2}, **labels)) == (
        "node 'talos-1': mig_layout must be devices that the boards can be divided into; got 2 x '4g.20gb' for 1 x "
        "NVIDIA A100-SXM4-40GB; wait until GPU Feature Discovery has looked again, or describe the node as a GpuNode"
    )


def test_a_board_that_is_not_known_has_the_memory_that_the_label_says():
    found = read(node(allocatable={"gpu": 1}, **gpu("NVIDIA-Something-New", 1, memory=99999)))
    assert (found.gpu_model, found.vram_mib) == (None, 99999)


@pytest.mark.parametrize(("label", "mib"), [(46068, 46068), (49140, 49140), (51200, 49140), ("many", 49140)])
def test_memory_that_a_board_reports_less_of_than_is_known_counts(label, mib):
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


@pytest.mark.parametrize(
    ("allocatable", "offered", "promised"),
    [({"gpu": 4}, "4 of nvidia.com/gpu", 5), ({}, "0 of nvidia.com/gpu", 5), ({"gpu": 1}, "1 of nvidia.com/gpu", 5)],
)
def test_a_node_that_offers_less_than_its_labels_say_is_told(allocatable, offered, promised):
    labels = gpu(f"{RTX_3090}-SHARED", 1, 5, "time-slicing")
    with pytest.warns(GpuConstructsWarning, match=f"node 'talos-1' offers {offered}, but its labels say {promised}; "):
        (found,) = inventory(node(allocatable=allocatable, **labels)).nodes
    assert found.sharing == Sharing.time_slicing(replicas=5)


def test_without_feature_discovery_resources_tell_the_boards():
    found = read(node(allocatable={"gpu": 3}))
    assert (found.gpus, found.gpu_model, found.vram_mib, found.sharing) == (3, None, None, Sharing.none())
    divided = read(node(allocatable={"gpu": 1, "mig-1g.5gb": 7, "mig-7g.40gb": 1}))
    assert divided.layouts == ({"7g.40gb": 1}, {"1g.5gb": 7}, {})


def test_slots_of_a_number_of_boards_that_nobody_says_are_taken_for_one():
    with pytest.warns(GpuConstructsWarning, match=r"advertises 8 of nvidia\.com/gpu\.shared, and no label says"):
        (found,) = inventory(node(allocatable={"gpu.shared": 8})).nodes
    assert (found.gpus, found.sharing) == (1, Sharing.time_slicing(replicas=8, rename_by_default=True))


def test_json_that_is_nested_too_deep_is_refused():
    assert refusal(GpuInventory.from_nodes, "[" * 100_000).startswith("nodes must be JSON; got text that is none: ")


def test_what_is_no_list_of_nodes_with_gpus_is_refused(rows):
    for given, says in rows:
        assert refusal(GpuInventory.from_nodes, given) == says


@pytest.mark.parametrize("part", ["metadata", "spec", "status"])
@pytest.mark.parametrize(
    "wrong", [None, 3, "text", [None], {"labels": 3, "taints": [3], "allocatable": [], "name": "a"}]
)
def test_a_node_of_another_shape_is_no_crash(part, wrong):
    odd = {**node("odd", {"gpu": 1}, **gpu(RTX_3090, 1)), part: wrong}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            inventory(odd, node("good", {"gpu": 1}))
        except GpuConstructsError:
            assert part == "metadata"


def test_many_boards_that_cannot_hold_their_devices_are_told_soon():
    counts = {"4g.20gb": 8, "3g.20gb": 9, "2g.10gb": 9, "1g.5gb": 5, "1g.10gb": 20}
    labels = gpu(A100, 16, 0) | {key: value for p, n in counts.items() for key, value in mig(p, n, "x").items()}
    with pytest.raises(GpuConstructsError, match=r"mig_layout must be devices that the boards can be divided into"):
        inventory(node(allocatable={f"mig-{p}": n for p, n in counts.items()}, **labels))
