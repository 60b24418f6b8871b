import pytest

from gpu_constructs import GpuConstructsError, Sharing
from gpu_constructs.recipes.vram_budget import is_shared, vram_budget
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.gpu_request import GpuRequest

RTX_5070_TI, RTX_3090 = "NVIDIA GeForce RTX 5070 Ti", "NVIDIA GeForce RTX 3090"


def budget(gpu_memory=None, **request):
    return vram_budget(GpuRequest(**request), gpu_memory)


@pytest.mark.parametrize("gpus", [1, GpuRequest(products=[RTX_3090])])
def test_a_request_without_vram_has_no_budget(gpus):
    assert vram_budget(gpus, None) is None


def test_the_memory_of_a_known_board_is_known():
    made = budget(vram="8Gi", products=[RTX_5070_TI])
    assert (made.budget_mib, made.total_mib, made.rest_mib, made.hundredths) == (8192, 16303, 8111, 50)


def test_a_board_may_be_named_as_its_label():
    assert budget(vram="8Gi", products=["NVIDIA-GeForce-RTX-3090"]).total_mib == 24576


def test_of_several_boards_the_largest_counts_so_that_none_takes_more():
    assert budget(vram="8Gi", products=[RTX_5070_TI, RTX_3090]).total_mib == 24576


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"products": ["NVIDIA Unheard Of"]},
        {"products": [RTX_3090, "NVIDIA Unheard Of"]},
        {"products": ["NVIDIA Unheard Of"], "mig_profile": "1g.10gb"},
    ],
)
def test_the_memory_of_another_board_is_not_known(request_):
    made = budget(vram="8Gi", **request_)
    assert (made.total_mib, made.rest_mib, made.hundredths) == (None, None, None)


@pytest.mark.parametrize("mig", [{"mig_profile": "1g.10gb"}, {"resource": "nvidia.com/mig-1g.10gb"}], ids=str)
def test_of_a_part_of_a_board_its_own_memory_counts(mig):
    made = budget(vram="8Gi", products=["NVIDIA A100-SXM4-80GB"], **mig)
    assert (made.total_mib, made.rest_mib, made.hundredths) == (9728, 1536, 84)


def test_memory_that_is_said_counts_before_that_of_the_board():
    assert budget("20Gi", vram="10Gi", products=[RTX_3090]).hundredths == 50


def test_a_decimal_budget_is_rounded_down_to_mebibytes():
    assert budget(vram="8G").budget_mib == 7629


@pytest.mark.parametrize(
    ("gpu_memory", "request_", "says"),
    [
        ("16Gi", {}, "gpu_memory is for the budget of a GpuRequest, which there is not; got '16Gi'"),
        ("16 GB", {"vram": "8Gi"}, "gpu_memory must be a Kubernetes quantity"),
        (
            "16303",
            {"vram": "8Gi"},
            "gpu_memory must be the memory of one GPU with its unit, like '16303Mi'; got '16303'",
        ),
        ("16303Ti", {"vram": "8Gi"}, "gpu_memory must be the memory of one GPU"),
        ("16Gi", {"vram": "17Gi"}, "request.vram must be at least 1Mi and at most the GPU's 16384Mi; got '17Gi'"),
        (None, {"vram": "12"}, "request.vram must have a unit; got '12', which is 12 bytes; write '12Gi' or '12Mi'"),
    ],
)
def test_amounts_that_cannot_be_meant_are_refused(gpu_memory, request_, says):
    with pytest.raises(GpuConstructsError) as refused:
        budget(gpu_memory, **request_)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("profile", "shared"),
    [
        (None, False),
        (GpuProfile(), False),
        (GpuProfile(sharing=Sharing.none()), False),
        (GpuProfile(sharing=Sharing.time_slicing(replicas=4)), True),
        (GpuProfile(sharing=Sharing.mps(replicas=4)), True),
    ],
)
def test_gpus_are_shared_where_the_profile_says_so(profile, shared):
    assert is_shared(profile) is shared


@pytest.mark.parametrize(
    ("gpus", "shared"),
    [
        (2, False),
        (GpuRequest(resource="nvidia.com/gpu"), False),
        (GpuRequest(resource="nvidia.com/gpu.shared"), True),
        (GpuRequest(resource="nvidia.com/mig-1g.10gb.shared"), True),
        (GpuRequest(resource_claim="shared-gpu"), True),
    ],
    ids=str,
)
def test_slots_and_existing_claims_are_shared_whatever_the_profile_says(gpus, shared):
    assert is_shared(None, gpus) is shared
    assert is_shared(GpuProfile(sharing=Sharing.time_slicing(replicas=4)), gpus)
