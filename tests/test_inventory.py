import pytest

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.gpu_models import GPU_MODELS
from gpu_constructs.inventory import MIG_PROFILES, GpuInventory, GpuNode
from gpu_constructs.sharing import GPU, Sharing
from gpu_constructs.taint import Taint

ONE = GpuNode(name="one", gpu_model="RTX 3090")
POOL = GpuNode(name="pool", gpu_model="NVIDIA A100-SXM4-80GB", gpus=8, count=3)


def test_an_inventory_counts_the_gpus_of_all_nodes():
    assert GpuInventory(nodes=[ONE, POOL]).gpus == 25


def test_a_node_is_one_board_of_which_nobody_says_anything():
    node = GpuNode(name="a")
    assert (node.gpus, node.count, node.vram_mib, node.usable_vram_mib) == (1, 1, None, None)
    assert (node.sharing, node.mig_layout, node.layouts, node.mig_strategy) == (None, None, ({},), None)
    assert (node.labels, node.taints, node.power_limit, node.rack) == ({}, (), None, None)
    assert GpuInventory(nodes=[node]).rack_watts == {}


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


@pytest.mark.parametrize(("nodes", "is_single"), [([ONE], True), ([ONE, POOL], False)])
def test_an_inventory_tells_whether_every_node_has_one_gpu(nodes, is_single):
    assert GpuInventory(nodes=nodes).has_single_gpu_nodes_only is is_single


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


def test_the_largest_gpu_is_the_measure_of_an_inventory():
    assert GpuInventory(nodes=[ONE, POOL, GpuNode(name="dark")]).vram_mib == 81920
    assert GpuInventory(nodes=[GpuNode(name="dark")]).vram_mib is None


def test_a_board_has_the_profiles_of_its_memory_and_a_geforce_has_none():
    assert "1g.10gb" in (POOL.mig_profiles or ())
    assert "1g.5gb" not in (POOL.mig_profiles or ())
    assert ONE.mig_profiles == ()
    assert GpuNode(name="a", vram="24Gi").mig_profiles is None


