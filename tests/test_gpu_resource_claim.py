import cdk8s_plus_27 as kplus
import pytest
from cdk8s import ApiObject, ApiObjectMetadata, Chart, Testing

import schemas
from gpu_constructs import GpuConstructsError, GpuNamespace, GpuWorkload, Kubernetes, Sharing, Talos, synthesize
from gpu_constructs.workload.backend import Backend
from gpu_constructs.workload.claim_sharing import ClaimSharing
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.gpu_resource_claim import GpuResourceClaim

DRA = GpuProfile(platform=Kubernetes(), backend=Backend.dra_claims())
SERVED = [release for release in schemas.SUPPORTED_RELEASES if int(release.split(".")[1]) >= 34]
FULL = {
    "request": GpuRequest(count=2, products=["NVIDIA L4"], min_vram="12Gi"),
    "sharing": ClaimSharing.mps(default_active_thread_percentage=50, default_pinned_device_memory_limit="8Gi"),
    "name": "two-of-them",
    "namespace": "research",
    "labels": {"team": "research"},
}


def claim(chart, **given):
    return GpuResourceClaim(chart, "shared-gpu", **{"profile": DRA, **given})


def request_of(made):
    (request,) = made.api_object.to_json()["spec"]["devices"]["requests"]
    return request["exactly"]


def test_the_claim_is_as_before(chart, snapshot):
    claim(chart)
    assert Testing.synth(chart) == snapshot


def test_the_claim_with_everything_said_is_as_before(chart, snapshot):
    claim(chart, **FULL)
    assert Testing.synth(chart) == snapshot


@pytest.mark.parametrize("given", [{}, FULL], ids=["default", "full"])
def test_every_release_that_serves_claims_takes_it(chart, given):
    claim(chart, **given)
    assert [error for made in Testing.synth(chart) for error in schemas.schema_errors(made, SERVED)] == []


def test_it_asks_for_any_one_gpu_and_for_the_classes_of_the_profile(chart):
    assert (request_of(claim(chart))["count"], request_of(claim(Chart(chart, "b")))["deviceClassName"]) == (
        1,
        "gpu.nvidia.com",
    )
    own = GpuProfile(platform=Kubernetes(), backend=Backend.dra_claims(device_class="big.gpu.example.com"))
    assert request_of(claim(Chart(chart, "c"), profile=own))["deviceClassName"] == "big.gpu.example.com"


def test_settings_of_sharing_are_for_the_claim_s_own_request(chart):
    made = claim(chart, sharing=ClaimSharing.time_slicing("Long")).api_object.to_json()["spec"]["devices"]
    assert [config["requests"] for config in made["config"]] == [[request["name"] for request in made["requests"]]]


def test_mig_devices_have_settings_of_their_own_kind(chart):
    made = claim(chart, request=GpuRequest(mig_profile="1g.10gb"), sharing=ClaimSharing.time_slicing())
    devices = made.api_object.to_json()["spec"]["devices"]
    assert devices["config"][0]["opaque"]["parameters"]["kind"] == "MigDeviceConfig"
    assert request_of(made)["deviceClassName"] == "mig.nvidia.com"


@pytest.mark.parametrize("by", ["construct", "name", "api_object"])
def test_workloads_of_its_namespace_share_it(app, by):
    chart = Chart(app, "research", namespace="research")
    GpuNamespace(chart, "namespace", name="research", pod_security="restricted")
    made = claim(chart)
    given = {"construct": made, "name": made.name, "api_object": made.api_object}[by]
    for name in ("one", "two"):
        GpuWorkload(chart, name, image="a:1", profile=DRA, gpus=GpuRequest(resource_claim=given), run_as_user=1000)
    pods = [m["spec"]["template"]["spec"] for m in Testing.synth(chart) if m["kind"] == "Deployment"]
    assert [pod["resourceClaims"] for pod in pods] == [[{"name": "gpu", "resourceClaimName": "shared-gpu"}]] * 2
    assert made.namespace == "research"
    synthesize(app)


@pytest.mark.parametrize("of", ["text", "GpuNamespace", "cdk8s-plus", "chart", "none"])
def test_its_namespace_is_the_one_given_else_the_chart_s(app, of):
    chart = Chart(app, "gpu", namespace="of-chart" if of == "chart" else None)
    given = {
        "text": lambda: "research",
        "GpuNamespace": lambda: GpuNamespace(chart, "namespace", name="research"),
        "cdk8s-plus": lambda: kplus.Namespace(chart, "namespace", metadata=ApiObjectMetadata(name="research")),
    }.get(of, lambda: None)()
    wanted = {"chart": "of-chart", "none": "default"}.get(of, "research")
    made = claim(chart, namespace=given)
    assert (made.namespace, ApiObject.of(made).to_json()["metadata"]["namespace"]) == (wanted, wanted)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"profile": GpuProfile(platform=Talos("1.12"))},
            "profile.backend must be Backend.dra_claims() for a claim; got 'device-plugin'",
        ),
        (
            {"profile": GpuProfile(platform=Kubernetes(), backend=Backend.dra_extended_resource())},
            "profile.backend must be Backend.dra_claims() for a claim; got 'dra-extended-resource'",
        ),
        (
            {
                "profile": GpuProfile(
                    platform=Kubernetes(), backend=Backend.dra_claims(), sharing=Sharing.time_slicing(replicas=4)
                )
            },
            "profile.sharing 'time-slicing' is the device plugin's; ",
        ),
        (
            {"request": GpuRequest(resource_claim="other")},
            "request.resource_claim must be left out: it names a claim, and this is one",
        ),
        (
            {"request": GpuRequest(vram="8Gi")},
            "request.vram must be left out of a claim: the workload that holds the GPU says what it takes",
        ),
        ({"request": GpuRequest(driver_capabilities=["video"])}, "request.driver_capabilities must be left out of a "),
        ({"request": GpuRequest(resource="nvidia.com/gpu")}, "request.resource must be left out with the backend "),
        ({"name": "Shared GPU"}, "name must be a DNS subdomain"),
        ({"labels": {"a b": "c"}}, "labels has a key that is no label key; got 'a b'"),
        ({"sharing": Sharing.mps(replicas=4)}, "sharing must be "),
        (
            {"request": GpuRequest(mig_profile="1g.10gb"), "sharing": ClaimSharing.time_slicing("Long")},
            "sharing.interval must be left out for MIG devices",
        ),
    ],
    ids=str,
)
def test_what_no_claim_holds_is_refused_in_one_line(chart, given, message):
    with pytest.raises(GpuConstructsError) as refused:
        claim(chart, **given)
    assert refused.value.problem.startswith(message)
    assert len(str(refused.value).splitlines()) == 1
    assert Testing.synth(chart) == []
