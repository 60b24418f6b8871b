import pytest
from cdk8s import Chart, Testing

import schemas
from gpu_constructs import GpuConstructsError, Kubernetes, Talos
from gpu_constructs.workload.backend import Backend
from gpu_constructs.workload.gpu_device_class import GpuDeviceClass
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.gpu_request import GpuRequest

DRA = GpuProfile(platform=Kubernetes("1.36"), backend=Backend.dra_claims())
MIG = {
    "name": "mig-1g-12gb.gpu.example.com",
    "request": GpuRequest(mig_profile="1g.12gb"),
    "extended_resource_name": "nvidia.com/mig-1g.12gb",
    "labels": {"team": "platform"},
}


def device_class(chart, **given):
    return GpuDeviceClass(chart, "class", **{"profile": DRA, **given})


def spec_of(made):
    return made.api_object.to_json()["spec"]


def test_the_class_is_as_before(chart, snapshot):
    device_class(chart, name="big.gpu.example.com", request=GpuRequest(products=["NVIDIA L4"], min_vram="12Gi"))
    assert Testing.synth(chart) == snapshot


def test_the_class_with_everything_said_is_as_before(chart, snapshot):
    device_class(chart, **MIG)
    assert Testing.synth(chart) == snapshot


@pytest.mark.parametrize(("given", "first"), [({}, 34), (MIG, 34)], ids=["default", "full"])
def test_every_release_that_serves_classes_takes_it(chart, given, first):
    device_class(chart, **given)
    served = [release for release in schemas.SUPPORTED_RELEASES if int(release.split(".")[1]) >= first]
    assert [error for made in Testing.synth(chart) for error in schemas.schema_errors(made, served)] == []


def test_it_has_no_namespace_even_in_a_chart_that_has_one(app):
    made = device_class(Chart(app, "gpu", namespace="research"))
    assert "namespace" not in made.api_object.to_json()["metadata"]


def test_claims_may_ask_for_it(chart):
    made = device_class(chart, name="big.gpu.example.com")
    assert Backend.dra_claims(device_class=made.name).device_class == "big.gpu.example.com"


def test_extended_resources_are_for_releases_that_turn_them_into_claims(chart):
    named = {"extended_resource_name": "nvidia.com/gpu"}
    assert spec_of(device_class(chart, **named))["extendedResourceName"] == "nvidia.com/gpu"
    older = GpuProfile(platform=Kubernetes("1.35"), backend=Backend.dra_claims())
    assert "extendedResourceName" not in spec_of(device_class(Chart(chart, "claims"), profile=older))
    with pytest.raises(GpuConstructsError, match=r"needs Kubernetes 1\.36 or later"):
        device_class(Chart(chart, "refused"), profile=older, **named)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"profile": GpuProfile(platform=Talos("1.12"))},
            "profile.backend must be Backend.dra_claims() or Backend.dra_extended_resource() for a device class; got "
            "'device-plugin'",
        ),
        (
            {"request": GpuRequest(count=2)},
            "request.count must be left out of a device class, which devices belong to one by one; got 2; ask for "
            "several in the workload",
        ),
        (
            {"request": GpuRequest(resource="nvidia.com/gpu")},
            "request.resource must be left out of a device class, which holds devices alone",
        ),
        ({"request": GpuRequest(resource_claim="a")}, "request.resource_claim must be left out of a device class"),
        ({"request": GpuRequest(vram="1Gi")}, "request.vram must be left out of a device class"),
        ({"request": GpuRequest(driver_capabilities=["all"])}, "request.driver_capabilities must be left out of a "),
        ({"name": "My Class"}, "name must be a DNS subdomain"),
        (
            {"name": "gpu.nvidia.com"},
            "name must differ from the classes that the chart of NVIDIA's driver makes; got 'gpu.nvidia.com'",
        ),
        ({"extended_resource_name": "gpu"}, "extended_resource_name must be a domain and a name"),
        ({"extended_resource_name": "kubernetes.io/gpu"}, "extended_resource_name must be a domain and a name"),
        ({"extended_resource_name": "requests.a.com/gpu"}, "extended_resource_name must be a domain and a name"),
        ({"extended_resource_name": "a b/c"}, "extended_resource_name has a key that is no label key"),
        ({"labels": {"a": "b c"}}, "labels['a'] must be a label value"),
    ],
    ids=str,
)
def test_what_no_class_holds_is_refused_in_one_line(chart, given, message):
    with pytest.raises(GpuConstructsError) as refused:
        device_class(chart, **given)
    assert refused.value.problem.startswith(message)
    assert len(str(refused.value).splitlines()) == 1
    assert Testing.synth(chart) == []