def test_profiles_are_of_boards_that_are_known():
    assert MIG_PROFILES.keys() <= GPU_MODELS.keys()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {"gpu_model": "RTX 3091"},
            "gpu_node.gpu_model must be a board of gpu_models.GPU_MODELS; got 'RTX 3091' (did you mean 'NVIDIA GeForce "
            "RTX 3090' or 'NVIDIA GeForce RTX 3090 Ti'?); leave it out and pass vram='...' for another",
        ),
        ({"gpus": 0}, "gpu_node.gpus must be at least 1, got 0"),
        ({"gpus": -1}, "gpu_node.gpus must be at least 1, got -1"),
        ({"gpus": 1.5}, "gpu_node.gpus must be an int, got 1.5 (float)"),
        ({"gpus": True}, "gpu_node.gpus must be an int, got True (bool)"),
        ({"gpus": 129}, "gpu_node.gpus must be at most 128, got 129"),
        ({"count": 0}, "gpu_node.count must be at least 1, got 0"),
        ({"count": "2"}, "gpu_node.count must be an int, got '2' (str)"),
        ({"vram": "24"}, "gpu_node.vram must be at least 1Mi; got '24'; write the unit, as in '24Gi'"),
        ({"vram": "much"}, "gpu_node.vram must be a Kubernetes quantity like '500m' or '16Gi'; got 'much'"),
        ({"vram": 24}, "gpu_node.vram must be one of (str, None); got int: 24"),
        (
            {"gpu_model": "RTX 5070 Ti", "vram": "16Gi"},
            "gpu_node.vram must be at most the 16303Mi that NVIDIA GeForce RTX 5070 Ti has; got '16Gi'; leave it out, "
            "or pass '16303Mi'; leave gpu_model out for a board that differs",
        ),
        ({"vram_reserved": "500"}, "gpu_node.vram_reserved must be at least 1Mi; got '500'; write the unit"),
        ({"vram_reserved": "-1Gi"}, "gpu_node.vram_reserved must be a Kubernetes quantity"),
        (
            {"gpu_model": "RTX 3090", "vram_reserved": "24Gi"},
            "gpu_node.vram_reserved must be less than the 24576Mi that a board has; got '24Gi'",
        ),
        ({"sharing": "mps"}, "gpu_node.sharing must be one of (Sharing, None); got str: 'mps'"),
        ({"labels": {"a b": "c"}}, "gpu_node.labels has a key that is no label key; got 'a b'"),
        ({"labels": {"a": True}}, "gpu_node.labels['a'] must be str; got bool: True"),
        ({"labels": "a=b"}, "gpu_node.labels must be Mapping; got str: 'a=b'"),
        ({"taints": "nvidia.com/gpu"}, "gpu_node.taints must be a list, got 'nvidia.com/gpu' (str)"),
        ({"taints": [{"key": "a"}]}, "gpu_node.taints[0] must be Taint; got dict: {'key': 'a'}"),
        (
            {"taints": [Taint(), Taint(value="a")]},
            "gpu_node.taints must have each key once for an effect; got 'nvidia.com/gpu' with 'NoSchedule' twice",
        ),
        ({"power_limit": 0}, "gpu_node.power_limit must be at least 1, got 0"),
        ({"power_limit": 1.5}, "gpu_node.power_limit must be one of (int, None); got float: 1.5"),
        (
            {"gpu_model": "L4", "power_limit": 100},
            "gpu_node.power_limit must be watts that NVIDIA L4 takes (40 to 72 W); got 100",
        ),
        (
            {"gpu_model": "L4", "power_limit": 39},
            "gpu_node.power_limit must be watts that NVIDIA L4 takes (40 to 72 W)",
        ),
        ({"rack": " "}, "gpu_node.rack must be a name of printable characters; got ' '"),
        ({"mig_strategy": "none"}, "gpu_node.mig_strategy must be one of 'single', 'mixed'; got 'none'"),
        (
            {"mig_layout": "1g.5gb"},
            "gpu_node.mig_layout must be a mapping of profiles to numbers, or a list of such; got '1g.5gb'; write "
            "{'1g.5gb': 1}",
        ),
        (
            {"vram_reserved": "500Mi"},
            "gpu_node.vram_reserved is taken off the memory of a board, which is not known here; got '500Mi'; pass "
            "vram='...' too",
        ),
        ({"gpu_model": "RTX 3060", "vram_reserved": "0"}, "gpu_node.vram_reserved is taken off the memory of a board"),
        (
            {"gpu_model": "RTX 5070 Ti", "mig_strategy": "mixed"},
            "gpu_node.mig_strategy must be left out for NVIDIA GeForce RTX 5070 Ti, which has no MIG; got 'mixed'",
        ),
        ({"taints": Taint(key="a")}, "gpu_node.taints must be a list of Taint; got one alone; put it in a list: [...]"),
        (
            {"gpus": 2, "sharing": Sharing.vram_units(vram="24Gi")},
            "gpu_node.gpus must be 1 with Sharing.vram_units, since a pod may get units of several boards; got 2; use "
            "Sharing.time_slicing or Sharing.none",
        ),
        (
            {"gpu_model": "RTX 5070 Ti", "sharing": Sharing.vram_units(vram="24Gi")},
            "gpu_node.sharing must hand out no more than the 16303Mi that pods get of a board; got 24 units of 1Gi; "
            "pass vram='16303Mi' to Sharing.vram_units",
        ),
        (
            {"vram": "16Gi", "vram_reserved": "2Gi", "sharing": Sharing.vram_units(vram="16Gi")},
            "gpu_node.sharing must hand out no more than the 14336Mi that pods get of a board; got 16 units of 1Gi; "
            "pass vram='14336Mi' to Sharing.vram_units",
        ),
        (
            {"vram": "1Gi", "sharing": Sharing.vram_units(vram="2Gi")},
            "gpu_node.sharing must hand out no more than the 1024Mi that pods get of a board; got 2 units of 1Gi; take "
            "a smaller unit",
        ),
        (
            {"gpu_model": "A30", "mig_layout": {"1g.6gb": 2}, "sharing": Sharing.vram_units(vram="4Gi")},
            "gpu_node.mig_layout must be left out with Sharing.vram_units, which does not share MIG devices; use",
        ),
        ({"mig_layout": ["1g.5gb"]}, "gpu_node.mig_layout[0] must be Mapping; got str: '1g.5gb'"),
        ({"mig_layout": {"1g.5g": 1}}, "gpu_node.mig_layout must be a MIG profile of a board, like '1g.10gb'"),
        ({"mig_layout": {"1g.5gb": 0}}, "gpu_node.mig_layout['1g.5gb'] must be at least 1, got 0"),
        (
            {"mig_layout": [{}, {"1g.5gb": 1}]},
            "gpu_node.mig_layout must be one mapping, or one for each of the node's 1 boards; got 2; write {} for a "
            "board that is not divided",
        ),
        (
            {"gpus": 3, "mig_layout": [{}, {"1g.5gb": 1}]},
            "gpu_node.mig_layout must be one mapping, or one for each of the node's 3 boards; got 2",
        ),
        (
            {"gpu_model": "A100-SXM4-80GB", "mig_layout": {"1g.5gb": 1}},
            "gpu_node.mig_layout must be devices that the board can be divided into; got {'1g.5gb': 1}: NVIDIA "
            "A100-SXM4-80GB has no '1g.5gb': it has 1g.10gb, 1g.20gb, 2g.20gb, 3g.40gb, 4g.40gb, 7g.80gb",
        ),
        (
            {"gpus": 2, "gpu_model": "A100-SXM4-40GB", "mig_layout": [{}, {"1g.5gb": 8}]},
            "gpu_node.mig_layout[1] must be devices that the board can be divided into; got {'1g.5gb': 8}: it takes 8 "
            "compute slices, and NVIDIA A100-SXM4-40GB has 7",
        ),
        (
            {"mig_layout": {"1g.5gb": 1}, "sharing": Sharing.mps(replicas=2)},
            "gpu_node.mig_layout must be left out with Sharing.mps, which does not share MIG devices",
        ),
        (
            {"mig_layout": {"1g.5gb": 1, "2g.10gb": 1}, "mig_strategy": "single"},
            "gpu_node.mig_layout must divide every board into devices of one profile with mig_strategy 'single'; got "
            "'1g.5gb' and '2g.10gb', of which the device plugin advertises none; use 'mixed'",
        ),
        (
            {"gpus": 2, "mig_layout": [{"1g.5gb": 1}, {}], "mig_strategy": "single"},
            "gpu_node.mig_layout must divide every board into devices of one profile with mig_strategy 'single'; got "
            "'1g.5gb' beside boards that are not divided",
        ),
        ({"name": "No Name"}, "gpu_node.name must be a DNS subdomain"),
        ({"gpu": 1}, "gpu is no member of GpuNode (did you mean 'gpus'?)"),
    ],
)
def test_a_node_that_cannot_be_is_refused(given, problem):
    with pytest.raises(GpuConstructsError) as refused:
        GpuNode(**{"name": "a", **given})
    assert str(refused.value).startswith(problem)


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


