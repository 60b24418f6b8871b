"""Claims, their sharing and classes of devices, as NVIDIA's driver for dynamic resource allocation reads them."""

import pytest
from cdk8s import Chart, Testing

import schemas
from gpu_constructs import (
    Backend,
    ClaimSharing,
    GpuConstructsError,
    GpuDeviceClass,
    GpuNamespace,
    GpuProfile,
    GpuRequest,
    GpuResourceClaim,
    GpuWorkload,
    Kubernetes,
    Sharing,
    Talos,
    synthesize,
)
from gpu_constructs.workload.dra import FEATURE_GATES
from gpu_constructs.workload.gpu_allocation import cel_selector
from refusals import check_refusals

SERVED = [release for release in schemas.SUPPORTED_RELEASES if int(release.split(".")[1]) >= 34]
CLAIMS, PLUGIN = GpuProfile(platform=Kubernetes(), backend=Backend.dra_claims()), GpuProfile(platform=Talos("1.12"))
EXTENDED = GpuProfile(platform=Kubernetes(), backend=Backend.dra_extended_resource())
OLDER = GpuProfile(platform=Kubernetes("1.35"), backend=Backend.dra_claims())
SLICED = GpuProfile(platform=Kubernetes(), backend=Backend.dra_claims(), sharing=Sharing.time_slicing(replicas=4))
FULL_CLAIM = {
    "request": GpuRequest(count=2, products=["NVIDIA L4"], min_vram="12Gi"),
    "sharing": ClaimSharing.mps(default_active_thread_percentage=50, default_pinned_device_memory_limit="8Gi"),
    "name": "two-of-them",
    "namespace": "research",
    "labels": {"team": "research"},
}
BIG = {"name": "big.gpu.example.com", "request": GpuRequest(products=["NVIDIA L4"], min_vram="12Gi")}
FULL_CLASS = {
    "name": "mig-1g-12gb.gpu.example.com",
    "request": GpuRequest(mig_profile="1g.12gb"),
    "extended_resource_name": "nvidia.com/mig-1g.12gb",
    "labels": {"team": "platform"},
}


def claim(chart, **given):
    return GpuResourceClaim(chart, "shared-gpu", **{"profile": CLAIMS, **given})


def device_class(chart, **given):
    return GpuDeviceClass(chart, "class", **{"profile": CLAIMS, **given})


@pytest.mark.parametrize(
    ("make", "given"),
    [(claim, {}), (claim, FULL_CLAIM), (device_class, BIG), (device_class, FULL_CLASS)],
    ids=["claim", "full-claim", "class", "full-class"],
)
def test_objects_are_as_before_and_valid_in_every_release_that_serves_them(chart, snapshot, make, given):
    make(chart, **given)
    made = Testing.synth(chart)
    assert made == snapshot
    assert [error for one in made for error in schemas.schema_errors(one, SERVED)] == []


# --- conditions on devices --------------------------------------------------------

ATTRIBUTES, CAPACITY = "device.attributes['gpu.nvidia.com']", "device.capacity['gpu.nvidia.com']"
NAME = f"{ATTRIBUTES}.productName"
WANTED = {
    "mig_profile": ("2g.20gb", f"{ATTRIBUTES}.profile == '2g.20gb'"),
    "products": (
        ["NVIDIA GeForce RTX 5070 Ti", "NVIDIA-H100-80GB-HBM3"],
        f"{NAME} in ['NVIDIA GeForce RTX 5070 Ti', 'NVIDIA H100 80GB HBM3']",
    ),
    "min_vram": ("12Gi", f"'memory' in {CAPACITY} && {CAPACITY}.memory.compareTo(quantity('12Gi')) >= 0"),
    "min_compute_capability": ("8.9", f"{ATTRIBUTES}.cudaComputeCapability.compareTo(semver('8.9.0')) >= 0"),
    "family": (
        ["hopper", "blackwell"],
        f"{ATTRIBUTES}.architecture.lowerAscii().replace(' ', '-') in ['hopper', 'blackwell']",
    ),
}


def test_each_member_of_a_request_is_a_condition_and_all_must_hold():
    for name, (value, condition) in WANTED.items():
        assert cel_selector(GpuRequest(**{name: value})) == condition
    everything = GpuRequest(**{name: value for name, (value, _) in WANTED.items()})
    assert cel_selector(everything) == " && ".join(condition for _, condition in WANTED.values())
    assert cel_selector(GpuRequest(count=2)) is None


