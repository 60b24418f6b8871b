import pytest

from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.catalog.sharing import GPU, Sharing
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube.placement import Taint

ONE = GpuNode(name="one", gpu_model="RTX 3090")
POOL = GpuNode(name="pool", gpu_model="NVIDIA A100-SXM4-80GB", gpus=8, count=3)


def refusal(make, **given):
    with pytest.raises(GpuConstructsError) as refused:
        make(**given)
    return str(refused.value)


def test_what_was_given_is_kept_and_cannot_be_changed_from_outside():
    labels, taints, layout, watts = {"a": "b"}, [Taint()], {"1g.5gb.me": 1}, {"r1": 4000}
    node = GpuNode(name="a", labels=labels, taints=taints, mig_layout=layout, power_limit=300, rack="r1")
    inventory = GpuInventory(nodes=[node], rack_watts=watts)
    for given in (labels, layout, watts):
        given["c"] = 1
    taints.append(Taint(key="b"))
    assert (node.labels, node.taints, node.layouts) == ({"a": "b"}, (Taint(),), ({"1g.5gb+me": 1},))
    assert (node.power_limit, inventory.rack_watts) == (300, {"r1": 4000})


def test_a_layout_is_of_every_board_or_each_board_has_its_own():
    alike = GpuNode(name="a", gpu_model="A100-SXM4-40GB", gpus=2, mig_layout={"3g.20gb": 2})
    assert alike.layouts == ({"3g.20gb": 2},) * 2
    own = GpuNode(name="a", gpu_model="A100-SXM4-40GB", gpus=2, mig_layout=[{"3g.20gb": 2}, {}])
    assert own.layouts == ({"3g.20gb": 2}, {})
    assert GpuNode(name="a", mig_layout={}).layouts == ({},)


@pytest.mark.parametrize(
    ("reserved", "usable"), [(None, 24576), ("0", 24576), ("500Mi", 24076), ("1Gi", 23552), ("1500k", 24574)]
)
def test_pods_get_what_is_not_reserved(reserved, usable):
    assert GpuNode(name="a", vram="24Gi", vram_reserved=reserved).usable_vram_mib == usable


@pytest.mark.parametrize(
    ("sharing", "slots"),
    [
        (Sharing.none(), 25),
        (Sharing.time_slicing(replicas=4), 100),
        (Sharing.time_slicing(replicas=4, rename_by_default=True), 100),
        (Sharing.time_slicing(resources={"nvidia.com/mig-1g.5gb": 2}), 25),
    ],
)
def test_slots_are_gpus_times_the_replicas_of_the_sharing(sharing, slots):
    assert GpuInventory(nodes=[ONE, POOL]).slots(sharing) == slots
    assert sharing.resources.get(GPU, 1) * 25 == slots


def test_slots_are_those_of_each_node_where_it_says_its_own():
    own = GpuNode(name="own", gpu_model="RTX 3090", sharing=Sharing.time_slicing(replicas=2))
    divided = GpuNode(name="mig", gpu_model="NVIDIA A100-SXM4-80GB", mig_layout={"1g.10gb": 7})
    assert GpuInventory(nodes=[ONE, own]).slots(Sharing.time_slicing(replicas=4)) == 6
    assert GpuInventory(nodes=[divided]).slots(Sharing.none()) == 7


@pytest.mark.parametrize(
    ("node", "mib"),
    [
        (ONE, 24576),
        (GpuNode(name="a", vram="24Gi"), 24576),
        (GpuNode(name="a", gpu_model="RTX 3090", vram="23Gi"), 23552),
        (GpuNode(name="a", gpu_model="NVIDIA GeForce RTX 5060 Ti"), None),
        (GpuNode(name="a", gpu_model="NVIDIA GeForce RTX 5060 Ti", vram="16311Mi"), 16311),
        (GpuNode(name="a"), None),
    ],
)
def test_memory_is_what_was_given_else_what_is_known_of_the_model(node, mib):
    assert node.vram_mib == mib


REFUSED_NODES = [
    {"gpu_model": "RTX 3091"},
    {"gpus": 0},
    {"gpus": -1},
    {"gpus": 1.5},
    {"gpus": True},
    {"gpus": 129},
    {"count": 0},
    {"count": "2"},
    {"vram": "24"},
    {"vram": "much"},
    {"vram": 24},
    {"gpu_model": "RTX 5070 Ti", "vram": "16Gi"},
    {"vram_reserved": "500"},
    {"vram_reserved": "-1Gi"},
    {"gpu_model": "RTX 3090", "vram_reserved": "24Gi"},
    {"sharing": "mps"},
    {"labels": {"a b": "c"}},
    {"labels": {"a": True}},
    {"labels": "a=b"},
    {"taints": "nvidia.com/gpu"},
    {"taints": [{"key": "a"}]},
    {"taints": [Taint(), Taint(value="a")]},
    {"power_limit": 0},
    {"power_limit": 1.5},
    {"gpu_model": "L4", "power_limit": 100},
    {"gpu_model": "L4", "power_limit": 39},
    {"rack": " "},
    {"mig_strategy": "none"},
    {"mig_layout": "1g.5gb"},
    {"vram_reserved": "500Mi"},
    {"gpu_model": "RTX 3060", "vram_reserved": "0"},
    {"gpu_model": "RTX 5070 Ti", "mig_strategy": "mixed"},
    {"taints": Taint(key="a")},
    {"gpus": 2, "sharing": Sharing.vram_units(vram="24Gi")},
    {"gpu_model": "RTX 5070 Ti", "sharing": Sharing.vram_units(vram="24Gi")},
    {"vram": "16Gi", "vram_reserved": "2Gi", "sharing": Sharing.vram_units(vram="16Gi")},
    {"vram": "1Gi", "sharing": Sharing.vram_units(vram="2Gi")},
    {"gpu_model": "A30", "mig_layout": {"1g.6gb": 2}, "sharing": Sharing.vram_units(vram="4Gi")},
    {"mig_layout": ["1g.5gb"]},
    {"mig_layout": {"1g.5g": 1}},
    {"mig_layout": {"1g.5gb": 0}},
    {"mig_layout": [{}, {"1g.5gb": 1}]},
    {"gpus": 3, "mig_layout": [{}, {"1g.5gb": 1}]},
    {"gpu_model": "A100-SXM4-80GB", "mig_layout": {"1g.5gb": 1}},
    {"gpus": 2, "gpu_model": "A100-SXM4-40GB", "mig_layout": [{}, {"1g.5gb": 8}]},
    {"mig_layout": {"1g.5gb": 1}, "sharing": Sharing.mps(replicas=2)},
    {"mig_layout": {"1g.5gb": 1, "2g.10gb": 1}, "mig_strategy": "single"},
    {"gpus": 2, "mig_layout": [{"1g.5gb": 1}, {}], "mig_strategy": "single"},
    {"name": "No Name"},
    {"gpu": 1},
]