def test_units_of_all_the_memory_that_pods_get_are_taken():
    node = GpuNode(name="a", vram="16Gi", vram_reserved="2Gi", sharing=Sharing.vram_units(vram="14Gi"))
    assert node.sharing.replicas == 14


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


def test_two_effects_of_one_key_are_two_taints():
    assert len(GpuNode(name="a", taints=[Taint(), Taint(effect="NoExecute")]).taints) == 2


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {"rack_watts": {"r2": 4000}},
            "gpu_inventory.rack_watts must name racks of nodes; got 'r2'; say rack= of the nodes",
        ),
        ({"rack_watts": {"r1": 0}}, "gpu_inventory.rack_watts['r1'] must be at least 1, got 0"),
        ({"rack_watts": {"r1": "4000"}}, "gpu_inventory.rack_watts['r1'] must be int; got str: '4000'"),
        ({"nodes": "a"}, "gpu_inventory.nodes must be a list, got 'a' (str)"),
        ({"nodes": [{"name": "a"}]}, "gpu_inventory.nodes[0] must be GpuNode; got dict: {'name': 'a'}"),
        ({"racks": {}}, "racks is no member of GpuInventory (did you mean 'rack_watts'?)"),
    ],
)
def test_an_inventory_that_cannot_be_is_refused(given, problem):
    with pytest.raises(GpuConstructsError) as refused:
        GpuInventory(**{"nodes": [GpuNode(name="a", rack="r1")], **given})
    assert str(refused.value).startswith(problem)


def test_an_inventory_has_nodes_and_each_name_once():
    with pytest.raises(GpuConstructsError, match="must hold at least one GpuNode; got none"):
        GpuInventory(nodes=[])
    with pytest.raises(GpuConstructsError, match="got 'one' twice; use count= for nodes that are alike"):
        GpuInventory(nodes=[ONE, ONE])
