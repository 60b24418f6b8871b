import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.recommendation import SharingRecommendation, recommend_sharing
from gpu_constructs.capacity.vram import worst_mib
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.inventory import GpuInventory, GpuNode
from gpu_constructs.mig_layouts import layout_problem
from gpu_constructs.platforms import Kubernetes, Talos
from gpu_constructs.sharing import Sharing

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


# One GPU in a node


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


def test_what_lasts_is_not_said_to_wait_for_good_where_it_fits():
    found = only(ONE_5070_TI, [pods("a", 8), pods("b", 7), pods("c", 1, ends=True)])
    assert found.mode == "vram-units"
    assert not said(found, "stays Pending")
    assert found.reasons[1] == (
        "the scheduler then keeps the sum of budgets within the board, 15 units of 1Gi; "
        "ai/a 8 + ai/b 7 + ai/c 1 units wait for each other"
    )


def test_who_says_nothing_of_memory_gets_a_turn_and_a_warning():
    found = only(ONE_5070_TI, [pods(str(number)) for number in range(5)])
    assert (found.mode, found.sharing) == ("time-slicing", Sharing.time_slicing(replicas=5))
    assert said(found, "5 pods ask for GPUs at once and the cluster has 1: 5 replicas")
    assert said(found, "whether it is enough for 5 at once cannot be told: state GpuRequest(vram=...)")


def test_a_single_pod_of_unknown_memory_keeps_the_scheduler_from_adding_up():
    found = only(ONE_5070_TI, [*SEED, pods("new")])
    assert found.mode == "time-slicing"
    assert said(found, "ai/new says nothing of memory")


def test_a_board_of_unknown_memory_is_said_to_be_one():
    found = only(GpuInventory(nodes=[GpuNode(name="dark")]), SEED)
    assert found.mode == "time-slicing"
    assert said(found, "the memory of the board is not known")
    assert said(found, "pass vram= for the node")


def test_memory_that_no_pod_gets_is_no_slot():
    inventory = GpuInventory(nodes=[GpuNode(name="home", gpu_model="RTX 5070 Ti", vram_reserved="1Gi")])
    assert only(inventory, SEED).sharing == Sharing.vram_units(vram="15279Mi")


@pytest.mark.parametrize(
    ("gib", "unit"), [((8, 4, 4, 2), "1Gi"), ((8, 0.5), "512Mi"), ((8, 0.01, 0.01), "128Mi"), ((15.5, 1, 1), "512Mi")]
)
def test_a_unit_is_no_larger_than_the_smallest_budget_and_the_largest_still_fits(gib, unit):
    found = only(ONE_5070_TI, [pods(str(number), each) for number, each in enumerate(gib)])
    assert found.sharing.vram_unit == unit
    assert found.sharing.units(f"{int(max(gib) * GIB)}Mi") <= found.sharing.replicas


def test_a_budget_that_no_number_of_units_holds_leaves_turns():
    assert only(ONE_5070_TI, [pods("a", 15.9, ends=True), pods("b", 1, copies=2)]).mode != "vram-units"


def test_a_large_board_has_few_units():
    inventory = GpuInventory(nodes=[GpuNode(name="rack", gpu_model="NVIDIA B300 SXM6 AC")])
    found = only(inventory, [pods("a", 100), pods("b", 100), pods("c", 8)])
    assert found.sharing.vram_unit == "2Gi"


@pytest.mark.parametrize(
    ("gib", "why"),
    [
        ((8, 12, 9), "each of them takes half of the 16303 MiB of an NVIDIA GeForce RTX 5070 Ti or more"),
        ((12, 12, 5, 14), "no two of them go together: even the smallest, 5 + 12 GiB, are more than the 16303 MiB"),
    ],
)
def test_what_does_not_go_together_in_any_pair_gets_gpus_of_its_own(gib, why):
    found = only(ONE_5070_TI, [pods(str(number), each) for number, each in enumerate(gib)])
    assert (found.mode, found.sharing) == ("exclusive", Sharing.none())
    assert said(found, why)
    assert said(found, f"a node holds 1 of them at a time, and {len(gib) - 1} that may come to it wait")


def test_half_a_board_is_a_reason_for_a_whole_one():
    inventory = GpuInventory(nodes=[GpuNode(name="home", gpu_model="RTX 3090")])
    assert only(inventory, [pods("a", 12), pods("b", 12)]).mode == "exclusive"
    assert only(inventory, [pods("a", 12), pods("b", 11.9)]).mode == "vram-units"


