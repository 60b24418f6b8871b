import pytest

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.gpu_models import GPU_MODELS
from gpu_constructs.inventory import MIG_PROFILES, GpuInventory, GpuNode
from gpu_constructs.sharing import GPU, Sharing

ONE = GpuNode(name="one", gpu_model="RTX 3090")
POOL = GpuNode(name="pool", gpu_model="NVIDIA A100-SXM4-80GB", gpus=8, count=3)


def test_an_inventory_counts_the_gpus_of_all_nodes():
    assert GpuInventory(nodes=[ONE, POOL]).gpus == 25


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
            "gpu_node.gpu_model must be a board of gpu_models.GPU_MODELS; got 'RTX 3091'",
        ),
        ({"gpus": 0}, "gpu_node.gpus must be at least 1, got 0"),
        ({"count": 0}, "gpu_node.count must be at least 1, got 0"),
        ({"vram": "24"}, "gpu_node.vram must be at least 1Mi; got '24'; write the unit, as in '24Gi'"),
        ({"vram": "much"}, "gpu_node.vram must be a Kubernetes quantity like '500m' or '16Gi'; got 'much'"),
        ({"name": "No Name"}, "gpu_node.name must be a DNS subdomain"),
        ({"gpu": 1}, "gpu is no member of GpuNode (did you mean 'gpus'?)"),
    ],
)
def test_a_node_that_cannot_be_is_refused(given, problem):
    with pytest.raises(GpuConstructsError) as refused:
        GpuNode(**{"name": "a", **given})
    assert str(refused.value).startswith(problem)


def test_a_model_that_is_not_known_is_refused_with_the_nearest():
    with pytest.raises(GpuConstructsError, match=r"did you mean 'NVIDIA H200'\?\); leave it out and pass vram="):
        GpuNode(name="a", gpu_model="NVIDIA H201")


def test_an_inventory_has_nodes_and_each_name_once():
    with pytest.raises(GpuConstructsError, match="must hold at least one GpuNode; got none"):
        GpuInventory(nodes=[])
    with pytest.raises(GpuConstructsError, match="got 'one' twice; use count= for nodes that are alike"):
        GpuInventory(nodes=[ONE, ONE])
