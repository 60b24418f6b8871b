"""Claims and device classes of the library: the real scheduler allocates devices as NVIDIA's driver publishes them."""

import pytest

import plans
from cluster import eventually
from gpu_constructs import (
    Backend,
    ClaimSharing,
    GpuConstructsError,
    GpuDeviceClass,
    GpuNode,
    GpuProfile,
    GpuRequest,
    GpuResourceClaim,
    GpuWorkload,
    Kubernetes,
    NamespaceQuota,
    Run,
)
from kubelet import Node
from limits import enforce
from resource_slices import GPU_CLASS, MIG_CLASS, board, device_classes, devices_of, publish

DRA = "resource.k8s.io/v1"
GPU = "nvidia.com/gpu"
CLAIMS = GpuProfile(platform=Kubernetes("1.34"), backend=Backend.dra_claims())
HOME = GpuNode(name="home", gpu_model="NVIDIA GeForce RTX 5070 Ti", gpus=3)
RACK = GpuNode(name="rack", gpu_model="NVIDIA L40S", gpus=2)
DIVIDED = GpuNode(name="divided", gpu_model="NVIDIA H100 NVL", mig_layout={"1g.12gb": 2, "1g.12gb+me": 1})
DIVIDED_ALIKE = GpuNode(name="divided", gpu_model="NVIDIA H100 NVL", mig_layout={"1g.12gb": 3})
# Its memory is that of the CPU, so the driver publishes none.
THOR = board(9, "NVIDIA Thor", "Blackwell", "11.0.0", "Nvidia", None)

IN_HOME = {"home/gpu-0", "home/gpu-1", "home/gpu-2"}
IN_RACK = {"rack/gpu-0", "rack/gpu-1"}
SHARES_MEMORY = {"rack/gpu-9"}
WHOLE = IN_HOME | IN_RACK | SHARES_MEMORY
PARTS = {"divided/gpu-0-mig-1g12gb-19-0", "divided/gpu-0-mig-1g12gb-19-1"}
PART_WITH_MEDIA = {"divided/gpu-0-mig-1g12gb-me-20-2"}


def start(cluster, kubelets, *nodes):
    """Register nodes, with the driver and its classes."""
    cluster.apply(*device_classes())
    for node in nodes:
        kubelets.register(Node(node.name))
        # The board without memory comes first, so that every condition is asked about it.
        publish(cluster, node.name, [*([THOR] if node is RACK else []), *devices_of(node)])


@pytest.fixture
def devices(cluster, kubelets):
    """A cluster with 3 GeForce boards, 2 of a data centre beside one without memory, and one in 3 parts."""
    start(cluster, kubelets, HOME, RACK, DIVIDED)
    return cluster


def workload(name="a", gpus=1, profile=CLAIMS, run=None, replicas=1):
    run = run or Run.deployment(replicas=replicas)
    return lambda chart: GpuWorkload(chart, name, image=plans.IMAGE, profile=profile, gpus=gpus, run=run)


def job(pods, gpus, profile=CLAIMS):
    return workload(gpus=gpus, profile=profile, run=Run.job(completions=pods))


def allocated(cluster):
    """Return the devices of all claims, each as node and name."""
    claims = [one.get("status", {}).get("allocation") for one in cluster.list(DRA, "ResourceClaim")]
    results = [result for one in claims if one for result in one["devices"]["results"]]
    assert {result["driver"] for result in results} <= {GPU_CLASS}
    return sorted(f"{result['pool']}/{result['device']}" for result in results)