def test_a_known_board_is_compared_as_the_driver_spells_it_and_another_in_either_spelling():
    dashed = f"{NAME}.replace(' ', '-')"
    for products, condition in (
        (["NVIDIA H200"], f"{NAME} == 'NVIDIA H200'"),
        (["nvidia h200", "H200"], f"{NAME} == 'NVIDIA H200'"),
        (["NVIDIA-Unheard-Of-SHARED"], f"{dashed} == 'NVIDIA-Unheard-Of'"),
        (["Quadro RTX 6000/8000"], f"{dashed} == 'Quadro-RTX-6000/8000'"),
        (["NVIDIA Men's"], f"{dashed} == 'NVIDIA-Men\\'s'"),
        (
            ["NVIDIA H200", "NVIDIA New One", "NVIDIA L4"],
            f"({NAME} in ['NVIDIA H200', 'NVIDIA L4'] || {dashed} == 'NVIDIA-New-One')",
        ),
    ):
        assert cel_selector(GpuRequest(products=products)) == condition


# --- claims -----------------------------------------------------------------------


def test_a_claim_names_the_class_of_what_it_wants(chart):
    backend = Backend.dra_claims(device_class="big", mig_device_class="small")
    profile = GpuProfile(platform=Kubernetes(), backend=backend)
    for request, name in ((GpuRequest(count=3), "big"), (GpuRequest(mig_profile="1g.10gb"), "small")):
        made = claim(Chart(chart, name), profile=profile, request=request).api_object.to_json()
        (exactly,) = [one["exactly"] for one in made["spec"]["devices"]["requests"]]
        assert (exactly["deviceClassName"], exactly["count"]) == (name, request.count)


@pytest.mark.parametrize("by", ["construct", "name", "api_object"])
def test_workloads_of_its_namespace_share_it(app, by):
    chart = Chart(app, "research", namespace="research")
    GpuNamespace(chart, "namespace", name="research", pod_security="restricted")
    made = claim(chart)
    given = {"construct": made, "name": made.name, "api_object": made.api_object}[by]
    for name in ("one", "two"):
        GpuWorkload(chart, name, image="a:1", profile=CLAIMS, gpus=GpuRequest(resource_claim=given), run_as_user=1000)
    pods = [m["spec"]["template"]["spec"] for m in Testing.synth(chart) if m["kind"] == "Deployment"]
    assert [pod["resourceClaims"] for pod in pods] == [[{"name": "gpu", "resourceClaimName": "shared-gpu"}]] * 2
    assert made.namespace == "research"
    synthesize(app)


def test_what_no_claim_holds_is_refused(chart):
    check_refusals(
        lambda **given: claim(chart, **given),
        [
            ({"profile": PLUGIN}, "profile.backend must be Backend.dra_claims() for a claim; got 'device-plugin'"),
            ({"profile": EXTENDED}, "profile.backend must be Backend.dra_claims() for a claim; got 'dra-extended-res"),
            ({"profile": SLICED}, "profile.sharing 'time-slicing' is the device plugin's; "),
            ({"request": GpuRequest(resource_claim="other")}, "request.resource_claim must be left out: it names a "),
            ({"request": GpuRequest(vram="8Gi")}, "request.vram must be left out of a claim: the workload that holds "),
            ({"request": GpuRequest(driver_capabilities=["video"])}, "request.driver_capabilities must be left out of"),
            ({"request": GpuRequest(resource="nvidia.com/gpu")}, "request.resource must be left out with the backend"),
            ({"name": "Shared GPU"}, "name must be a DNS subdomain"),
            ({"labels": {"a b": "c"}}, "labels has a key that is not a label key; got 'a b'"),
            ({"sharing": Sharing.mps(replicas=4)}, "sharing must be "),
            (
                {"request": GpuRequest(mig_profile="1g.10gb"), "sharing": ClaimSharing.time_slicing("Long")},
                "sharing.interval must be left out for MIG devices, which the driver gives none; got 'Long'",
            ),
        ],
        at="gpu/shared-gpu: ",
    )
    assert Testing.synth(chart) == []


# --- how the pods of a claim take turns -------------------------------------------


