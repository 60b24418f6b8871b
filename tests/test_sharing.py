import pytest

from gpu_constructs import GpuConstructsError, Sharing


@pytest.mark.parametrize(
    ("replicas", "problem"),
    [
        (1, "must be at least 2, got 1"),
        (0, "must be at least 2, got 0"),
        (-4, "must be at least 2, got -4"),
        ("5", "must be an int, got '5' (str)"),
        (2.5, "must be an int, got 2.5 (float)"),
        (True, "must be an int, got True (bool)"),
        (None, "must be an int, got None (NoneType)"),
    ],
)
def test_replicas_that_share_nothing_are_refused_with_the_way_out(replicas, problem):
    with pytest.raises(GpuConstructsError) as refused:
        Sharing.time_slicing(replicas=replicas)
    assert str(refused.value) == (f"sharing.time_slicing.replicas {problem}; use Sharing.none() for exclusive GPUs")


@pytest.mark.parametrize("option", ["fail_requests_greater_than_one", "rename_by_default"])
@pytest.mark.parametrize("given", ["yes", 1, None])
def test_a_switch_that_is_no_bool_is_refused_as_a_python_type(option, given):
    with pytest.raises(GpuConstructsError) as refused:
        Sharing.time_slicing(replicas=2, **{option: given})
    assert str(refused.value) == (f"sharing.time_slicing.{option} must be bool; got {type(given).__name__}: {given!r}")


def test_time_slicing_refuses_requests_for_several_slots_unless_told_otherwise():
    assert Sharing.time_slicing(replicas=5).fail_requests_greater_than_one is True
    lenient = Sharing.time_slicing(replicas=5, fail_requests_greater_than_one=False)
    assert lenient.fail_requests_greater_than_one is False


def test_time_slicing_keeps_what_it_was_given():
    sharing = Sharing.time_slicing(replicas=5)
    assert (sharing.strategy, sharing.replicas, sharing.rename_by_default) == ("time-slicing", 5, False)


def test_without_sharing_a_gpu_is_one_slot_and_several_may_be_asked_for():
    sharing = Sharing.none()
    assert (sharing.strategy, sharing.replicas, sharing.fail_requests_greater_than_one) == ("none", 1, False)


def test_slots_are_asked_for_by_the_plain_name_unless_renamed():
    assert Sharing.none().gpu_resource == "nvidia.com/gpu"
    assert Sharing.time_slicing(replicas=2).gpu_resource == "nvidia.com/gpu"
    assert Sharing.time_slicing(replicas=2, rename_by_default=True).gpu_resource == "nvidia.com/gpu.shared"


def test_a_sharing_cannot_be_changed_after_it_was_checked():
    with pytest.raises(AttributeError):
        Sharing.none().replicas = 5