def take_all(cluster, expected, request, profile=CLAIMS):
    """Ask for one device more than should match: just those that match are handed out, and one pod waits."""
    cluster.apply(*plans.rendered(job(len(expected) + 1, request, profile)))
    plans.wait_for(cluster, {"a": len(expected)} if expected else {}, ["a"])

    def waits_for_a_device():
        (left,) = (pod for pod in cluster.pods() if pod["status"]["phase"] == "Pending")
        return "cannot allocate all claims" in plans.why(left)

    # Before the scheduler knew of all claims and devices it may have said something else.
    eventually(waits_for_a_device, "no device is left", state=lambda: plans.summary(cluster.pods()))
    assert allocated(cluster) == sorted(expected)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param({}, WHOLE, id="any"),
        pytest.param({"products": ["NVIDIA GeForce RTX 5070 Ti"]}, IN_HOME, id="the name of a board"),
        pytest.param({"products": ["NVIDIA-GeForce-RTX-5070-Ti"]}, IN_HOME, id="as a node label writes it"),
        pytest.param({"products": ["rtx 5070 ti"]}, IN_HOME, id="as people write it"),
        pytest.param({"products": ["NVIDIA Thor"]}, SHARES_MEMORY, id="a board that is not known"),
        pytest.param({"products": ["NVIDIA-Thor"]}, SHARES_MEMORY, id="its label"),
        pytest.param({"products": ["NVIDIA L40S", "NVIDIA Thor"]}, IN_RACK | SHARES_MEMORY, id="two boards"),
        pytest.param({"products": ["NVIDIA H100 NVL"]}, set(), id="a board that is divided"),
        pytest.param({"min_vram": "12Gi"}, IN_HOME | IN_RACK, id="memory that two kinds have"),
        pytest.param({"min_vram": "20Gi"}, IN_RACK, id="memory that one kind has"),
        pytest.param({"min_vram": "100Gi"}, set(), id="memory that none has"),
        pytest.param({"min_compute_capability": "11.0"}, IN_HOME | SHARES_MEMORY, id="compute capability"),
        pytest.param({"min_compute_capability": "12.0"}, IN_HOME, id="the highest compute capability"),
        pytest.param({"family": "ada-lovelace"}, IN_RACK, id="a family"),
        pytest.param({"family": ["blackwell", "ampere"]}, IN_HOME | SHARES_MEMORY, id="one of two families"),
        pytest.param({"family": "blackwell", "min_vram": "12Gi"}, IN_HOME, id="a family and memory"),
        pytest.param({"mig_profile": "1g.12gb"}, PARTS, id="a part"),
        pytest.param({"mig_profile": "1g.12gb+me"}, PART_WITH_MEDIA, id="a part with media engines"),
    ],
)
def test_a_request_is_met_by_just_the_devices_it_describes(devices, wanted, expected):
    take_all(devices, expected, GpuRequest(**wanted))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param({"min_vram": "40Gi"}, IN_RACK, id="large boards"),
        pytest.param({"family": "hopper"}, set(), id="whole boards, of which only parts are there"),
    ],
)
def test_a_class_of_one_s_own_holds_just_the_devices_it_describes(devices, wanted, expected):
    request, name = GpuRequest(**wanted), "own.gpu.example.com"
    devices.apply(
        *plans.rendered(lambda chart: GpuDeviceClass(chart, "own", profile=CLAIMS, name=name, request=request))
    )
    own = GpuProfile(platform=Kubernetes("1.34"), backend=Backend.dra_claims(device_class=name))
    take_all(devices, expected, GpuRequest(), own)


def test_freed_devices_are_taken_by_pods_that_wait(devices):
    of_home = GpuRequest(count=2, products=["NVIDIA GeForce RTX 5070 Ti"])
    first, second = (plans.rendered(workload(name, of_home)) for name in ("first", "second"))
    devices.apply(*first)
    plans.wait_for(devices, {"first": 1})
    assert len(IN_HOME & {*allocated(devices)}) == 2
    devices.apply(*second)
    plans.wait_for(devices, {"first": 1}, ["second"])
    devices.delete(first[-1])
    plans.wait_for(devices, {"second": 1})
    assert len(IN_HOME & {*allocated(devices)}) == 2


# --- claims that pods share --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sharing",
    [
        pytest.param(None, id="as CUDA does"),
        pytest.param(ClaimSharing.time_slicing("Long"), id="time slices"),
        pytest.param(ClaimSharing.mps(default_active_thread_percentage=50), id="MPS"),
    ],
)
def test_pods_that_name_one_claim_hold_one_device(devices, sharing):
    request = GpuRequest(min_vram="20Gi")
    shared = [
        lambda chart: GpuResourceClaim(chart, "shared", profile=CLAIMS, request=request, sharing=sharing),
        *(workload(name, GpuRequest(resource_claim="shared", vram="8Gi")) for name in ("embed", "rerank")),
    ]
    manifests = plans.rendered(*shared)
    devices.apply(*manifests)
    plans.wait_for(devices, {"embed": 1, "rerank": 1})
    claim = devices.get(DRA, "ResourceClaim", "shared", "default")
    config = claim["status"]["allocation"]["devices"].get("config", [])
    assert (len(allocated(devices)), {*allocated(devices)} <= IN_RACK) == (1, True)
    assert {one["name"].rsplit("-", 2)[0] for one in claim["status"]["reservedFor"]} == {"embed", "rerank"}
    # The driver reads it there.
    assert [one["opaque"] for one in config] == [
        one["opaque"] for one in manifests[0]["spec"]["devices"].get("config", [])
    ]
    plan = plans.planned(manifests, [HOME, RACK])
    assert (plan.stock[GPU_CLASS].placed, plan.all_fits) == (1, "conditional")


