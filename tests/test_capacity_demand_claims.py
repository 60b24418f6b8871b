import pytest

from capacity_manifests import found, gpu, manifest, one, template, told
from gpu_constructs.capacity.consumer import Choice

TEMPLATE = "resource.k8s.io/v1 ResourceClaimTemplate"
CLAIM = "resource.k8s.io/v1 ResourceClaim"
DEPLOYMENT = "apps/v1 Deployment"
VRAM = "gpu-constructs/vram"


def requests(*given):
    return {"devices": {"requests": list(given)}}


def exactly(count=None, name="gpu", device_class="gpu.nvidia.com", **more):
    counted = {} if count is None else {"count": count}
    return {"name": name, "exactly": {"deviceClassName": device_class, **counted, **more}}


def claims(*names, kind="resourceClaimTemplateName", containers=1, **more):
    held = [{"name": f"c{index}", kind: name} for index, name in enumerate(names)]
    holding = [
        {"name": str(n), "resources": {"claims": [{"name": h["name"]} for h in held]}} for n in range(containers)
    ]
    return {"template": template(*holding, resourceClaims=held), **more}


def asking(*given, **more):
    return one(manifest(TEMPLATE, {"spec": requests(*given)}, name="t"), manifest(DEPLOYMENT, claims("t"), **more))


def test_a_template_gives_each_pod_devices_of_its_own():
    consumer = asking(exactly(2), exactly(name="mig", device_class="mig.nvidia.com"))
    assert consumer.asks == {"gpu.nvidia.com": 2, "mig.nvidia.com": 1}
    assert (consumer.subject, consumer.kind) == (1, "Deployment")


def test_the_oldest_api_writes_a_request_flat():
    assert asking({"name": "gpu", "deviceClassName": "gpu.nvidia.com", "count": 3}).asks == {"gpu.nvidia.com": 3}


def test_several_choices_are_kept_in_their_order():
    choices = [{"name": "a", "deviceClassName": "mig.nvidia.com", "count": 2}, {"deviceClassName": "gpu.nvidia.com"}]
    consumer = asking({"name": "gpu", "firstAvailable": choices})
    assert consumer.asks == {"mig.nvidia.com": 2}
    assert consumer.choices == (Choice({"mig.nvidia.com": 2}), Choice({"gpu.nvidia.com": 1}))
    assert "of the choices of its request gpu each node gives the first that it has" in told(consumer)


def test_all_devices_of_a_node_are_left_to_the_node():
    consumer = asking(exactly(allocationMode="All"))
    assert consumer.choices == (Choice({"gpu.nvidia.com": 1}, frozenset(["gpu.nvidia.com"])),)


def test_conditions_are_told_to_be_left_out():
    assert "conditions" in told(asking(exactly(selectors=[{"cel": {"expression": "true"}}])))
    assert "conditions" not in told(asking(exactly()))


def test_access_for_monitoring_takes_nothing():
    assert asking(exactly(), exactly(name="all", adminAccess=True)).asks == {"gpu.nvidia.com": 1}


def test_what_is_no_gpu_is_left_out():
    consumer = asking(exactly(), exactly(name="nic", device_class="rdma.example.com"))
    assert consumer.asks == {"gpu.nvidia.com": 1}
    assert "rdma.example.com, which is not known to be GPUs" in told(consumer)


def test_a_class_of_the_app_is_gpus_where_its_condition_says_so():
    selectors = [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]
    big = manifest("resource.k8s.io/v1 DeviceClass", {"selectors": selectors, "extendedResourceName": "a.b/c"}, "big")
    wants = manifest(TEMPLATE, {"spec": requests(exactly(device_class="big"))}, name="t")
    assert one(big, wants, manifest(DEPLOYMENT, claims("t"))).asks == {"big": 1}
    assert one(big, manifest(DEPLOYMENT, {"template": template(gpu(2, resource="a.b/c"))})).asks == {"a.b/c": 2}


