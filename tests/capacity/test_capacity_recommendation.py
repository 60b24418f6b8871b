import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depth import at_depth
from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.recommendation import SharingRecommendation, recommend_sharing
from gpu_constructs.capacity.vram import worst_mib
from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.catalog.platforms import Kubernetes, Talos
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.errors import GpuConstructsError

GIB = 1024
ONE_5070_TI = GpuInventory(nodes=[GpuNode(name="home", gpu_model="RTX 5070 Ti")])
TWO_3090 = GpuInventory(nodes=[GpuNode(name="tower", gpu_model="RTX 3090", gpus=2)])
ONE_A100 = GpuInventory(nodes=[GpuNode(name="rack", gpu_model="NVIDIA A100-SXM4-40GB")])


def pods(name, gib=None, *, copies=1, ends=False, gpus=1, resource="nvidia.com/gpu", **more):
    return Consumer(
        subject=0,
        kind="Job" if ends else "Deployment",
        namespace="ai",
        name=name,
        asks={resource: gpus},
        pod_spec=more.pop("pod_spec", {}),
        copies=copies,
        least_copies=0 if ends else copies,
        vram_mib=None if gib is None else int(gib * GIB),
        **more,
    )


SEED = [
    pods("ollama", 8),
    pods("comfyui", 12),
    pods("notebook", 4),
    pods("train", 4, ends=True),
    pods("katib", 2, ends=True),
]


def deployment(name, *, vram=None, replicas=1, gpus=1, **spec):
    annotations = {} if vram is None else {"annotations": {"gpu-constructs/vram": vram}}
    container = {"name": "app", "image": "app:1", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "ai", **annotations},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}},
        },
    }


def only(inventory, workloads, **keywords):
    (found,) = recommend_sharing(inventory, workloads, **keywords)
    return found


def said(found, words):
    return any(words in reason for reason in found.reasons)


def shares(found):
    """Return the sharing in a few words, or how the boards are divided."""
    sharing = found.sharing
    if found.mode == "exclusive":
        return "alone"
    if found.mode == "mig":
        return str(found.mig_layout)
    unit = f" of {sharing.vram_unit}" if sharing.vram_unit else ""
    return f"{sharing.strategy} x {sharing.replicas}{unit}{' renamed' if sharing.rename_by_default else ''}"


def gang(name, *parts, gib=None, copies=1, **more):
    return [
        pods(name, gib, part=part, pods_each=number, is_gang=True, copies=copies, ends=True, **more)
        for part, number in parts
    ]


def node(model=None, **more):
    return GpuInventory(nodes=[GpuNode(name="n", gpu_model=model, **more)])


