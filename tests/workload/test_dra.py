"""Claims, their sharing, and device classes, in the form of the DRA driver of NVIDIA."""

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
    synthesize,
)
from gpu_constructs.workload.dra import FEATURE_GATES
from gpu_constructs.workload.gpu_allocation import cel_selector
from refusals import check_refusals
from tables import cases

SERVED = [release for release in schemas.SUPPORTED_RELEASES if int(release.split(".")[1]) >= 34]
CLAIMS = GpuProfile(platform=Kubernetes(), backend=Backend.dra_claims())
OLDER = GpuProfile(platform=Kubernetes("1.35"), backend=Backend.dra_claims())


def claim(chart, **given):
    return GpuResourceClaim(chart, "shared-gpu", **{"profile": CLAIMS, **given})


def device_class(chart, **given):
    return GpuDeviceClass(chart, "class", **{"profile": CLAIMS, **given})


@cases
def test_objects_are_as_before_and_valid_in_every_release_that_serves_them(chart, snapshot, construct, id, given):
    construct(chart, id, profile=CLAIMS, **given)
    made = Testing.synth(chart)
    assert made == snapshot
    assert [error for one in made for error in schemas.schema_errors(one, SERVED)] == []


# --- conditions on devices --------------------------------------------------------


def test_each_member_of_a_request_is_a_condition_and_all_must_hold(rows):
    for member, value, condition in rows:
        assert cel_selector(GpuRequest(**{member: value})) == condition
    everything = GpuRequest(**{member: value for member, value, _ in rows})
    assert cel_selector(everything) == " && ".join(condition for *_, condition in rows)
    assert cel_selector(GpuRequest(count=2)) is None


def test_a_known_board_has_the_spelling_of_the_driver_and_another_has_either(rows):
    for products, condition in rows:
        assert cel_selector(GpuRequest(products=products)) == condition


# --- claims -----------------------------------------------------------------------


def test_a_claim_names_the_class_of_its_devices(chart):
    backend = Backend.dra_claims(device_class="big", mig_device_class="small")
    profile = GpuProfile(platform=Kubernetes(), backend=backend)
    for request, name in ((GpuRequest(count=3), "big"), (GpuRequest(mig_profile="1g.10gb"), "small")):
        made = claim(Chart(chart, name), profile=profile, request=request).api_object.to_json()
        (exactly,) = [one["exactly"] for one in made["spec"]["devices"]["requests"]]
        assert (exactly["deviceClassName"], exactly["count"]) == (name, request.count)


@pytest.mark.parametrize("by", ["construct", "name", "api_object"])
def test_workloads_of_a_namespace_share_its_claim(app, by):
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


def test_requests_that_a_claim_cannot_express_are_rejected(chart, rows):
    check_refusals(lambda **given: claim(chart, **given), rows, at="gpu/shared-gpu: ")
    assert Testing.synth(chart) == []


# --- how the pods of a claim take turns -------------------------------------------


@cases
def test_sharing_is_written_in_the_form_of_the_driver(chart, sharing, request_, kind, written):
    made = claim(chart, request=GpuRequest(**request_), sharing=sharing).api_object.to_json()
    (config,) = made["spec"]["devices"]["config"]
    parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": kind}
    sharing_ = {"strategy": sharing.strategy, **written}
    assert config["opaque"] == {"driver": "gpu.nvidia.com", "parameters": {**parameters, "sharing": sharing_}}
    assert sharing.strategy in FEATURE_GATES


def test_sharing_that_the_driver_would_reject_is_rejected(rows):
    check_refusals(ClaimSharing, rows)


# --- classes ----------------------------------------------------------------------


def test_a_class_has_no_namespace_even_in_a_chart_that_has_one(app):
    made = device_class(Chart(app, "gpu", namespace="research"))
    assert "namespace" not in made.api_object.to_json()["metadata"]


def test_extended_resources_need_a_release_that_turns_them_into_claims(chart):
    assert "extendedResourceName" not in device_class(chart, profile=OLDER).api_object.to_json()["spec"]
    with pytest.raises(GpuConstructsError, match=r"needs Kubernetes 1\.36 or later"):
        device_class(Chart(chart, "refused"), profile=OLDER, extended_resource_name="nvidia.com/gpu")


def test_requests_that_a_class_cannot_express_are_rejected(chart, rows):
    check_refusals(lambda **given: device_class(chart, **given), rows, at="gpu/class: ")
    assert Testing.synth(chart) == []
