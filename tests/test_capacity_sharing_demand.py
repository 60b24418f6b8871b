from fractions import Fraction

import pytest

from capacity_consumers import job, wants
from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.sharing_demand import Demand, Hardware, devices_for
from gpu_constructs.inventory import GpuNode
from gpu_constructs.sharing import Sharing


def demand(consumer: Consumer, **given: int) -> Demand:
    return Demand(consumer, **{"boards": 1, "total_boards": 4, "node_boards": 2, **given})


@pytest.mark.parametrize(
    ("consumer", "pods"),
    [
        (wants(copies=3), 3),
        (wants(copies=8, least_copies=2), 2),
        (job(copies=12), 1),
        (job(copies=3, pods_each=2, is_gang=True), 2),
        (job(copies=3, pods_each=4, is_gang=True, starts_with=2), 2),
        (wants(copies=0), 0),
    ],
)
def test_what_starts_is_what_always_runs_or_the_least_that_work_needs(consumer: Consumer, pods: int) -> None:
    assert demand(consumer).starting_pods == pods
    assert demand(consumer).load_for_each_board == Fraction(pods, 4)


@pytest.mark.parametrize(
    ("consumer", "pods"),
    [
        (wants(), 0),
        (wants(surge=1), 0),
        (wants(copies=4, surge=2, surge_is_needed=True), 1),
        (wants(copies=4, surge=4, surge_is_needed=True, surge_together=4), 4),
        (wants(copies=2, pods_each=3, is_gang=True, surge=3, surge_is_needed=True), 3),
        (wants(copies=0, surge=1, surge_is_needed=True), 0),
    ],
)
def test_an_update_adds_what_must_be_there_before_the_old_goes(consumer: Consumer, pods: int) -> None:
    assert demand(consumer).new_pods == pods
    assert demand(consumer).new_for_each_board == Fraction(pods, 4)


def test_a_pod_of_every_node_is_one_of_its_boards() -> None:
    each = demand(wants(copies=0, is_for_each_node=True, surge=1, surge_is_needed=True))
    assert each.pods == 1
    assert each.most_for_each_board == each.least_for_each_board == each.new_for_each_board == Fraction(1, 2)


def test_slots_serve_neither_several_boards_nor_ranks() -> None:
    assert not demand(wants()).is_wide
    assert demand(wants(), boards=2).is_wide
    assert demand(wants(), ranks=2).is_wide


def test_slots_of_memory_are_one_board() -> None:
    units = Hardware.of(GpuNode(name="n", vram="16303Mi", sharing=Sharing.vram_units(vram="16303Mi")))
    assert units.boards_for(wants(gpus=8)) == 1
    whole = Hardware.of(GpuNode(name="n", vram="16303Mi"))
    assert whole.boards_for(wants(gpus=8)) == 8
    assert whole.refusal(wants(gpus=8)) == "each of its pods asks for 8 GPUs, and a node has 1 GPU"


def test_devices_that_are_asked_for_by_name_are_told_from_gpus() -> None:
    assert devices_for(wants(asks={"nvidia.com/mig-1g.5gb": 2, "nvidia.com/gpu": 1})) == (("1g.5gb", 2),)