BOARDS = {
    "5070": ONE_5070_TI,
    "2x3090": TWO_3090,
    "3090": node("RTX 3090"),
    "A100": ONE_A100,
    "2xA100": node("NVIDIA A100-SXM4-40GB", gpus=2),
    "B300": node("NVIDIA B300 SXM6 AC"),
    "dark": node(),
    "vram=24Gi": node(vram="24Gi"),
    "5070-1Gi": node("RTX 5070 Ti", vram_reserved="1Gi"),
    "5070 in units": node("RTX 5070 Ti", sharing=Sharing.vram_units(vram="16303Mi")),
    "9 nodes": node("RTX 3090", gpus=2, count=9),
}
GROUPS = {
    "SEED": SEED,
    "RANKS": gang("train", ("Master", 1), ("Worker", 1), gib=2),
    "ONE-RANK": gang("train", ("Worker", 1), gib=2, copies=3),
    "MAY-START": gang("train", ("Worker", 4), gib=2, starts_with=2),
    "EACH": [pods("each", 2, copies=0, is_for_each_node=True)],
}
KEYWORDS = {
    "": {},
    "isolated": {"isolation": True},
    "mps": {"trusted_cuda_services": True, "platform": Kubernetes()},
    "mps on Talos": {"trusted_cuda_services": True, "platform": Talos("1.12")},
}
WORD = re.compile(r"(?P<name>[a-z]+)(:(?P<gib>[0-9.]+))?([*](?P<copies>[0-9]+))?(@(?P<gpus>[0-9]+))?(?P<more>[~^%]*)")
# Boards; pods as name:GiB*copies@GPUs, ~ for those that end, ^ for those with a surge, % for renamed slots; keywords;
# how the boards are shared; words of the reasons, those behind a ! not among them.
TABLE = """
# Budgets on one GPU are added up by the scheduler, in units no larger than the smallest of them.
5070 | a:8 b:7 c:1~ | | time-slicing x 15 of 1Gi | !Pending
5070 | a:8 b:0.5 | | time-slicing x 31 of 512Mi
5070 | a:8 b:0.01 c:0.01 | | time-slicing x 127 of 128Mi
5070 | a:15.5 b:1 c:1 | | time-slicing x 31 of 512Mi
5070-1Gi | SEED | | time-slicing x 14 of 1Gi
B300 | a:100 b:100 c:8 | | time-slicing x 134 of 2Gi
5070 | a:15.9~ b:1*2 | | time-slicing x 3
3090 | a:12 b:11.9 | | time-slicing x 24 of 1Gi
5070 | a:7.9*2 | | time-slicing x 15 of 1Gi
# Who says nothing of memory gets a turn and a warning.
5070 | a*5 | | time-slicing x 5 | has 1: 5 replicas | cannot be told: state GpuRequest(vram=...)
5070 | SEED new | | time-slicing x 6 | ai/new says nothing of memory
dark | SEED | | time-slicing x 5 | the memory of the board is not known | pass vram= for the node
# What does not go together in any pair gets GPUs of its own.
5070 | a:8 b:12 c:9 | | alone | each of them takes half of the 16303 MiB of an NVIDIA GeForce RTX 5070 Ti or more
5070 | a:8 b:12 c:9 | | alone | a node holds 1 of them at a time, and 2 that may come to it wait
5070 | a:12 b:12 c:5 d:14 | | alone | no two of them go together: even the smallest, 5 + 12 GiB, are more than the 16303
3090 | a:12 b:12 | | alone
5070 | a:7.99*2 | | alone
2x3090 | a:2 b | | alone | there are GPUs enough without sharing
# Turns on several GPUs, as many as memory and what lasts allow.
2x3090 | a:12 b:2 c:2*3 | | time-slicing x 3 | hold the 3 largest budgets, 12 + 2 + 2 GiB, together
2x3090 | a:11*4 b:4*3~ | | time-slicing x 2 | the 2 largest budgets, 11 + 11 GiB, together; 3 of them could take 33792
2x3090 | a:11*4 b:4*3~ | | time-slicing x 2 | a node holds 4 of them at a time, and 3 that may come to it wait
2x3090 | a:11*4 b:4*2 | | time-slicing x 3 | may run out: the 3 largest that may meet take 33792 MiB, 137 % of the 24576
2x3090 | a:11*9 | | time-slicing x 2 | 24576 MiB hold no more than 2 even of the smallest, 11 GiB each
2x3090 | a:20 b:8 c:8 | | time-slicing x 2 | memory may run out | not to be had of the device plugin: take MIG, DRA
2x3090 | a:20 b:8 c:8~ | | alone | the two largest, 20 + 8 GiB, are more than the 24576 MiB
2x3090 | a@2 b:2 c:2 | | alone | 3 pods ask for 4 GPUs at once | several slots are not several GPUs
2x3090 | a@2 b@2 | | alone
# MIG for mixed needs and for pods that must be kept apart.
2xA100 | a:38 b:4*3 | | ({}, {'1g.5gb': 3}) | a whole GPU on 1 of 2 boards; 3 x 1g.5gb on 1 of 2 | ai/a should ask for
A100 | a:4.5 b:4.9 c:15 | isolated | {'3g.20gb': 1, '1g.10gb': 1, '1g.5gb': 1} | ai/b should ask for nvidia.com/mig-1g.
A100 | a:15~ b:15 c:4*5 | isolated | {'3g.20gb': 1, '1g.5gb': 4} | a node lacks 1 x nvidia.com/mig-3g.20gb, 1 x nvidia
A100 | a*7 | isolated | {'1g.5gb': 7}
A100 | a*2 | isolated | {'3g.20gb': 2}
A100 | a*3 | isolated | {'2g.10gb': 3}
A100 | a*2^ | isolated | {'2g.10gb': 3} | !an update
2xA100 | a:30^ b*3 | isolated | ({}, {'2g.10gb': 3}) | an update of ai/a finds no place
A100 | a:30 b:4 | isolated | alone | those that take whole boards leave none to divide
A100 | a:30 b:30 | isolated | alone
5070 | a:4 b:4 | isolated | alone | has no MIG | a node holds 1 of them at a time, and 1 that may come to it waits
vram=24Gi | a:4 b:4 | isolated | alone | is not known to have MIG
# MPS, and why not.
5070 | a:2*6 | mps | mps x 6 | MPS holds each to 2717 of the 16303 MiB
5070 | a:2*6 | mps on Talos | time-slicing x 15 of 1Gi | it is untested on Talos 1.12
5070 | SEED | mps | time-slicing x 15 of 1Gi | it would hold each of 5 clients to 3260 MiB, and the largest takes 12288
5070 | a:0.1*49 | mps | time-slicing x 127 of 128Mi | it serves 48 clients of a GPU, and 49 may meet there
5070 | a b | mps | time-slicing x 2 | ai/a, ai/b say nothing of memory
vram=24Gi | a:2*6 | mps | time-slicing x 24 of 1Gi | it takes Volta or newer
# An update needs a turn more, or is said to need Recreate.
5070 | a^ b^ | | time-slicing x 3 | !Recreate
5070 | a:4^ | | alone | an update of ai/a finds no place for a new pod beside the old one: write strategy.type 'Recreat
5070 | a:6^ b:6 | | time-slicing x 15 of 1Gi | an update of ai/a finds no place
2x3090 | a:11*2^ b:11*2 | | time-slicing x 2 | an update of ai/a finds no place
A100 | a:20^ b:20 | | alone | what always runs wants 2 places of a node that has 1, so some of it stays Pending
2x3090 | a:4^ | | alone | !an update
5070 | a:4^ b:4 | | time-slicing x 15 of 1Gi | !an update
A100 | a:9^ b:4.5*4 | isolated | {'1g.10gb': 2, '1g.5gb': 4} | !an update
A100 | a:9^ b:4.5*5 | isolated | {'1g.10gb': 1, '1g.5gb': 5} | an update of ai/a finds no place
2x3090 | a:13^ b:2 c:2~ | | alone | the two largest, 13 + 13 GiB, are more than the 24576 MiB
# What may queue makes no turns; what runs together never shares a GPU.
5070 | q*16~ b | | time-slicing x 2 | a node holds 2 of them at a time, and 15 that may come to it wait: ai/q may queue
5070 | q*16~ | | alone | 15 that may come to it wait: ai/q may queue
2x3090 | RANKS | | alone
2x3090 | RANKS a:2 b:2 | | alone | the pods of ai/train Master, ai/train Worker run together and want a GPU each
5070 | RANKS a:4 b:4 | | time-slicing x 15 of 1Gi | ai/train Worker is left out here: its 2 pods run together and want
5070 | ONE-RANK a:4 | | time-slicing x 15 of 1Gi
2x3090 | MAY-START | | alone | !left out
5070 | MAY-START | | alone | left out
# What a request means.
5070 | SEED huge:30 | | time-slicing x 15 of 1Gi | ai/huge is left out here: each of its pods takes 30720 MiB, and an N
5070 in units | a:8@8 b:4@4 | | time-slicing x 15 of 1Gi
5070 | a:8@8 b:4 | | alone | each of its pods asks for 8 GPUs, and a node has 1 GPU
5070 | a% b% | | time-slicing x 2 renamed
9 nodes | EACH a:2*18 | | time-slicing x 2
9 nodes | EACH | | alone
"""