def test_two_copies_of_one_workload_can_be_a_pair_that_does_not_go_together():
    assert only(ONE_5070_TI, [pods("a", 7.99, copies=2)]).mode == "exclusive"
    assert only(ONE_5070_TI, [pods("a", 7.9, copies=2)]).mode == "vram-units"


def test_where_there_are_gpus_enough_each_pod_gets_one():
    found = only(TWO_3090, [pods("a", 2), pods("b")])
    assert found.mode == "exclusive"
    assert found.reasons == (
        "2 pods ask for GPUs at once and the cluster has 2",
        "there are GPUs enough without sharing",
    )
    assert found.pods_at_once == 2


# Several GPUs in a node


def test_budgets_that_always_fit_together_need_no_more_than_turns():
    found = only(TWO_3090, [pods("a", 12), pods("b", 2), pods("c", 2, copies=3)])
    assert (found.mode, found.sharing) == ("time-slicing", Sharing.time_slicing(replicas=3))
    assert said(found, "24576 MiB of an NVIDIA GeForce RTX 3090 hold the 3 largest budgets, 12 + 2 + 2 GiB, together")
    assert not said(found, "not to be had of the device plugin")


def test_there_are_fewer_slots_where_all_that_lasts_still_runs_and_memory_is_then_enough():
    found = only(TWO_3090, [pods("a", 11, copies=4), pods("b", 4, copies=3, ends=True)])
    assert found.sharing == Sharing.time_slicing(replicas=2)
    assert said(found, "hold the 2 largest budgets, 11 + 11 GiB, together; 3 of them could take 33792 MiB")
    assert said(found, "a node holds 4 of them at a time, and 3 that may come to it wait")


def test_memory_that_may_run_out_is_said_to():
    found = only(TWO_3090, [pods("a", 11, copies=4), pods("b", 4, copies=2)])
    assert found.sharing == Sharing.time_slicing(replicas=3)
    assert said(found, "memory may run out: the 3 largest that may meet take 33792 MiB, 137 % of the 24576 MiB")


def test_there_are_no_more_slots_than_the_smallest_budget_goes_into_the_memory():
    found = only(TWO_3090, [pods("a", 11, copies=9)])
    assert found.sharing == Sharing.time_slicing(replicas=2)
    assert said(found, "24576 MiB hold no more than 2 even of the smallest, 11 GiB each")


def test_one_gpu_alone_and_another_shared_is_said_to_be_impossible():
    found = only(TWO_3090, [pods("llm", 20), pods("a", 8), pods("b", 8)])
    assert found.mode == "time-slicing"
    assert said(found, "memory may run out")
    assert said(found, "not to be had of the device plugin: take MIG, DRA, or a second node pool")


def test_batch_work_waits_where_a_shared_gpu_would_endanger_a_large_model():
    found = only(TWO_3090, [pods("llm", 20), pods("a", 8), pods("b", 8, ends=True)])
    assert found.mode == "exclusive"
    assert said(found, "the two largest, 20 + 8 GiB, are more than the 24576 MiB")
    assert said(found, "a node holds 2 of them at a time, and 1 that may come to it waits")


def test_who_asks_for_several_gpus_gets_no_slots():
    found = only(TWO_3090, [pods("wide", gpus=2), pods("a", 2), pods("b", 2)])
    assert found.mode == "exclusive"
    assert said(found, "3 pods ask for 4 GPUs at once and the cluster has 2")
    assert said(found, "several slots are not several GPUs")
    assert only(TWO_3090, [pods("wide", gpus=2), pods("wider", gpus=2)]).mode == "exclusive"


def test_a_mixed_need_on_boards_with_mig_is_met_by_dividing_some_of_them():
    inventory = GpuInventory(nodes=[GpuNode(name="rack", gpu_model="NVIDIA A100-SXM4-40GB", gpus=2)])
    found = only(inventory, [pods("llm", 38), pods("a", 4, copies=3)])
    assert found.mode == "mig"
    assert found.mig_layout == ({}, {"1g.5gb": 3})
    assert said(found, "a whole GPU on 1 of 2 boards; 3 x 1g.5gb on 1 of 2 boards")
    assert said(found, "ai/llm should ask for whole boards")


# Pods that must be kept apart


