import pytest

import schemas
from gpu_constructs.workload.backend import Backend
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.resource_claim import cel_selector, device_claim, resource_claim_template

ATTRIBUTES, CAPACITY = "device.attributes['gpu.nvidia.com']", "device.capacity['gpu.nvidia.com']"
SERVING = [release for release in schemas.SUPPORTED_RELEASES if int(release.split(".")[1]) >= 34]
WISHES = {
    "mig_profile": "2g.20gb",
    "products": ["NVIDIA GeForce RTX 5070 Ti", "NVIDIA-H100-80GB-HBM3"],
    "min_vram": "12Gi",
    "min_compute_capability": "8.9",
    "family": ["hopper", "blackwell"],
}
SAID = {
    "mig_profile": f"{ATTRIBUTES}.profile == '2g.20gb'",
    "products": f"{ATTRIBUTES}.productName in ['NVIDIA GeForce RTX 5070 Ti', 'NVIDIA H100 80GB HBM3']",
    "min_vram": f"'memory' in {CAPACITY} && {CAPACITY}.memory.compareTo(quantity('12Gi')) >= 0",
    "min_compute_capability": f"{ATTRIBUTES}.cudaComputeCapability.compareTo(semver('8.9.0')) >= 0",
    "family": f"{ATTRIBUTES}.architecture.lowerAscii().replace(' ', '-') in ['hopper', 'blackwell']",
}


CLAIMS = Backend.dra_claims()


def exactly(request, backend=CLAIMS):
    (only,) = device_claim(request, backend)["devices"]["requests"]
    return only["exactly"]


def test_any_gpu_needs_no_condition():
    assert cel_selector(GpuRequest(count=2)) is None
    assert exactly(GpuRequest(count=2))["selectors"] is None


@pytest.mark.parametrize("name", WISHES)
def test_every_wish_is_a_condition_on_the_device(name):
    assert cel_selector(GpuRequest(**{name: WISHES[name]})) == SAID[name]


@pytest.mark.parametrize(
    ("products", "condition"),
    [
        (["NVIDIA H200"], f"{ATTRIBUTES}.productName == 'NVIDIA H200'"),
        (["nvidia h200", "H200"], f"{ATTRIBUTES}.productName == 'NVIDIA H200'"),
        (["NVIDIA-Unheard-Of-SHARED"], f"{ATTRIBUTES}.productName.replace(' ', '-') == 'NVIDIA-Unheard-Of'"),
        (["Quadro RTX 6000/8000"], f"{ATTRIBUTES}.productName.replace(' ', '-') == 'Quadro-RTX-6000/8000'"),
        (["NVIDIA Men's"], f"{ATTRIBUTES}.productName.replace(' ', '-') == 'NVIDIA-Men\\'s'"),
        (
            ["NVIDIA H200", "NVIDIA New One", "NVIDIA L4"],
            f"({ATTRIBUTES}.productName in ['NVIDIA H200', 'NVIDIA L4'] || "
            f"{ATTRIBUTES}.productName.replace(' ', '-') == 'NVIDIA-New-One')",
        ),
    ],
    ids=str,
)
def test_a_known_board_is_compared_as_the_driver_spells_it_and_another_in_either_spelling(products, condition):
    assert cel_selector(GpuRequest(products=products)) == condition


def test_several_wishes_must_all_hold():
    assert cel_selector(GpuRequest(**WISHES)) == " && ".join(SAID.values())


def test_a_profile_has_its_plus_whatever_its_spelling():
    assert cel_selector(GpuRequest(mig_profile="1g.10gb.me")) == f"{ATTRIBUTES}.profile == '1g.10gb+me'"


def test_a_claim_names_the_class_of_what_it_wants_and_how_many():
    backend = Backend.dra_claims(device_class="big", mig_device_class="small")
    whole, part = exactly(GpuRequest(count=3), backend), exactly(GpuRequest(mig_profile="1g.10gb"), backend)
    assert (whole["deviceClassName"], whole["allocationMode"], whole["count"]) == ("big", "ExactCount", 3)
    assert (part["deviceClassName"], part["count"]) == ("small", 1)


@pytest.mark.parametrize("wishes", [{}, WISHES], ids=["any", "certain"])
def test_the_template_is_valid_in_every_release_that_serves_it(wishes):
    claim = device_claim(GpuRequest(**wishes), Backend.dra_claims())
    (request,) = claim["devices"]["requests"]
    request["exactly"] = {name: value for name, value in request["exactly"].items() if value is not None}
    template = resource_claim_template({"name": "app-gpu"}, claim)
    assert schemas.schema_errors(template, SERVING) == []
    assert schemas.schema_errors(template, ["1.33"]) != []