def consumers_of(words):
    for word in words.split():
        if word in GROUPS:
            yield from GROUPS[word]
            continue
        one = WORD.fullmatch(word)
        given = {key: int(one[key]) for key in ("copies", "gpus") if one[key]}
        if "^" in one["more"]:
            given |= {"surge": 1, "surge_is_needed": True}
        if "%" in one["more"]:
            given["resource"] = "nvidia.com/gpu.shared"
        yield pods(one["name"], one["gib"] and float(one["gib"]), ends="~" in one["more"], **given)


def test_boards_are_shared_as_what_runs_there_needs():
    for row in (line for line in TABLE.splitlines() if line and not line.startswith("#")):
        boards, words, keywords, shared, *says = (cell.strip() for cell in row.split("|"))
        found = only(BOARDS[boards], list(consumers_of(words)), **KEYWORDS[keywords])
        assert shares(found) == shared, row
        for each in says:
            assert said(found, each.removeprefix("!")) != each.startswith("!"), (row, found.reasons)


def test_budgets_on_one_gpu_are_added_up_by_the_scheduler():
    assert only(ONE_5070_TI, SEED) == SharingRecommendation(
        node="home",
        mode="vram-units",
        sharing=Sharing.vram_units(vram="16303Mi", unit="1Gi"),
        reasons=(
            "5 pods ask for GPUs at once and the cluster has 1",
            "the scheduler then keeps the sum of budgets within the board, 15 units of 1Gi; ai/ollama 8 + ai/comfyui "
            "12 units, ai/comfyui 12 + ai/notebook 4 units, ai/comfyui 12 + ai/train 4 units wait for each other",
            "pods then ask for units: ai/ollama 8, ai/comfyui 12, ai/notebook 4, ai/train 4, ai/katib 2 "
            "(GpuRequest(vram=...) under that profile does so)",
            "what always runs takes 24 of the 15 units, so some of it stays Pending: give it less memory, or another "
            "GPU",
        ),
        workloads=("ai/ollama", "ai/comfyui", "ai/notebook", "ai/train", "ai/katib"),
        pods_at_once=3,
    )