# --- the plan -----------------------------------------------------------------------------------------------------


def template(*requests, name="a"):
    spec = {"spec": {"devices": {"requests": [{"name": "gpu", **one} for one in requests]}}}
    return {
        "apiVersion": DRA,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def owner(kind, name="a", **spec):
    """Return a controller of pods that hold what the template of its name says."""
    labels = {"app.kubernetes.io/name": name}
    container = {"name": "main", "image": plans.IMAGE, "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": name}]
    pods = {"metadata": {"labels": labels}, "spec": {"containers": [container], "resourceClaims": claims}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "template": pods, **spec},
    }


EITHER = {
    "firstAvailable": [
        {"name": "part", "deviceClassName": MIG_CLASS},
        {"name": "whole", "deviceClassName": GPU_CLASS},
    ]
}
ALL_OF_A_NODE = {"exactly": {"deviceClassName": GPU_CLASS, "allocationMode": "All"}}
ONE = {"exactly": {"deviceClassName": GPU_CLASS}}


@pytest.mark.parametrize(
    ("manifests", "nodes", "running"),
    [
        pytest.param(plans.rendered(workload(replicas=3)), [HOME], {"a": 3}, id="as many as there are"),
        pytest.param(plans.rendered(workload(replicas=4)), [HOME], {"a": 3}, id="one more than there are"),
        pytest.param(plans.rendered(workload(gpus=2, replicas=2)), [HOME], {"a": 1}, id="two each"),
        pytest.param(plans.rendered(workload(gpus=4)), [HOME, RACK], {}, id="more than a node has"),
        pytest.param(
            plans.rendered(job(4, GpuRequest(mig_profile="1g.12gb"))), [HOME, DIVIDED_ALIKE], {"a": 3}, id="parts"
        ),
        pytest.param(
            plans.rendered(workload(replicas=2), workload("b", GpuRequest(mig_profile="1g.12gb"))),
            [HOME, DIVIDED_ALIKE],
            {"a": 2, "b": 1},
            id="boards and parts",
        ),
        pytest.param([template(EITHER), owner("Deployment", replicas=3)], [HOME], {"a": 3}, id="the second choice"),
        pytest.param(
            [template(EITHER), owner("Deployment", replicas=7)], [HOME, DIVIDED_ALIKE], {"a": 6}, id="both choices"
        ),
        pytest.param([template(ALL_OF_A_NODE), owner("Deployment", replicas=2)], [HOME], {"a": 1}, id="all of a node"),
        pytest.param(
            [template(ALL_OF_A_NODE), owner("Deployment", replicas=3)], [HOME, RACK], {"a": 2}, id="all of each node"
        ),
        pytest.param([template(ONE), owner("DaemonSet")], [HOME, RACK], {"a": 2}, id="one on every node"),
        pytest.param(
            [template(ONE), owner("DaemonSet")], [HOME, DIVIDED_ALIKE], {"a": 1}, id="on nodes with no board for it"
        ),
    ],
)
def test_the_plan_expects_what_the_scheduler_does(cluster, kubelets, manifests, nodes, running):
    start(cluster, kubelets, *nodes)
    plan = plans.planned(manifests, nodes)
    cluster.apply(*manifests)
    plans.wait_for(cluster, running, plans.waiting(plan))
    assert plans.placed(plan) == running


def test_a_quota_on_a_class_leaves_pods_without_their_claim_and_the_plan_knows(devices):
    quota = limits(NamespaceQuota(device_classes={GPU_CLASS: 2}))
    manifests = plans.rendered(workload(replicas=3))
    enforce(devices, [quota])
    devices.apply(*manifests)
    why = eventually(lambda: plans.reports(devices, "FailedResourceClaimCreation"), "the controller reports it")
    eventually(lambda: plans.running(devices.pods()) == {"a": 2}, "the others run")
    assert all("exceeded quota: quota" in one for one in why)
    assert (len(allocated(devices)), len(devices.pods())) == (2, 3)
    plan = plans.planned([quota, *manifests], [HOME, RACK])
    assert (plans.placed(plan), plans.waiting(plan)) == ({"a": 2}, {"a"})