def test_a_node_that_cannot_be_is_refused(snapshot):
    """The messages, one a row of REFUSED_NODES, are in the snapshot."""
    assert "\n".join(refusal(GpuNode, **{"name": "a", **given}) for given in REFUSED_NODES) == snapshot


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("NVIDIA H201", "'NVIDIA H200'"),
        ("rtx 3091", "'NVIDIA GeForce RTX 3090' or 'NVIDIA GeForce RTX 3090 Ti'"),
        ("A100 40GB", "'NVIDIA A100-PCIE-40GB' or 'NVIDIA A100-SXM4-40GB'"),
        ("H100", "'NVIDIA H100 80GB HBM3' or 'NVIDIA H100 NVL' or 'NVIDIA H100 PCIe'"),
        ("RTX 5070TI", "'NVIDIA GeForce RTX 5070 Ti' or 'NVIDIA GeForce RTX 5060 Ti'"),
    ],
)
def test_a_model_that_is_not_known_is_refused_with_the_nearest(name, near):
    with pytest.raises(GpuConstructsError) as refused:
        GpuNode(name="a", gpu_model=name)
    assert f"got {name!r} (did you mean {near}?); leave it out and pass vram=" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("rtx 4090", "NVIDIA GeForce RTX 4090"),
        ("NVIDIA RTX 4090", "NVIDIA GeForce RTX 4090"),
        ("NVIDIA-GeForce-RTX-4090", "NVIDIA GeForce RTX 4090"),
        ("GeForce RTX 4090", "NVIDIA GeForce RTX 4090"),
        ("NVIDIA-H100-80GB-HBM3", "NVIDIA H100 80GB HBM3"),
        ("t4", "Tesla T4"),
    ],
)
def test_a_model_is_known_in_every_spelling(name, model):
    assert GpuNode(name="a", gpu_model=name).model.name == model


def test_one_node_alone_is_no_list_of_nodes():
    with pytest.raises(GpuConstructsError) as refused:
        GpuInventory(nodes=GpuNode(name="a"))
    assert str(refused.value) == (
        "gpu_inventory.nodes must be a list of GpuNode; got one alone; put it in a list: [...]"
    )


def test_slots_of_a_node_that_was_only_seen_are_those_of_the_app():
    seen = GpuInventory(nodes=[GpuNode(name="a", sharing=Sharing.time_slicing(replicas=4), is_observed=True)])
    assert seen.slots(Sharing.time_slicing(replicas=2)) == 2


@pytest.mark.parametrize("name", ["", "NVIDIA", "Radeon"])
def test_a_name_that_is_near_none_gets_none(name):
    with pytest.raises(GpuConstructsError, match=rf"got '{name}'; leave it out"):
        GpuNode(name="a", gpu_model=name)


def test_watts_at_the_ends_of_the_range_are_taken():
    assert GpuNode(name="a", gpu_model="L4", power_limit=40).power_limit == 40
    assert GpuNode(name="a", gpu_model="L4", power_limit=72).power_limit == 72
    assert GpuNode(name="a", gpu_model="RTX 5070 Ti", power_limit=2000).power_limit == 2000


REFUSED_INVENTORIES = [
    {"rack_watts": {"r2": 4000}},
    {"rack_watts": {"r1": 0}},
    {"rack_watts": {"r1": "4000"}},
    {"nodes": "a"},
    {"nodes": [{"name": "a"}]},
    {"racks": {}},
]


def test_an_inventory_that_cannot_be_is_refused(snapshot):
    """The messages, one a row of REFUSED_INVENTORIES, are in the snapshot."""
    assert (
        "\n".join(
            refusal(GpuInventory, **{"nodes": [GpuNode(name="a", rack="r1")], **given}) for given in REFUSED_INVENTORIES
        )
        == snapshot
    )


def test_an_inventory_has_nodes_and_each_name_once():
    with pytest.raises(GpuConstructsError, match="must hold at least one GpuNode; got none"):
        GpuInventory(nodes=[])
    with pytest.raises(GpuConstructsError, match="got 'one' twice; use count= for nodes that are alike"):
        GpuInventory(nodes=[ONE, ONE])
