from __future__ import annotations

import pytest

from gpu_constructs.capacity.planner import plan
from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.facts.app import Facts

BOARD = "NVIDIA GeForce RTX 5070 Ti"
SLICED = Sharing.time_slicing(replicas=5)


def pods(name, vram=None, replicas=1, gpus=1, resource="nvidia.com/gpu", **spec):
    container = {"name": "c", "resources": {"limits": {resource: gpus}}}
    annotations = {} if vram is None else {"gpu-constructs/vram": vram}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "ml", "annotations": annotations},
        "spec": {
            "replicas": replicas,
            "strategy": {"type": "Recreate"},
            "template": {"spec": {"containers": [container], **spec}},
        },
    }


def node(name="n", **given):
    return GpuNode(**{"name": name, "gpu_model": BOARD, "sharing": Sharing.none(), **given})


def advised(manifests, *nodes):
    inventory = GpuInventory(nodes=nodes)
    return list(plan(Facts(manifests, (), inventory), inventory).advice)


UNITS = "share it by Sharing.vram_units(vram='16303Mi')"
KEEPS = "the scheduler then keeps the sum of budgets within the board, 15 units of 1Gi"


@pytest.mark.parametrize(
    ("manifests", "nodes", "advice"),
    [
        pytest.param(
            [pods("a", "6Gi"), pods("b", "12Gi"), pods("c", "3Gi")],
            [node(sharing=SLICED)],
            f"n: {UNITS}: {KEEPS}; ml/a 6 + ml/b 12 units wait for each other; pods then ask for units: ml/a 6, ml/b "
            "12, ml/c 3 (GpuRequest(vram=...) under that profile does so); what always runs takes 21 of the 15 units, "
            "so some of it stays Pending: give it less memory, or another GPU",
            id="memory",
        ),
        pytest.param([pods("a", "8Gi"), pods("b", "4Gi")], [node()], f"n: {UNITS}: {KEEPS}", id="slots"),
        pytest.param([pods("a"), pods("b")], [node()], "n: share it by Sharing.time_slicing(replicas=2): ", id="turns"),
        pytest.param(
            [pods("a", replicas=9)],
            [node(name) for name in "abcde"],
            "a, b, c and 2 more: share it by Sharing.time_slicing(replicas=2): ",
            id="nodes that are alike",
        ),
        pytest.param(
            [pods("a", "10Gi", 2)],
            [node(gpus=2, sharing=Sharing.time_slicing(replicas=2))],
            "n: give each pod a GPU of its own with Sharing.none(): 2 pods ask for GPUs at once and the cluster has 2",
            id="alone",
        ),
        pytest.param(
            [pods("a", "8Gi", 3), pods("b", "38Gi")],
            [node(gpus=2, gpu_model="NVIDIA A100-SXM4-40GB", sharing=Sharing.time_slicing(replicas=3))],
            "n: divide it by MIG with mig_layout=",
            id="MIG",
        ),
    ],
)
def test_where_something_does_not_fit_another_way_of_sharing_is_advised(manifests, nodes, advice):
    (text,) = advised(manifests, *nodes)
    assert text.startswith(advice)
    assert not text.endswith(".")


@pytest.mark.parametrize(
    ("manifests", "nodes"),
    [
        pytest.param([], [node()], id="nothing asks"),
        pytest.param([pods("a", "8Gi"), pods("b", "4Gi")], [node(sharing=SLICED)], id="all fits"),
        pytest.param(
            [pods("a", "8Gi", 3, gpus=8)], [node(sharing=Sharing.vram_units(vram="16303Mi"))], id="it is so already"
        ),
        pytest.param(
            [pods("a", "6Gi"), pods("b", "12Gi"), pods("c", "3Gi")],
            [node(sharing=Sharing.vram_units(vram="16303Mi"))],
            id="memory is counted already",
        ),
        pytest.param(
            [pods("a", "8Gi"), pods("b", "12Gi"), pods("c")],
            [node(sharing=SLICED)],
            id="one does not say what it takes",
        ),
        pytest.param([pods("a", replicas=10**6)], [node()], id="nobody takes so many turns"),
        pytest.param([pods("a"), pods("b", "20Gi")], [node(sharing=SLICED)], id="who says nothing is not counted"),
        pytest.param([pods("a", "8Gi"), pods("b", "12Gi")], [node(sharing=SLICED)], id="too few GPUs for each its own"),
        pytest.param([pods("a", nodeSelector={"zone": "z"})], [node()], id="no node takes it"),
        pytest.param([pods("a", gpus=2), pods("b", gpus=2)], [node(gpus=2)], id="several GPUs each"),
        pytest.param(
            [pods("a", resource="nvidia.com/mig-1g.5gb", replicas=9)],
            [node(gpu_model="NVIDIA A100-SXM4-40GB", mig_layout={"1g.5gb": 7}, mig_strategy="mixed")],
            id="divided already",
        ),
    ],
)
def test_otherwise_nothing_is_advised(manifests, nodes):
    assert advised(manifests, *nodes) == []


def test_what_an_update_lacks_is_said_with_the_advice():
    rolling = pods("a", "9Gi")
    del rolling["spec"]["strategy"]
    (text,) = advised([rolling, pods("b", "4Gi")], node())
    assert text.startswith(f"n: {UNITS}: {KEEPS}; pods then ask for units: ml/a 9, ml/b 4 ")
    assert "; an update of ml/a finds no place for a new pod beside the old one: " in text


def test_a_job_whose_pods_queue_is_no_reason_to_share():
    job = {**pods("j", replicas=1), "apiVersion": "batch/v1", "kind": "Job"}
    job["spec"] = {"parallelism": 16, "completions": 16, "template": job["spec"]["template"]}
    assert advised([job], node()) == []


def test_a_training_gets_no_advice_to_share_its_board():
    replica = {"replicas": 1, "template": pods("t", "2Gi")["spec"]["template"]}
    training = {
        **pods("t", "2Gi"),
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "spec": {"pytorchReplicaSpecs": {"Master": replica, "Worker": replica}},
    }
    assert advised([training], node()) == []


def test_only_the_first_few_are_said():
    nodes = [
        node(f"n{number}", vram=f"{9 + number}Gi", gpu_model=None, labels={"zone": f"z{number}"}) for number in range(6)
    ]
    manifests = [pods(f"p{number}", "2Gi", 2, nodeSelector={"zone": f"z{number}"}) for number in range(6)]
    assert [text.partition(":")[0] for text in advised(manifests, *nodes)] == ["n0", "n1", "n2"]


def test_of_a_whole_fleet_nothing_is_advised():
    nodes = [node(f"n{number}") for number in range(400)]
    assert advised([pods(f"p{number}") for number in range(401)], *nodes) == []
