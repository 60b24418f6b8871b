from capacity_consumers import wants
from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.mig_choice import mig_choice
from gpu_constructs.capacity.sharing_demand import Demand, Hardware
from gpu_constructs.inventory import GpuNode

GIB = 1024


def board(gpus: int = 1) -> Hardware:
    return Hardware.of(GpuNode(name="n", gpu_model="NVIDIA A100-SXM4-40GB", gpus=gpus))


def of(*consumers: Consumer, gpus: int = 1, ranks: int = 1) -> list[Demand]:
    return [Demand(one, boards=1, total_boards=gpus, node_boards=gpus, ranks=ranks) for one in consumers]


def test_what_always_runs_comes_before_larger_work() -> None:
    made = mig_choice(board(), of(wants("a", vram_mib=18 * GIB, least_copies=0), wants("b", vram_mib=20 * GIB)))
    assert made.pods == 1
    assert made.missing == ("1 x nvidia.com/mig-3g.20gb",)


def test_who_says_nothing_gets_the_largest_devices_with_which_all_have_one() -> None:
    assert mig_choice(board(), of(wants(copies=3))).layouts == ({"2g.10gb": 3},)


def test_a_device_for_an_update_is_worth_smaller_ones_for_who_says_nothing() -> None:
    rolling = wants(copies=2, surge=1, surge_is_needed=True)
    made = mig_choice(board(), of(rolling))
    assert (made.layouts, made.pods, made.has_room_to_update) == (({"2g.10gb": 3},), 2, True)


def test_where_none_is_left_for_an_update_the_devices_stay_as_large() -> None:
    rolling = wants(copies=1, vram_mib=30 * GIB, surge=1, surge_is_needed=True)
    made = mig_choice(board(2), of(rolling, wants("b", copies=3), gpus=2))
    assert (made.layouts, made.has_room_to_update) == (({}, {"2g.10gb": 3}), False)


def test_ranks_get_whole_boards_however_little_they_take() -> None:
    made = mig_choice(board(2), of(wants(copies=2, vram_mib=GIB), gpus=2, ranks=2))
    assert made.layouts == ({}, {})
    assert list(made.asks) == ["whole boards"]
    assert made.in_words == "a whole GPU"
