import pytest

from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.catalog.sharing import GPU, Sharing
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube.placement import Taint
from refusals import refusal
from tables import cases

ONE = GpuNode(name="one", gpu_model="RTX 3090")
POOL = GpuNode(name="pool", gpu_model="NVIDIA A100-SXM4-80GB", gpus=8, count=3)


def test_later_changes_of_the_arguments_have_no_effect():
    labels, taints, layout, watts = {"a": "b"}, [Taint()], {"1g.5gb.me": 1}, {"r1": 4000}
    node = GpuNode(name="a", labels=labels, taints=taints, mig_layout=layout, power_limit=300, rack="r1")
    inventory = GpuInventory(nodes=[node], rack_watts=watts)
    for given in (labels, layout, watts):
        given["c"] = 1
    taints.append(Taint(key="b"))
    assert (node.labels, node.taints, node.layouts) == ({"a": "b"}, (Taint(),), ({"1g.5gb+me": 1},))
    assert (node.power_limit, inventory.rack_watts) == (300, {"r1": 4000})


def test_a_layout_applies_to_all_boards_or_each_board_has_its_own():
    alike = GpuNode(name="a", gpu_model="A100-SXM4-40GB", gpus=2, mig_layout={"3g.20gb": 2})
    assert alike.layouts == ({"3g.20gb": 2},) * 2
    own = GpuNode(name="a", gpu_model="A100-SXM4-40GB", gpus=2, mig_layout=[{"3g.20gb": 2}, {}])
    assert own.layouts == ({"3g.20gb": 2}, {})
    assert GpuNode(name="a", mig_layout={}).layouts == ({},)


@cases
def test_pods_can_use_the_memory_that_is_not_reserved(reserved, usable):
    assert GpuNode(name="a", vram="24Gi", vram_reserved=reserved).usable_vram_mib == usable


@cases
def test_slots_are_gpus_times_the_replicas_of_the_sharing(sharing, slots):
    assert GpuInventory(nodes=[ONE, POOL]).slots(sharing) == slots
    assert sharing.resources.get(GPU, 1) * 25 == slots


def test_a_node_with_its_own_sharing_has_the_slots_of_that_sharing():
    own = GpuNode(name="own", gpu_model="RTX 3090", sharing=Sharing.time_slicing(replicas=2))
    divided = GpuNode(name="mig", gpu_model="NVIDIA A100-SXM4-80GB", mig_layout={"1g.10gb": 7})
    assert GpuInventory(nodes=[ONE, own]).slots(Sharing.time_slicing(replicas=4)) == 6
    assert GpuInventory(nodes=[divided]).slots(Sharing.none()) == 7


@cases
def test_memory_is_the_given_one_or_that_of_the_model(node, mib):
    assert node.vram_mib == mib


def test_an_impossible_node_is_rejected(rows):
    for given, says in rows:
        assert refusal(GpuNode, **{"name": "a", **given}) == says


@cases
def test_an_unknown_model_is_rejected_with_a_suggestion(name, near):
    said = refusal(GpuNode, name="a", gpu_model=name)
    assert f"got {name!r} (did you mean {near}?). For another board, pass vram=" in said


@cases
def test_a_model_is_known_in_every_spelling(name, model):
    assert GpuNode(name="a", gpu_model=name).model.name == model


def test_a_single_node_is_not_a_list_of_nodes():
    assert refusal(GpuInventory, nodes=GpuNode(name="a")) == (
        "gpu_inventory.nodes must be a list of GpuNode, got a single one. Put it in a list: [...]"
    )


def test_an_observed_node_has_the_slots_of_the_app():
    seen = GpuInventory(nodes=[GpuNode(name="a", sharing=Sharing.time_slicing(replicas=4), is_observed=True)])
    assert seen.slots(Sharing.time_slicing(replicas=2)) == 2


@pytest.mark.parametrize("name", ["", "NVIDIA", "Radeon"])
def test_a_name_without_a_similar_one_gets_no_suggestion(name):
    with pytest.raises(GpuConstructsError, match=rf"got '{name}'. For another board"):
        GpuNode(name="a", gpu_model=name)


def test_watts_at_the_ends_of_the_range_are_accepted():
    assert GpuNode(name="a", gpu_model="L4", power_limit=40).power_limit == 40
    assert GpuNode(name="a", gpu_model="L4", power_limit=72).power_limit == 72
    assert GpuNode(name="a", gpu_model="RTX 5070 Ti", power_limit=2000).power_limit == 2000


def test_an_impossible_inventory_is_rejected(rows):
    for given, says in rows:
        assert refusal(GpuInventory, **{"nodes": [GpuNode(name="a", rack="r1")], **given}) == says


def test_an_inventory_has_nodes_with_different_names():
    with pytest.raises(GpuConstructsError, match="must have at least one GpuNode, got none"):
        GpuInventory(nodes=[])
    with pytest.raises(GpuConstructsError, match=r"got 'one' twice\. Use count= for equal nodes"):
        GpuInventory(nodes=[ONE, ONE])