def test_many_small_needs_of_many_nodes_do_not_each_take_a_device_of_every_node():
    inventory = GpuInventory(nodes=[GpuNode(name="rack", gpu_model="NVIDIA A100-SXM4-40GB", gpus=2, count=10)])
    workloads = [*(pods(f"big{number}", 30) for number in range(10)), *(pods(f"b{number}", 4) for number in range(50))]
    found = only(inventory, workloads, isolation=True)
    assert found.mig_layout == ({}, {"1g.5gb": 5})
    assert not said(found, "lacks")


# Boards that are divided already


HOME = GpuNode(name="home", gpu_model="RTX 4090")
A100 = "NVIDIA A100-SXM4-80GB"


def divided(layout, strategy="mixed", *, name="rack", **more):
    return GpuNode(name=name, gpu_model=A100, mig_layout=layout, mig_strategy=strategy, **more)


def halves(name, **more):
    return pods(name, resource="nvidia.com/mig-3g.40gb", **more)


def test_a_board_that_is_divided_already_is_no_gpu_for_who_asks_for_one():
    inventory = GpuInventory(nodes=[HOME, divided({"3g.40gb": 2}, None)])
    home, rack = recommend_sharing(inventory, [pods("a", 8), pods("b", 8), halves("c", copies=2)])
    assert (home.mode, home.pods_at_once, home.workloads) == ("vram-units", 2, ("ai/a", "ai/b"))
    assert home.reasons[0] == "2 pods ask for GPUs at once and the nodes that take them have 1"
    assert (rack.mode, rack.sharing, rack.mig_layout) == ("mig", Sharing.none(), {"3g.40gb": 2})
    assert (rack.workloads, rack.pods_at_once) == (("ai/c",), 2)
    assert rack.reasons == (
        "the inventory divides it: with the MIG strategy 'mixed', an NVIDIA A100-SXM4-80GB gives 2 x 3g.40gb",
        "ai/a is left out here: it asks for nvidia.com/gpu, and a node, divided as it is, has 2 x "
        "nvidia.com/mig-3g.40gb",
        "ai/b is left out here: it asks for nvidia.com/gpu, and a node, divided as it is, has 2 x "
        "nvidia.com/mig-3g.40gb",
    )


