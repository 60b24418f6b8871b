import warnings

import pytest

from gpu_constructs import GpuRequest
from gpu_constructs.catalog.gpu_models import GPU_MODELS, known_board, product_label
from refusals import check_refusals


def test_any_single_gpu_is_the_default():
    request = GpuRequest()
    assert (request.count, request.selects) == (1, False)
    assert (request.families, request.min_mib, request.compute_capability) == ((), None, None)


@pytest.mark.parametrize(
    ("wishes", "annotations"),
    [
        ({}, {}),
        ({"vram": "8Gi"}, {"gpu-constructs/vram": "8Gi"}),
        (
            {"vram": "8Gi", "vram_typical": "8192Mi"},
            {"gpu-constructs/vram": "8Gi", "gpu-constructs/vram-typical": "8192Mi"},
        ),
        ({"vram": "8Gi", "vram_typical": "0"}, {"gpu-constructs/vram": "8Gi", "gpu-constructs/vram-typical": "0"}),
    ],
)
def test_what_is_taken_at_most_and_most_of_the_time_is_written_where_it_is_said(wishes, annotations):
    assert GpuRequest(**wishes).annotations == annotations


@pytest.mark.parametrize(
    ("quantity", "mebibytes"), [("12Gi", 12288), ("12G", 11445), ("1k", 1), ("16303Mi", 16303), ("0.5Gi", 512)]
)
def test_memory_is_counted_in_whole_mebibytes_and_never_less(quantity, mebibytes):
    assert GpuRequest(min_vram=quantity).min_mib == mebibytes


@pytest.mark.parametrize(
    ("product", "label"),
    [
        ("NVIDIA GeForce RTX 5070 Ti", "NVIDIA-GeForce-RTX-5070-Ti"),
        ("NVIDIA-GeForce-RTX-5070-Ti", "NVIDIA-GeForce-RTX-5070-Ti"),
        ("NVIDIA-GeForce-RTX-5070-Ti-SHARED", "NVIDIA-GeForce-RTX-5070-Ti"),
        ("RTX 5070 Ti", "NVIDIA-GeForce-RTX-5070-Ti"),
        ("NVIDIA RTX 4090", "NVIDIA-GeForce-RTX-4090"),
        ("NVIDIA-RTX-4090", "NVIDIA-GeForce-RTX-4090"),
        ("L4", "NVIDIA-L4"),
        ("T4", "Tesla-T4"),
        ("nvidia h100 80gb hbm3", "NVIDIA-H100-80GB-HBM3"),
        ("NVIDIA-A100-SXM4-80GB-SHARED", "NVIDIA-A100-SXM4-80GB"),
        ("NVIDIA A100-SXM4-80GB", "NVIDIA-A100-SXM4-80GB"),
        ("A Board (of  nobody)", "A-Board-of-nobody"),
    ],
)
def test_a_board_is_called_as_its_node_label_says(product, label):
    assert product_label(product) == label


def test_a_profile_in_the_spelling_of_a_resource_is_the_same_profile():
    assert GpuRequest(mig_profile="1g.10gb.me") == GpuRequest(mig_profile="1g.10gb+me")


def test_wants_that_a_board_can_meet_together_are_taken():
    for given in (
        {"resource": "nvidia.com/gpu"},
        {"resource": "nvidia.com/gpu.shared"},
        {"resource": "nvidia.com/mig-1g.10gb"},
        {"resource": "nvidia.com/mig-1g.10gb.me"},
        {"resource": "nvidia.com/mig-1g.10gb.shared"},
        {"resource": "gpu.example.com/big"},
        {"mig_profile": "1g.10gb", "min_vram": "10Gi", "vram": "10Gi"},
        {"mig_profile": "1g.10gb", "products": ["NVIDIA A100-SXM4-80GB", "NVIDIA L4"]},
        {"mig_profile": "1g.10gb", "products": ["NVIDIA L4", "NVIDIA board that nobody knows"]},
        {"mig_profile": "1g.23gb", "products": ["NVIDIA B200"]},
        {"driver_capabilities": ["all"]},
        {"driver_capabilities": ["compute", "video"]},
        {"products": ["NVIDIA L4", "NVIDIA H200"], "min_vram": "100Gi"},
        {"products": ["NVIDIA L4"], "family": ["ada-lovelace", "hopper"], "min_compute_capability": "8.9"},
        {"products": ["NVIDIA board that nobody knows"], "family": "turing", "min_vram": "900Gi"},
        {"family": "ampere", "min_compute_capability": "8.6"},
        {"family": "blackwell", "min_compute_capability": "12.1"},
        {"family": ["turing", "hopper"], "min_compute_capability": "9.0"},
        {"resource_claim": "shared-gpu", "vram": "4Gi"},
    ):
        GpuRequest(**given)


