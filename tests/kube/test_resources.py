import pytest

import refusals
from gpu_constructs.kube.resources import container_resources

DEFAULT = {"requests": {"cpu": "1"}, "limits": {"memory": "16Gi"}}


def refusal(given, **more):
    return refusals.refusal(container_resources, given, default=DEFAULT, **more)


def test_other_extended_resources_are_accepted():
    given = {"limits": {"hugepages-2Mi": "100Mi", "example.com/nic": 1}}
    assert container_resources(given, default=DEFAULT) == {"limits": {"hugepages-2Mi": "100Mi", "example.com/nic": "1"}}


def test_a_misspelled_section_is_rejected_with_a_suggestion():
    assert refusal({"limit": {"cpu": "1"}}) == (
        "resources key must be one of 'requests', 'limits', got 'limit' (did you mean 'limits'?)"
    )


def test_true_is_not_an_amount():
    assert refusal({"limits": {"cpu": True}}) == (
        "resources['limits']['cpu'] must be a Kubernetes quantity like '500m', got True"
    )


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"])
def test_a_gpu_in_resources_is_rejected_with_the_keyword_of_the_pod(resource):
    field = f"resources['limits'][{resource!r}] must be absent here, got 1."
    assert refusal({"limits": {resource: 1}}, has_gpus=True) == f"{field} Request GPUs with gpus="
    assert refusal({"limits": {resource: 1}}) == (f"{field} Leave it out: this pod needs no GPU")