def test_a_profile_that_the_layout_lacks_is_never_asked_for():
    small = pods("small", resource="nvidia.com/mig-1g.10gb")
    found = only(GpuInventory(nodes=[divided({"3g.40gb": 2})]), [halves("c"), small, pods("d", 4)], isolation=True)
    assert (found.mig_layout, found.workloads) == ({"3g.40gb": 2}, ("ai/c",))
    assert said(found, "ai/small is left out here: it asks for nvidia.com/mig-1g.10gb, and a node, divided as it is")
    assert not said(found, "should ask for")


def test_devices_of_the_strategy_single_are_gpus_of_their_own_memory():
    found = only(
        GpuInventory(nodes=[divided({"3g.40gb": 2}, "single", count=2)]),
        [pods("a", 30, copies=4), pods("b", 30, ends=True), pods("big", 60), halves("c")],
    )
    assert (found.mode, found.mig_layout, found.pods_at_once) == ("mig", {"3g.40gb": 2}, 2)
    assert found.workloads == ("ai/a", "ai/b")
    assert said(found, "with the MIG strategy 'single'")
    assert said(found, "a node lacks 1 x nvidia.com/gpu for pods that may come to it")
    assert said(found, "ai/big is left out here: each of its pods takes 61440 MiB, and a MIG device of")
    assert said(found, "ai/c is left out here: it asks for nvidia.com/mig-3g.40gb")


def test_a_board_beside_divided_ones_is_a_gpu_still():
    inventory = GpuInventory(nodes=[divided([{}, {"3g.40gb": 1, "2g.20gb": 2}], gpus=2)])
    found = only(inventory, [pods("a", 60), halves("c", surge=1, surge_is_needed=True)])
    assert found.mig_layout == ({}, {"3g.40gb": 1, "2g.20gb": 2})
    assert (found.workloads, found.pods_at_once) == (("ai/a", "ai/c"), 2)
    assert said(found, "an update of ai/c finds no place")
    assert not said(found, "lacks")
    assert said(only(inventory, [pods("a", 60, copies=2)]), "a node lacks 1 x nvidia.com/gpu")


def test_a_divided_board_that_nothing_asks_for_keeps_its_devices():
    home, rack = recommend_sharing(GpuInventory(nodes=[HOME, divided({"3g.40gb": 2})]), [pods("a", 8)])
    assert home.mode == "exclusive"
    assert (rack.mode, rack.mig_layout, rack.pods_at_once) == ("mig", {"3g.40gb": 2}, 0)
    assert said(rack, "none of the workloads goes on its nodes")


def test_a_pod_with_several_devices_gets_all_or_none():
    inventory = GpuInventory(nodes=[GpuNode(name="n", gpu_model="NVIDIA A30", gpus=2)])
    found = only(inventory, [pods("a", copies=3, gpus=3, resource="nvidia.com/mig-1g.6gb")])
    assert (found.mig_layout, found.pods_at_once) == (({"1g.6gb": 4}, {"1g.6gb": 2}), 2)