def test_isolation_on_a_board_with_mig_gets_the_smallest_devices_that_hold_the_budgets():
    found = only(ONE_A100, [pods("a", 4.5), pods("b", 4.9), pods("c", 15)], isolation=True)
    assert (found.mode, found.sharing) == ("mig", Sharing.none())
    assert found.mig_layout == {"3g.20gb": 1, "1g.10gb": 1, "1g.5gb": 1}
    assert found.pods_at_once == 3
    assert said(found, "ai/b should ask for nvidia.com/mig-1g.10gb")


def test_who_finds_no_device_waits_first_of_all_what_ends():
    found = only(ONE_A100, [pods("batch", 15, ends=True), pods("a", 15), pods("b", 4, copies=5)], isolation=True)
    assert found.mig_layout == {"3g.20gb": 1, "1g.5gb": 4}
    assert said(
        found, "a node lacks 1 x nvidia.com/mig-3g.20gb, 1 x nvidia.com/mig-1g.5gb for pods that may come to it"
    )
    assert layout_problem("NVIDIA A100-SXM4-40GB", found.mig_layout) is None


@pytest.mark.parametrize(("copies", "layout"), [(7, {"1g.5gb": 7}), (3, {"2g.10gb": 3}), (2, {"3g.20gb": 2})])
def test_who_says_nothing_of_memory_gets_the_largest_devices_that_all_find_room_on(copies, layout):
    found = only(ONE_A100, [pods("notebook", copies=copies)], isolation=True)
    assert found.mig_layout == layout
    assert found.pods_at_once == copies


def test_many_small_needs_of_many_nodes_do_not_each_take_a_device_of_every_node():
    inventory = GpuInventory(nodes=[GpuNode(name="rack", gpu_model="NVIDIA A100-SXM4-40GB", gpus=2, count=10)])
    workloads = [*(pods(f"big{number}", 30) for number in range(10)), *(pods(f"b{number}", 4) for number in range(50))]
    found = only(inventory, workloads, isolation=True)
    assert found.mig_layout == ({}, {"1g.5gb": 5})
    assert not said(found, "lacks")


def test_whole_boards_that_leave_none_to_divide_are_no_mig():
    found = only(ONE_A100, [pods("a", 30), pods("b", 4)], isolation=True)
    assert (found.mode, found.mig_layout) == ("exclusive", None)
    assert said(found, "those that take whole boards leave none to divide")


@pytest.mark.parametrize(
    ("inventory", "why"),
    [(ONE_5070_TI, "has no MIG"), (GpuInventory(nodes=[GpuNode(name="a", vram="40Gi")]), "is not known to have MIG")],
)
def test_isolation_without_mig_leaves_only_gpus_of_their_own(inventory, why):
    found = only(inventory, [pods("a", 4), pods("b", 4)], isolation=True)
    assert found.mode == "exclusive"
    assert said(found, why)
    assert said(found, "a node holds 1 of them at a time, and 1 that may come to it waits")


def test_gpus_enough_isolate_better_than_mig_and_so_do_pods_that_need_whole_boards():
    assert only(ONE_A100, [pods("a", 30), pods("b", 30)], isolation=True).mode == "exclusive"
    assert only(ONE_A100, [pods("a", 4)], isolation=True).mode == "exclusive"


def test_who_asks_for_mig_devices_gets_them():
    asks = pods("a", resource="nvidia.com/mig-1g.5gb", gpus=2)
    found = only(ONE_A100, [asks, pods("b", 15)])
    assert found.mode == "mig"
    assert found.mig_layout == {"3g.20gb": 1, "1g.5gb": 2}
    left_out = only(ONE_5070_TI, [asks, pods("b", 15)])
    assert left_out.workloads == ("ai/b",)
    assert said(left_out, "ai/a is left out here: it asks for nvidia.com/mig-1g.5gb")


# Boards that are divided already


HOME = GpuNode(name="home", gpu_model="RTX 4090")
A100 = "NVIDIA A100-SXM4-80GB"


def divided(layout, strategy="mixed", *, name="rack", **more):
    return GpuNode(name=name, gpu_model=A100, mig_layout=layout, mig_strategy=strategy, **more)


def halves(name, **more):
    return pods(name, resource="nvidia.com/mig-3g.40gb", **more)


@pytest.mark.parametrize("strategy", ["mixed", None])
def test_a_board_that_is_divided_already_is_no_gpu_for_who_asks_for_one(strategy):
    inventory = GpuInventory(nodes=[HOME, divided({"3g.40gb": 2}, strategy)])
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


