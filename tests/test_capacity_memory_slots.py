import pytest

from gpu_constructs.capacity.memory_slots import MemorySlots, memory_slots

BOARD = 16303


@pytest.mark.parametrize(
    ("smallest", "largest", "made"),
    [
        (1024, 8192, MemorySlots(1024, 15)),
        (512, 8192, MemorySlots(512, 31)),
        (1, 8192, MemorySlots(128, 127)),
        (1024, 15872, MemorySlots(512, 31)),
        (1024, 16303, None),
    ],
)
def test_a_slot_is_no_larger_than_the_smallest_budget_and_the_largest_finds_its_slots(smallest, largest, made):
    assert memory_slots(BOARD, smallest, largest) == made


def test_a_large_board_has_larger_slots_and_a_tiny_one_none():
    assert memory_slots(300 * 1024, 4096, 8192) == MemorySlots(2048, 150)
    assert memory_slots(200, 100, 100) is None


def test_a_slot_is_written_as_kubernetes_does():
    assert [MemorySlots(mib, 2).unit for mib in (1024, 512, 2048)] == ["1Gi", "512Mi", "2Gi"]


def test_the_smallest_pods_are_those_of_which_most_go_in():
    slots = MemorySlots(1024, 15)
    assert slots.of(1025) == 2
    assert slots.room([(1024, 3), (4096, 2), (8192, 1)]) == 5
    assert slots.room([(16 * 1024, 1)]) == 0