def test_budgets_that_are_known_are_compared_where_another_is_not():
    inventory = GpuInventory(nodes=[GpuNode(name="home", gpu_model="RTX 5070 Ti"), GpuNode(name="dark")])
    home, dark = recommend_sharing(inventory, [pods("a", 12), pods("b", 8), pods("c")])
    assert said(home, "memory may run out: ai/a 12 + ai/b 8 GiB do not go together on the 16303 MiB of an NVIDIA")
    assert said(home, "ai/c says nothing of memory")
    assert not said(dark, "do not go together")
    assert said(dark, "ai/c says nothing of memory and the memory of the board is not known")


# What goes where


def test_nodes_that_are_alike_get_one_answer_each_in_the_order_of_the_inventory():
    inventory = GpuInventory(
        nodes=[
            GpuNode(name=name, gpu_model=model)
            for name, model in (("b", "RTX 3090"), ("c", "RTX 5070 Ti"), ("a", "RTX 3090"))
        ]
    )
    found = recommend_sharing(inventory, [pods("small", 4, copies=6)])
    assert [one.node for one in found] == ["b", "c", "a"]
    assert found[0].sharing == found[2].sharing == Sharing.vram_units(vram="24576Mi")
    assert said(found[0], "6 pods ask for GPUs at once and the cluster has 3")


def test_pods_count_where_labels_and_taints_let_them_go():
    inventory = GpuInventory(
        nodes=[
            GpuNode(name="a", gpu_model="RTX 3090", labels={"team": "red"}),
            GpuNode(name="b", gpu_model="RTX 3090", labels={"team": "blue"}),
        ]
    )
    red = {"nodeSelector": {"team": "red"}}
    found = recommend_sharing(inventory, [pods("x", pod_spec=red), pods("y", pod_spec=red), pods("z", pod_spec=red)])
    assert [one.mode for one in found] == ["time-slicing", "exclusive"]
    assert found[0].sharing.replicas == 3
    assert said(found[0], "3 pods ask for GPUs at once and the nodes that take them have 1")
    assert found[1].reasons == ("none of the workloads goes on its nodes",)
    assert found[1].workloads == ()


@pytest.mark.parametrize("suffix", ["", "-SHARED"])
def test_pods_that_look_for_a_board_find_it_shared_or_not(suffix):
    selector = {"nodeSelector": {"nvidia.com/gpu.product": f"NVIDIA-GeForce-RTX-3090{suffix}"}}
    found = only(TWO_3090, [pods("a", pod_spec=selector, copies=4)])
    assert found.workloads == ("ai/a",)


def test_manifests_are_as_good_as_consumers():
    manifests = [
        deployment("ollama", vram="8Gi"),
        deployment("comfyui", vram="12Gi"),
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "ollama"}},
    ]
    found = only(ONE_5070_TI, manifests)
    assert found.mode == "exclusive"
    assert found.workloads == ("ai/ollama", "ai/comfyui")
    found = only(ONE_5070_TI, [*manifests, pods("small", 2)])
    assert found.mode == "vram-units"


def test_what_a_runtime_class_says_of_nodes_counts():
    runtime_class = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "nvidia"},
        "handler": "nvidia",
        "scheduling": {"nodeSelector": {"team": "red"}},
    }
    workload = deployment("a", runtimeClassName="nvidia", replicas=3)
    assert only(ONE_5070_TI, [workload, runtime_class]).workloads == ()
    assert only(ONE_5070_TI, [workload]).workloads == ("ai/a",)


def test_a_fleet_is_looked_at_once_for_each_kind_of_node():
    nodes = [GpuNode(name=f"n{number}", gpu_model="RTX 3090", gpus=1 + number % 4, count=3) for number in range(100)]
    workloads = [pods(f"w{number}", 1 + number % 20, copies=1 + number % 5) for number in range(500)]
    found = recommend_sharing(GpuInventory(nodes=nodes), workloads)
    assert [one.node for one in found] == [node.name for node in nodes]
    assert len({one.reasons for one in found}) <= 4