# MPS


SERVICES = [pods(str(number), 2) for number in range(6)]


def test_trusted_services_with_equal_budgets_get_mps():
    found = only(ONE_5070_TI, SERVICES, trusted_cuda_services=True, platform=Kubernetes())
    assert (found.mode, found.sharing) == ("mps", Sharing.mps(replicas=6))
    assert said(found, "MPS holds each to 2717 of the 16303 MiB")


@pytest.mark.parametrize(
    ("workloads", "platform", "why"),
    [
        (SERVICES, Talos("1.12"), "it is untested on Talos 1.12"),
        (SEED, Kubernetes(), "it would hold each of 5 clients to 3260 MiB, and the largest takes 12288 MiB"),
        ([pods("a", 0.1, copies=49)], None, "it serves 48 clients of a GPU, and 49 may meet there"),
        ([pods("a"), pods("b")], None, "ai/a, ai/b say nothing of memory"),
    ],
)
def test_mps_is_refused_with_the_reason(workloads, platform, why):
    found = only(ONE_5070_TI, workloads, trusted_cuda_services=True, platform=platform)
    assert found.mode in ("time-slicing", "vram-units")
    assert said(found, why)


def test_mps_needs_a_board_that_is_known():
    inventory = GpuInventory(nodes=[GpuNode(name="a", vram="24Gi")])
    assert said(only(inventory, SERVICES, trusted_cuda_services=True), "it takes Volta or newer")


# What updates, what queues, what runs together


def rolling(name, gib=None, **more):
    return pods(name, gib, surge=1, surge_is_needed=True, **more)


def test_turns_are_one_more_than_pods_where_an_update_starts_a_new_one_first():
    found = only(ONE_5070_TI, [rolling("a"), rolling("b")])
    assert found.sharing == Sharing.time_slicing(replicas=3)
    assert found.pods_at_once == 2
    assert not said(found, "Recreate")


def test_what_is_replaced_as_a_whole_needs_as_many_turns_more():
    found = only(ONE_5070_TI, [rolling("a", copies=2, surge_together=2), pods("b")])
    assert found.sharing == Sharing.time_slicing(replicas=5)


@pytest.mark.parametrize(
    ("inventory", "workloads", "mode"),
    [
        pytest.param(ONE_5070_TI, [rolling("a", 4)], "exclusive", id="alone"),
        pytest.param(ONE_5070_TI, [rolling("a", 6), pods("b", 6)], "vram-units", id="units"),
        pytest.param(TWO_3090, [rolling("a", 11, copies=2), pods("b", 11, copies=2)], "time-slicing", id="turns"),
    ],
)
def test_an_update_that_finds_no_place_is_said_to_need_recreate(inventory, workloads, mode):
    found = only(inventory, workloads)
    assert found.mode == mode
    assert said(found, "an update of ai/a finds no place for a new pod beside the old one: write strategy.type")


def test_what_always_runs_and_stays_pending_is_said():
    found = only(ONE_A100, [rolling("a", 20), pods("b", 20)])
    assert found.mode == "exclusive"
    assert said(found, "what always runs wants 2 places of a node that has 1, so some of it stays Pending")


def test_an_update_with_a_place_is_not_spoken_of():
    assert not said(only(TWO_3090, [rolling("a", 4)]), "an update")
    assert not said(only(ONE_5070_TI, [rolling("a", 4), pods("b", 4)]), "an update")


@pytest.mark.parametrize(("small", "says"), [(4, False), (5, True)])
def test_mig_has_a_device_for_an_update_where_one_is_left(small, says):
    workloads = [rolling("a", 9), *(pods(f"b{number}", 4.5) for number in range(small))]
    found = only(ONE_A100, workloads, isolation=True)
    assert found.mode == "mig"
    assert found.pods_at_once == 1 + small
    assert said(found, "an update of ai/a finds no place") == says


def test_memory_of_old_and_new_pod_is_counted():
    found = only(TWO_3090, [rolling("a", 13), pods("b", 2), pods("c", 2, ends=True)])
    assert (found.mode, found.sharing.replicas) == ("exclusive", 1)
    assert said(found, "the two largest, 13 + 13 GiB, are more than the 24576 MiB")