def limits(quota):
    metadata = {"name": "quota", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": quota.to_manifest()}}


# --- extended resources -------------------------------------------------------------------------------------------

EXTENDED = GpuProfile(platform=Kubernetes("1.36"), backend=Backend.dra_extended_resource())


def test_an_extended_resource_becomes_a_claim_in_the_releases_that_the_library_offers_it_for(devices, release):
    try:
        GpuProfile(platform=Kubernetes(f"1.{release.minor}"), backend=Backend.dra_extended_resource())
        is_offered = True
    except GpuConstructsError as error:
        is_offered = "needs Kubernetes 1.36 or later" not in error.problem
    devices.apply(*plans.rendered(workload(profile=EXTENDED)))
    plans.wait_for(devices, {"a": 1} if is_offered else {}, [] if is_offered else ["a"])
    assert len(allocated(devices)) == is_offered


def own_class(name, resource, **wanted):
    return lambda chart: GpuDeviceClass(
        chart, name, profile=EXTENDED, name=name, request=GpuRequest(**wanted), extended_resource_name=resource
    )


@pytest.mark.since(36)
@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(GpuRequest(), WHOLE, id="a board"),
        pytest.param(GpuRequest(mig_profile="1g.12gb"), PARTS, id="a part"),
        pytest.param(GpuRequest(resource="gpu.example.com/big"), IN_RACK, id="a large board"),
    ],
)
def test_an_extended_resource_means_just_the_devices_of_its_class(devices, request_, expected):
    classes = [
        own_class("part.gpu.example.com", "nvidia.com/mig-1g.12gb", mig_profile="1g.12gb"),
        own_class("big.gpu.example.com", "gpu.example.com/big", min_vram="40Gi"),
    ]
    devices.apply(*plans.rendered(*classes))
    take_all(devices, expected, request_, EXTENDED)


@pytest.mark.since(36)
@pytest.mark.parametrize("names", [("aaa.old", "zzz.new"), ("zzz.old", "aaa.new")], ids=" then ".join)
def test_of_two_classes_with_one_extended_resource_the_newer_counts(devices, names):
    resource, (old, new) = "gpu.example.com/any", names
    (first,) = devices.apply(*plans.rendered(own_class(old, resource, min_vram="20Gi")))

    def is_newer():
        # Times of creation have no fractions of a second.
        (second,) = devices.apply(*plans.rendered(own_class(new, resource, family="blackwell", min_vram="12Gi")))
        if second["metadata"]["creationTimestamp"] > first["metadata"]["creationTimestamp"]:
            return True
        devices.delete(second)
        return False

    eventually(is_newer, "the second class is newer")
    # Until the scheduler knows the newer one, it hands out devices of the older one, of which no node has three.
    devices.apply(*plans.rendered(workload("probe", GpuRequest(count=3, resource=resource), EXTENDED)))
    plans.wait_for(devices, {"probe": 1})
    devices.delete_all("apps/v1", "Deployment", "default")
    eventually(lambda: not devices.list("v1", "Pod") and not allocated(devices), "the devices are free again")
    take_all(devices, IN_HOME, GpuRequest(resource=resource), EXTENDED)


@pytest.mark.since(36)
@pytest.mark.parametrize(
    ("quota", "reason", "pods"),
    [
        pytest.param(NamespaceQuota(gpus={GPU: 2}), "FailedCreate", 2, id="on the resource refuses the pod"),
        pytest.param(
            NamespaceQuota(device_classes={GPU_CLASS: 2}), "FailedScheduling", 3, id="on the class lets it in"
        ),
    ],
)
def test_a_quota_on_extended_resources(devices, quota, reason, pods):
    enforce(devices, [limits(quota)])
    devices.apply(*plans.rendered(workload(replicas=3, profile=EXTENDED)))
    eventually(
        lambda: any("exceeded quota: quota" in one for one in plans.reports(devices, reason)), "an event says why"
    )
    plans.wait_for(devices, {"a": 2}, ["a"] * (pods - 2))
    assert (len(allocated(devices)), len(devices.pods())) == (2, pods)