# Refused


@pytest.mark.parametrize(
    ("inventory", "workloads", "keywords", "message"),
    [
        (None, SEED, {}, "inventory must be a GpuInventory; got None; pass GpuInventory(nodes="),
        (ONE_5070_TI, [], {}, "workloads must hold at least one manifest; got none"),
        (
            ONE_5070_TI,
            "a.yaml",
            {},
            "workloads must be a list of manifests or of consumers of a capacity plan; got str",
        ),
        (ONE_5070_TI, {"kind": "Pod"}, {}, "workloads must be a list"),
        (ONE_5070_TI, [SEED[0], 7], {}, "workloads[1] must be a manifest, a mapping with apiVersion and kind"),
        (ONE_5070_TI, [{"kind": "Pod"}], {}, "got a mapping with ['kind']"),
        (
            ONE_5070_TI,
            [{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}],
            {},
            "none does; ask for nvidia.com/gpu",
        ),
        (ONE_5070_TI, [pods("a", copies=0)], {}, "workloads must hold one that asks for GPUs"),
        (ONE_5070_TI, SEED, {"isolation": "yes"}, "isolation must be"),
        (ONE_5070_TI, SEED, {"platform": "talos"}, "platform must be Talos(...) or Kubernetes(...); got 'talos'"),
        (ONE_5070_TI, SEED, {"isolation": True, "trusted_cuda_services": True}, "exclude each other"),
        (ONE_5070_TI, SEED, {"mps": True}, "mps is not a keyword of recommend_sharing"),
    ],
)
def test_what_cannot_be_answered_is_refused(inventory, workloads, keywords, message):
    with pytest.raises(GpuConstructsError) as refused:
        recommend_sharing(inventory, workloads, **keywords)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


# Whatever is asked


WORKLOADS = st.lists(
    st.builds(
        pods,
        st.sampled_from("abcdef"),
        st.one_of(st.none(), st.sampled_from([0.1, 1, 4, 11, 20, 39, 79])),
        copies=st.integers(1, 6),
        ends=st.booleans(),
        gpus=st.integers(1, 3),
        resource=st.sampled_from(["nvidia.com/gpu", "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"]),
    ),
    min_size=1,
    max_size=6,
)
NODES = st.builds(
    GpuNode,
    name=st.just("node"),
    gpu_model=st.sampled_from([None, "RTX 3090", "NVIDIA A100-SXM4-40GB", "NVIDIA A30"]),
    gpus=st.integers(1, 3),
    count=st.integers(1, 2),
)


@at_depth(400, quick=40)
@given(NODES, WORKLOADS, st.sampled_from([{}, {"isolation": True}, {"trusted_cuda_services": True}]))
def test_a_recommendation_is_one_that_the_board_and_the_plugin_take(node, workloads, keywords):
    found = only(GpuInventory(nodes=[node]), workloads, **keywords)
    assert (found.mode == "mig") == (found.mig_layout is not None)
    GpuNode(
        name="as-told", gpu_model=node.gpu_model, gpus=node.gpus, sharing=found.sharing, mig_layout=found.mig_layout
    )
    assert found.reasons
    assert all(reason and not reason.endswith(".") for reason in found.reasons)
    assert found.pods_at_once <= sum(one.copies for one in workloads)
    if "isolation" in keywords:
        assert found.mode in ("exclusive", "mig")
    if found.mode == "vram-units":
        assert node.gpus == 1
        assert found.pods_at_once >= 2
    sizes = [(one.vram_mib, one.copies, 1) for one in workloads if one.vram_mib]
    if found.mode in ("time-slicing", "mps") and said(found, ", together"):
        held = [size for size in sizes if node.vram_mib is None or size[0] <= node.vram_mib]
        assert worst_mib(found.sharing.replicas, held) <= node.vram_mib