@pytest.mark.parametrize("name", ["gpu.nvidia.com", "mig.nvidia.com"])
def test_a_resource_made_of_a_class_counts_as_the_class(name):
    resource = f"deviceclass.resource.kubernetes.io/{name}"
    assert one(manifest(DEPLOYMENT, {"template": template(gpu(2, resource=resource))})).asks == {name: 2}


def test_a_template_of_another_namespace_is_not_meant():
    other = manifest(TEMPLATE, {"spec": requests(exactly())}, name="t", namespace="other")
    assert found(other, manifest(DEPLOYMENT, claims("t"))) == []


def test_an_unknown_template_counts_where_the_pod_takes_gpu_memory():
    consumer = one(manifest(DEPLOYMENT, claims("t"), annotations={VRAM: "4Gi"}))
    assert consumer.asks == {"gpu.nvidia.com": 1}
    assert "ResourceClaimTemplate t, which is not in this app" in told(consumer)
    assert found(manifest(DEPLOYMENT, claims("t"))) == []


def test_containers_that_share_a_device_share_the_memory_of_their_pod():
    wants = manifest(TEMPLATE, {"spec": requests(exactly())}, name="t")
    consumer = one(wants, manifest(DEPLOYMENT, claims("t", containers=3), annotations={VRAM: "1Gi"}))
    assert (consumer.asks, consumer.vram_mib) == ({"gpu.nvidia.com": 1}, 1024)


def by_name(*names, **more):
    return claims(*names, kind="resourceClaimName", **more)


def test_a_claim_by_name_is_one_consumer_of_all_that_hold_it():
    first = manifest(DEPLOYMENT, by_name("shared", replicas=2), name="a", annotations={VRAM: "2Gi"})
    second = manifest("batch/v1 Job", by_name("shared"), name="b", annotations={VRAM: "1Gi"})
    claim = manifest(CLAIM, requests(exactly()), name="shared")
    consumer = one(first, claim, second)
    assert (consumer.subject, consumer.kind, consumer.name) == (1, "ResourceClaim", "shared")
    assert (consumer.asks, consumer.pods, consumer.least_pods) == ({"gpu.nvidia.com": 1}, 1, 1)
    assert consumer.vram_mib == 2 * 2048 + 1024
    assert "3 pods hold it together: those of Deployment a, Job b" in told(consumer)
    assert consumer.pod_spec["resourceClaims"]


def test_a_claim_of_work_that_ends_is_not_there_for_ever():
    claim = manifest(CLAIM, requests(exactly()), name="shared")
    assert one(claim, manifest("batch/v1 Job", by_name("shared"))).least_copies == 0


def test_memory_that_one_holder_does_not_tell_is_unknown():
    claim = manifest(CLAIM, requests(exactly()), name="shared")
    holders = [manifest(DEPLOYMENT, by_name("shared"), name="a", annotations={VRAM: "2Gi"})]
    holders.append(manifest(DEPLOYMENT, by_name("shared"), name="b"))
    assert one(claim, *holders).vram_mib is None


def test_a_claim_that_nobody_holds_takes_nothing():
    assert found(manifest(CLAIM, requests(exactly()), name="shared")) == []
    assert found(manifest(DEPLOYMENT, by_name("shared"))) == []


def test_a_pod_with_a_shared_claim_and_a_gpu_of_its_own_asks_for_the_gpu_alone():
    spec = by_name("shared")
    spec["template"]["spec"]["containers"].append(gpu(1, "own"))
    claim, pods = found(manifest(CLAIM, requests(exactly()), name="shared"), manifest(DEPLOYMENT, spec))
    assert (claim.asks, pods.asks) == ({"gpu.nvidia.com": 1}, {"nvidia.com/gpu": 1})
    assert "it holds ResourceClaim shared too" in told(pods)


@pytest.mark.parametrize("rubbish", [None, [], "x", 3, [None, "x"], {"requests": "x"}, {"requests": [{"exactly": []}]}])
def test_a_claim_that_is_no_claim_is_none(rubbish):
    wants = manifest(TEMPLATE, {"spec": {"devices": rubbish}}, name="t")
    assert found(wants, manifest(DEPLOYMENT, claims("t"))) == []