def test_what_no_board_could_meet_is_refused():
    quantity = "must be a Kubernetes quantity like '500m' or '16Gi'; got"
    large = "has; got '{}'; ask for less, or for a larger profile"
    other = "request.mig_profile must be one of a board of request.products; got '1g.10gb', where"
    l4, claim = "NVIDIA L4", {"resource_claim": "gpu"}
    check_refusals(
        GpuRequest,
        [
            ({"count": 0}, "request.count must be at least 1, got 0; a pod without a GPU asks for none"),
            ({"count": True}, "request.count must be an int, got True (bool); a pod without a GPU asks for none"),
            ({"count": 1.0}, "request.count must be an int, got 1.0 (float); … share GPUs with … and ask for 1"),
            ({"resource": "gpu"}, "request.resource must be a domain and a name, … got 'gpu'"),
            ({"resource": "kubernetes.io/gpu"}, "request.resource"),
            ({"resource": "nvidia.com/a b"}, "request.resource"),
            (
                {"mig_profile": "1g.10gb", "min_vram": "40Gi"},
                f"request.min_vram must be at most the 10 GB that a MIG device '1g.10gb' {large.format('40Gi')}",
            ),
            (
                {"resource": "nvidia.com/mig-1g.10gb.me", "vram": "20Gi"},
                f"request.vram must be at most the 10 GB that a MIG device '1g.10gb' {large.format('20Gi')}",
            ),
            (
                {"mig_profile": "1g.10gb", "products": ["NVIDIA GeForce RTX 4090"]},
                f"{other} NVIDIA GeForce RTX 4090 has no MIG; take another profile or other boards",
            ),
            (
                {"mig_profile": "1g.10gb+me", "products": ["NVIDIA-H200", l4]},
                f"{other} NVIDIA H200 or NVIDIA L4 has 1g.18gb, 1g.35gb, 2g.35gb, 3g.71gb, 4g.71gb, 7g.141gb; take",
            ),
            (
                {"resource": "nvidia.com/gpu", "mig_profile": "1g.10gb"},
                "request.resource and request.mig_profile must n",
            ),
            ({"min_vram": "12GB"}, f"request.min_vram {quantity} '12GB'"),
            ({"vram": "lots"}, f"request.vram {quantity} 'lots'"),
            ({"vram": "8Gi", "vram_typical": "few"}, f"request.vram_typical {quantity} 'few'"),
            ({"vram_typical": "6Gi"}, "request.vram_typical needs request.vram, … got '6Gi' alone; pass both"),
            (
                {"vram": "8Gi", "vram_typical": "8193Mi"},
                "request.vram_typical must be at most request.vram of '8Gi'; go",
            ),
            ({"min_compute_capability": "9"}, "request.min_compute_capability must be like '8.9', … got '9'"),
            ({"min_compute_capability": 8.9}, "request.min_compute_capability"),
            ({"products": l4}, "request.products must be a list, got 'NVIDIA L4' (str)"),
            ({"products": [""]}, "request.products[0] must name a board; got ''"),
            ({"products": ["()"]}, "request.products[0] must name a board; got '()'"),
            ({"family": "amper"}, "request.family"),
            ({"family": ["hopper", "amper"]}, "request.family"),
            ({"driver_capabilities": ["vidio"]}, "request.driver_capabilities"),
            (
                {"driver_capabilities": ["all", "video"]},
                "request.driver_capabilities must be 'all' or a list without it",
            ),
            ({**claim, "count": 2}, "request.count must be left out beside request.resource_claim, … got 2"),
            *(
                ({**claim, name: value}, f"request.{name} and request.resource_claim must not both be given")
                for name, value in {
                    "resource": "nvidia.com/gpu",
                    "mig_profile": "1g.10gb",
                    "products": [l4],
                    "min_vram": "1Gi",
                    "min_compute_capability": "8.0",
                    "family": "hopper",
                }.items()
            ),
            (
                {"products": ["NVIDIA GeForce RTX 5070 Ti"], "min_vram": "16Gi"},
                "request.min_vram of 16Gi is more than any of … reports 16303 MiB; ask for less, e.g. '16303Mi'",
            ),
            (
                {"products": [l4], "family": "hopper"},
                "request.family hopper is none of … which are ada-lovelace; leave ",
            ),
            (
                {"products": ["NVIDIA GeForce RTX 3090", l4], "min_compute_capability": "9.0"},
                "request.min_compute_capability 9.0 is more than any of … which are ada-lovelace and ampere; leave one",
            ),
            (
                {"family": "turing", "min_compute_capability": "8.9"},
                "request.min_compute_capability 8.9 is more than any board of request.family turing has; leave one",
            ),
            ({"cuont": 2}, "cuont is not a member of GpuRequest (did you mean 'count'?)"),
            *(
                ({"products": [l4, part]}, f"request.products[1] must be a board's whole name … got {part!r} {near}")
                for part, near in {
                    "H100": "(did you mean 'NVIDIA H100 80GB HBM3' or 'NVIDIA H100 NVL' or 'NVIDIA H100 PCIe'",
                    "A100 40GB": "(did you mean 'NVIDIA A100-PCIE-40GB' or 'NVIDIA A100-SXM4-40GB'",
                    "GeForce RTX 4099": "(did you mean 'NVIDIA GeForce RTX 4090'",
                }.items()
            ),
        ],
    )


@pytest.mark.parametrize(
    ("product", "near"), [("NVIDIA H200 141GB", None), ("NVIDIA A100", "(did you mean 'NVIDIA A100-"), ("zzz", "")]
)
def test_a_name_that_no_node_may_have_is_told_with_the_nearest_ones(product, near):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        GpuRequest(products=["NVIDIA L4", product])
    assert [near is not None] == [bool(told)]
    for one in told:
        assert str(one.message).startswith(f"request.products[1] {product!r} is not the name of a known board")
        assert near in str(one.message)
        assert one.filename == __file__


def test_no_two_boards_are_spelled_alike():
    assert [known_board(name) for name in GPU_MODELS] == list(GPU_MODELS.values())
    assert [known_board(product_label(name).casefold()) for name in GPU_MODELS] == list(GPU_MODELS.values())


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ({}, None),
        ({"resource": "nvidia.com/gpu"}, None),
        ({"mig_profile": "1g.10gb+me"}, "1g.10gb"),
        ({"resource": "nvidia.com/mig-3g.40gb.shared"}, "3g.40gb"),
        ({"resource": "nvidia.com/mig-of-mine"}, None),
    ],
    ids=str,
)
def test_the_size_of_a_mig_device_is_known_however_it_was_asked_for(given, size):
    assert GpuRequest(**given).mig_size == size
