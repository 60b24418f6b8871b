import pytest

import refusals
from gpu_constructs.kube.resources import container_resources

DEFAULT = {"requests": {"cpu": "1"}, "limits": {"memory": "16Gi"}}


def refusal(given, **more):
    return refusals.refusal(container_resources, given, default=DEFAULT, **more)


def test_other_extended_resources_pass():
    given = {"limits": {"hugepages-2Mi": "100Mi", "example.com/nic": 1}}
    assert container_resources(given, default=DEFAULT) == {"limits": {"hugepages-2Mi": "100Mi", "example.com/nic": "1"}}


def test_a_misspelt_section_is_refused_with_the_one_that_was_meant():
    assert refusal({"limit": {"cpu": "1"}}) == (
        "resources key must be one of 'requests', 'limits'; got 'limit' (did you mean 'limits'?)"
    )


def test_true_is_no_amount():
    assert refusal({"limits": {"cpu": True}}) == (
        "resources['limits']['cpu'] must be a Kubernetes quantity like '500m'; got True"
    )


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"])
def test_a_gpu_is_asked_for_with_the_keyword_of_the_pod_if_it_has_one(resource):
    field = f"resources['limits'][{resource!r}] must not be set here; got 1;"
    assert refusal({"limits": {resource: 1}}, has_gpus=True) == f"{field} ask for GPUs with gpus="
    assert refusal({"limits": {resource: 1}}) == (
        f"{field} leave it out: this pod needs no GPU of its own, and would take one from the workloads"
    )