def test_pods_that_may_queue_make_no_turns_and_are_named():
    found = only(ONE_5070_TI, [pods("smoke", copies=16, ends=True), pods("llm")])
    assert found.sharing == Sharing.time_slicing(replicas=2)
    assert said(found, "a node holds 2 of them at a time, and 15 that may come to it wait: ai/smoke may queue")
    alone = only(ONE_5070_TI, [pods("smoke", copies=16, ends=True)])
    assert alone.mode == "exclusive"
    assert said(alone, "15 that may come to it wait: ai/smoke may queue")


def gang(name, *parts, gib=None, copies=1, **more):
    return [
        pods(name, gib, part=part, pods_each=number, is_gang=True, copies=copies, ends=True, **more)
        for part, number in parts
    ]


def test_ranks_of_a_training_are_never_put_on_one_gpu():
    training = gang("train", ("Master", 1), ("Worker", 1), gib=2)
    assert only(TWO_3090, training).mode == "exclusive"
    beside = only(TWO_3090, [*training, pods("a", 2), pods("b", 2)])
    assert beside.mode == "exclusive"
    assert said(beside, "the pods of ai/train Master, ai/train Worker run together and want a GPU each")


def test_a_training_with_fewer_gpus_than_ranks_is_left_out_and_the_others_share():
    training = gang("train", ("Master", 1), ("Worker", 1), gib=2)
    found = only(ONE_5070_TI, [*training, pods("a", 4), pods("b", 4)])
    assert (found.mode, found.workloads) == ("vram-units", ("ai/a", "ai/b"))
    assert said(found, "ai/train Worker is left out here: its 2 pods run together and want a GPU each, 2 in all, and")


def test_a_training_of_one_pod_shares_as_others_do():
    found = only(ONE_5070_TI, [*gang("train", ("Worker", 1), gib=2, copies=3), pods("a", 4)])
    assert found.mode == "vram-units"


def test_a_training_may_start_with_fewer_ranks_than_it_has():
    training = gang("train", ("Worker", 4), gib=2, starts_with=2)
    assert only(TWO_3090, training).workloads == ("ai/train Worker",)
    assert only(ONE_5070_TI, training).workloads == ()


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


def test_a_pod_larger_than_the_board_is_left_out_and_named():
    found = only(ONE_5070_TI, [*SEED, pods("huge", 30)])
    assert found.mode == "vram-units"
    assert "ai/huge" not in found.workloads
    assert said(found, "ai/huge is left out here: each of its pods takes 30720 MiB, and an NVIDIA")


def test_a_request_for_slots_of_memory_is_one_gpu():
    sharing = Sharing.vram_units(vram="16303Mi")
    inventory = GpuInventory(nodes=[GpuNode(name="home", gpu_model="RTX 5070 Ti", sharing=sharing)])
    found = only(inventory, [pods("a", 8, gpus=8), pods("b", 4, gpus=4)])
    assert found.sharing == sharing
    assert said(
        only(ONE_5070_TI, [pods("a", 8, gpus=8), pods("b", 4)]),
        "each of its pods asks for 8 GPUs, and a node has 1 GPU",
    )


def test_slots_keep_the_name_that_pods_ask_for():
    found = only(ONE_5070_TI, [pods(name, resource="nvidia.com/gpu.shared") for name in "ab"])
    assert found.sharing == Sharing.time_slicing(replicas=2, rename_by_default=True)


def test_every_node_has_its_pod_of_a_daemon_set():
    inventory = GpuInventory(nodes=[GpuNode(name="pool", gpu_model="RTX 3090", gpus=2, count=9)])
    found = only(inventory, [pods("each", 2, copies=0, is_for_each_node=True), pods("a", 2, copies=18)])
    assert found.sharing == Sharing.time_slicing(replicas=2)
    assert only(inventory, [pods("each", 2, copies=0, is_for_each_node=True)]).mode == "exclusive"


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
        (ONE_5070_TI, SEED, {"mps": True}, "mps is no keyword of recommend_sharing"),
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


@given(NODES, WORKLOADS, st.sampled_from([{}, {"isolation": True}, {"trusted_cuda_services": True}]))
@settings(max_examples=200)
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
    sizes = [(one.vram_mib, one.copies) for one in workloads if one.vram_mib]
    if found.mode in ("time-slicing", "mps") and said(found, ", together"):
        held = [size for size in sizes if node.vram_mib is None or size[0] <= node.vram_mib]
        assert worst_mib(found.sharing.replicas, held) <= node.vram_mib