@pytest.mark.parametrize(
    ("sharing", "request_", "kind", "written"),
    [
        # The driver reads an interval that is not there as a broken one.
        (ClaimSharing.time_slicing(), {}, "GpuConfig", {"timeSlicingConfig": {"interval": "Default"}}),
        (ClaimSharing.time_slicing("Long"), {}, "GpuConfig", {"timeSlicingConfig": {"interval": "Long"}}),
        (ClaimSharing.time_slicing(), {"mig_profile": "1g.10gb"}, "MigDeviceConfig", {}),
        (
            ClaimSharing.mps(default_per_device_pinned_memory_limit={"0": "4Gi"}),
            {},
            "GpuConfig",
            {"mpsConfig": {"defaultPerDevicePinnedMemoryLimit": {"0": "4Gi"}}},
        ),
    ],
    ids=["default", "long", "mig", "mps"],
)
def test_the_driver_gets_its_own_structure(chart, sharing, request_, kind, written):
    made = claim(chart, request=GpuRequest(**request_), sharing=sharing).api_object.to_json()
    (config,) = made["spec"]["devices"]["config"]
    parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": kind}
    sharing_ = {"strategy": sharing.strategy, **written}
    assert config["opaque"] == {"driver": "gpu.nvidia.com", "parameters": {**parameters, "sharing": sharing_}}
    assert sharing.strategy in FEATURE_GATES


def test_sharing_that_the_driver_refuses_is_refused():
    percentage, limit = "default_active_thread_percentage", "default_pinned_device_memory_limit"
    sliced, mps = {"strategy": "TimeSlicing"}, {"strategy": "MPS"}
    check_refusals(
        ClaimSharing,
        [
            ({"strategy": "Mps"}, "sharing.strategy must be one of 'TimeSlicing', 'MPS'; got 'Mps'"),
            ({**sliced, "interval": "long"}, "sharing.interval must be one of "),
            ({**sliced, limit: "8Gi"}, f"sharing.{limit} must be left out with the strategy 'TimeSlicing'; got '8Gi'"),
            (
                {**sliced, percentage: 0},
                f"sharing.{percentage} must be left out with the strategy 'TimeSlicing'; got 0",
            ),
            ({**mps, "interval": "Long"}, "sharing.interval must be left out with the strategy 'MPS'; got 'Long'"),
            ({**mps, percentage: 101}, f"sharing.{percentage} must be at most 100, got 101"),
            ({**mps, percentage: -1}, f"sharing.{percentage} must be at least 0, got -1"),
            ({**mps, limit: "8GB"}, f"sharing.{limit} must be a Kubernetes quantity"),
            (
                {**mps, "default_per_device_pinned_memory_limit": {"0": "1Ki"}},
                "sharing.default_per_device_pinned_memory_limit['0'] must be at least '1Mi', the unit of MPS; got '1K",
            ),
        ],
    )


# --- classes ----------------------------------------------------------------------


def test_a_class_has_no_namespace_even_in_a_chart_that_has_one(app):
    made = device_class(Chart(app, "gpu", namespace="research"))
    assert "namespace" not in made.api_object.to_json()["metadata"]


def test_extended_resources_are_for_releases_that_turn_them_into_claims(chart):
    assert "extendedResourceName" not in device_class(chart, profile=OLDER).api_object.to_json()["spec"]
    with pytest.raises(GpuConstructsError, match=r"needs Kubernetes 1\.36 or later"):
        device_class(Chart(chart, "refused"), profile=OLDER, extended_resource_name="nvidia.com/gpu")


def test_what_no_class_holds_is_refused(chart):
    other = "extended_resource_name must be a domain and a name"
    check_refusals(
        lambda **given: device_class(chart, **given),
        [
            ({"profile": PLUGIN}, "profile.backend must be Backend.dra_claims() or … for a device class; got 'device-"),
            ({"request": GpuRequest(count=2)}, "request.count must be left out of a device class, … got 2; ask for se"),
            ({"request": GpuRequest(resource="nvidia.com/gpu")}, "request.resource must be left out of a device class"),
            ({"request": GpuRequest(resource_claim="a")}, "request.resource_claim must be left out of a device class"),
            ({"request": GpuRequest(vram="1Gi")}, "request.vram must be left out of a device class"),
            ({"request": GpuRequest(driver_capabilities=["all"])}, "request.driver_capabilities must be left out of a"),
            ({"name": "My Class"}, "name must be a DNS subdomain"),
            ({"name": "gpu.nvidia.com"}, "name must differ from the classes that the chart … got 'gpu.nvidia.com'"),
            ({"extended_resource_name": "gpu"}, other),
            ({"extended_resource_name": "kubernetes.io/gpu"}, other),
            ({"extended_resource_name": "requests.a.com/gpu"}, other),
            ({"extended_resource_name": "a b/c"}, "extended_resource_name has a key that is not a label key"),
            ({"labels": {"a": "b c"}}, "labels['a'] must be a label value"),
        ],
        at="gpu/class: ",
    )
    assert Testing.synth(chart) == []
