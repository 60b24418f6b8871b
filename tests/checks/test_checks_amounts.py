"""Names of GPU resources that are nearly right, and sizes without a unit, on objects of any kind."""

import pytest

from gpu_constructs import (
    ContainerLimits,
    DebugDump,
    DevicePluginChart,
    External,
    GpuAccess,
    GpuConstructsError,
    GpuRequest,
    GpuWorkload,
    Kubernetes,
    NamespaceQuota,
    Ollama,
    SynthesisError,
    Volume,
    VolumeClaim,
    synthesize,
)
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.checks.amounts import amounts_are_meant
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.provided import Provided
from gpu_constructs.tree.manifest import Manifest

GPU = "nvidia.com/gpu"


def obj(api_version, kind, spec, **more):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec, **more}


def pod(limits=None, section="limits", **spec):
    container = {"name": "main", "image": "a:1", "resources": {section: limits or {}}}
    return obj("v1", "Pod", {"containers": [container], **spec})


def problems(*manifests, provided=()):
    found = list(amounts_are_meant(Facts(manifests, provided)))
    assert not any(finding.is_warning for finding in found)
    return [finding.problem for finding in found]


def test_a_name_that_is_nearly_that_of_a_gpu_is_an_error_with_the_right_name():
    for written, meant in [
        ("nvidia.com/gpus", GPU),
        ("nvidia.com/GPU", GPU),
        ("nvidia.com/Gpus", GPU),
        ("nvidia.com/gup", GPU),
        ("nvidia.com/gpuu", GPU),
        ("nvidia/gpu", GPU),
        ("nvidia.io/gpu", GPU),
        ("nvida.com/gpu", GPU),
        ("gpu.nvidia.com/gpu", GPU),
        ("alpha.kubernetes.io/nvidia-gpu", GPU),
        ("nvidia.com/gpu-shared", f"{GPU}.shared"),
        ("nvidia.com/gpus.shared", f"{GPU}.shared"),
        ("nvidia.com/shared-gpu", f"{GPU}.shared"),
        ("nvidia/gpu.shared", f"{GPU}.shared"),
        ("nvidia.com/mig1g.10gb", "nvidia.com/mig-1g.10gb"),
        ("nvidia.com/MIG-1g.10gb", "nvidia.com/mig-1g.10gb"),
        ("nvidia.com/mig_3g_40gb", "nvidia.com/mig-3g.40gb"),
        ("nvidia.com/1g.10gb", "nvidia.com/mig-1g.10gb"),
        ("nvidia/mig-1g.10gb.me", "nvidia.com/mig-1g.10gb.me"),
    ]:
        assert problems(pod({written: 1})) == [
            f"limits[{written!r}] of container 'main' names no resource that NVIDIA's device plugin advertises; write "
            f"{meant!r}, or declare it with External(app, 'existing', gpu_resources=[{written!r}]) where another "
            "plugin "
            "does"
        ]


def test_of_a_container_the_api_server_refuses_names_without_a_domain():
    for name in ["gpu", "gpus", "GPU", "nvidia.com.gpu", "nvidia-gpu", "nvidia_gpu", "nvidia.gpu"]:
        assert problems(pod({name: 1})) == [
            f"limits[{name!r}] of container 'main' must name cpu, memory, ephemeral-storage or a resource with a "
            "domain, "
            f"such as {GPU!r}; Kubernetes refuses {name!r}; write {GPU!r}"
        ]


def test_a_misspelt_resource_of_kubernetes_is_told_with_the_nearest():
    (problem,) = problems(pod({"memroy": "4Gi"}))
    assert problem.endswith("Kubernetes refuses 'memroy' (did you mean 'memory'?)")


def test_other_resources_are_left_alone():
    for name in [
        *(GPU, f"{GPU}.shared", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.10gb.shared", "nvidia.com/mig-1g.5gb.me"),
        *("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores", "nvidia.com/priority"),
        *("nvidia.com/vgpu", "nvidia.com/pgpu", "nvidia.com/GA102GL_A10", "nvidia.com/TU104GL_Tesla_T4"),
        *("nvidia.com/NVIDIA_A10-12Q", "nvidia.com/hostdev", "nvidia.com/imex-channel", "nvidia.com/gpu-a100"),
        *("amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "intel.com/gpu", "aliyun.com/gpu-mem", "rdma/hca"),
        *("volcano.sh/gpu-number", "deviceclass.resource.kubernetes.io/gpu.nvidia.com", "google.com/tpu"),
        *("example.com/gpu", "huawei.com/Ascend910", "tencent.com/vcuda-core", "mellanox.com/shared_hca_rdma"),
        *("cpu", "memory", "ephemeral-storage", "hugepages-2Mi"),
    ]:
        amount = "4Mi" if "/" not in name else 1
        assert problems(pod({name: amount})) == [], name


def test_objects_of_every_kind_are_read():
    for manifest in [
        pod({"nvidia.com/gpus": 1}, section="requests"),
        obj("v1", "ResourceQuota", {"hard": {"requests.nvidia.com/gpus": 4}}),
        obj("v1", "ResourceQuota", {"hard": {"requests.gpu": 4}}),
        obj("v1", "LimitRange", {"limits": [{"type": "Container", "max": {"nvidia.com/gpus": 4}}]}),
        obj("batch/v1", "Job", {"template": {"spec": pod({"nvidia.com/gpus": 1})["spec"]}}),
        obj("v1", "Pod", {"initContainers": pod({"nvidia/gpu": 1})["spec"]["containers"]}),
        obj(
            "trainer.kubeflow.org/v1alpha1",
            "TrainJob",
            {"trainer": {"resourcesPerNode": {"limits": {"nvidia/gpu": 1}}}},
        ),
        obj("example.com/v1", "Model", {"engines": [{"resources": {"limits": {"nvidia.com/GPU": 1}}}]}),
        obj("karpenter.sh/v1", "NodePool", {"limits": {"nvidia.com/gpus": "8"}}),
        obj(
            "kueue.x-k8s.io/v1beta1",
            "ClusterQueue",
            {"resourceGroups": [{"flavors": [{"resources": [{"name": "nvidia.com/gpus", "nominalQuota": 8}]}]}]},
        ),
        obj("sparkoperator.k8s.io/v1beta2", "SparkApplication", {"gpu": {"name": "nvidia.com/gpus", "quantity": 1}}),
        obj("scheduling.volcano.sh/v1beta1", "Queue", {"capability": {"nvidia.com/gpus": 8}}),
        obj("helm.toolkit.fluxcd.io/v2", "HelmRelease", {"values": {"resources": {"limits": {"nvidia.com/gpus": 1}}}}),
    ]:
        (problem,) = problems(manifest)
        assert "gpu'" in problem, manifest


def test_what_is_no_amount_of_a_resource_is_left_alone():
    for manifest in [
        obj("v1", "Pod", {"containers": [], "nodeSelector": {"nvidia.com/gpus": "1"}}),
        obj("v1", "Pod", {"containers": []}, metadata={"name": "x", "labels": {"nvidia.com/gpus": "2"}}),
        obj("helm.toolkit.fluxcd.io/v2", "HelmRelease", {"values": {"nodeLabels": {"nvidia.com/gpus": 2}}}),
        obj("example.com/v1", "Model", {"limits": {"gpu": 4, "rate": 2}}),
        obj("apiextensions.k8s.io/v1", "CustomResourceDefinition", {"limits": {"nvidia.com/gpus": 2}}),
    ]:
        assert problems(manifest) == [], manifest


CONFIG = "version: v1\nresources:\n  gpus:\n  - pattern: '*'\n    name: gpus\n"


def test_a_name_that_something_advertises_is_right():
    for manifests, provided in [
        ([], [Provided(gpu_resources={"nvidia.com/gpus": Sharing.none()})]),
        ([], [Provided(other_gpu_resources=("nvidia.com/gpus",))]),
        ([obj("resource.k8s.io/v1", "DeviceClass", {"extendedResourceName": "nvidia.com/gpus"})], []),
        ([obj("v1", "ConfigMap", {}, data={"config.yaml": CONFIG})], []),
    ]:
        assert problems(pod({"nvidia.com/gpus": 1}), *manifests, provided=provided) == [], (manifests, provided)


def test_another_plugin_is_declared_beside_ours(app, chart):
    DevicePluginChart(app, "plugin", platform=Kubernetes())
    Manifest(chart, "pod", pod({"nvidia.com/gpus": 1, "memory": "1Gi"}))
    with pytest.raises(SynthesisError) as refused:
        synthesize(app)
    assert [problem.partition(" names")[0] for problem in refused.value.problems] == [
        "gpu/pod: limits['nvidia.com/gpus'] of container 'main'"
    ]
    External(app, "elsewhere", gpu_resources=["nvidia.com/gpus"])
    synthesize(app)


def test_a_size_without_a_unit_is_an_error():
    for amount, is_what in [
        (4, "4, which is 4 bytes; write '4Gi' or '4Mi'"),
        ("100", "'100', which is 100 bytes; write '100Gi' or '100Mi'"),
        ("1.5", "'1.5', which is 1.5 bytes; write '1.5Gi' or '1.5Mi'"),
        ("400m", "'400m', which is 400 thousandths of a byte; write '400Gi' or '400Mi'"),
        (1048575, "1048575, which is 1048575 bytes; write '1048575Gi' or '1048575Mi'"),
    ]:
        assert problems(pod({"memory": amount})) == [
            f"limits['memory'] of container 'main' must have a unit; got {is_what}"
        ]


def test_a_size_that_may_be_meant_is_left_alone():
    for amount in [0, "0", "4Gi", "512Ki", "4k", "128974848", "129e6", 1048576, "${memory}", None]:
        assert problems(pod({"memory": amount})) == [], amount


def test_sizes_are_read_wherever_they_are():
    for manifest in [
        pod({"memory": 4}, section="requests"),
        pod({"ephemeral-storage": 4}),
        pod({"hugepages-2Mi": 4}),
        obj("v1", "Pod", {"containers": [], "resources": {"limits": {"memory": 4}}}),
        obj("v1", "Pod", {"containers": [], "volumes": [{"name": "a", "emptyDir": {"sizeLimit": "4"}}]}),
        obj("v1", "PersistentVolumeClaim", {"resources": {"requests": {"storage": "100"}}}),
        obj("v1", "PersistentVolume", {"capacity": {"storage": 100}}),
        obj(
            "apps/v1",
            "StatefulSet",
            {"volumeClaimTemplates": [{"spec": {"resources": {"requests": {"storage": 100}}}}]},
        ),
        obj("v1", "ResourceQuota", {"hard": {"requests.memory": 4}}),
        obj("v1", "ResourceQuota", {"hard": {"limits.memory": 4}}),
        obj("v1", "ResourceQuota", {"hard": {"requests.storage": "100"}}),
        obj("v1", "ResourceQuota", {"hard": {"fast.storageclass.storage.k8s.io/requests.storage": "100"}}),
        obj("v1", "LimitRange", {"limits": [{"type": "Container", "default": {"memory": 4}}]}),
        obj("serving.kserve.io/v1beta1", "InferenceService", {"predictor": {"model": pod({"memory": 4})["spec"]}}),
    ]:
        (problem,) = problems(manifest)
        assert " must have a unit; got " in problem, manifest


@pytest.mark.parametrize(
    ("api_version", "refused"), [("example.com/v1", False), ("serving.kserve.io/v1beta1", True), ("v1", True)]
)
def test_a_size_of_a_kind_that_is_not_known_is_only_warned_of(app, chart, api_version, refused):
    kind = "InferenceService" if "kserve" in api_version else "Pod"
    Manifest(chart, "one", obj(api_version, kind, {"resources": {"requests": {"memory": 4}}}))
    if refused:
        with pytest.raises(SynthesisError, match="must have a unit"):
            synthesize(app)
    else:
        with pytest.warns(match="must have a unit"):
            synthesize(app)


def test_numbers_that_are_no_sizes_have_no_unit():
    for manifest in [
        pod({"cpu": 4}),
        obj("v1", "LimitRange", {"limits": [{"type": "Container", "maxLimitRequestRatio": {"memory": 2}}]}),
        obj("v1", "ResourceQuota", {"hard": {"pods": 4, "count/secrets": 4, "requests.cpu": 4}}),
        obj("example.com/v1", "Model", {"memory": 4, "storage": 100, "sizeLimit": 3}),
    ]:
        assert problems(manifest) == [], manifest


def given_to_a_workload(**given):
    return lambda chart: GpuWorkload(chart, "app", image="a:1", platform=Kubernetes(), **given)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda _: VolumeClaim(storage="100"), "volume_claim.storage"),
        (lambda _: Volume.empty_dir(size_limit="100"), "size_limit"),
        (lambda _: GpuRequest(vram="100"), "request.vram"),
        (lambda _: GpuAccess(shared_memory="100"), "shared_memory"),
        (lambda _: Sharing.vram_units(vram="100"), "sharing.vram_units.vram"),
        (lambda _: DebugDump(size_limit="100"), "debug_dump.size_limit"),
        (lambda _: NamespaceQuota(hard={"requests.memory": "100"}), "resource_quota.hard['requests.memory']"),
        (lambda _: ContainerLimits(max={"memory": "100"}), "limit_range.max['memory']"),
        (lambda chart: Ollama(chart, "app", platform=Kubernetes(), storage="100"), "volume_claim.storage"),
        (lambda chart: Ollama(chart, "app", platform=Kubernetes(), gpu_overhead="100"), "gpu_overhead"),
        (given_to_a_workload(shared_memory="100"), "shared_memory"),
        (given_to_a_workload(resources={"limits": {"memory": "100"}}), "resources['limits']['memory']"),
        (
            given_to_a_workload(resources={"requests": {"ephemeral-storage": "100"}}),
            "resources['requests']['ephemeral-storage']",
        ),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_size_without_a_unit_is_refused_at_its_keyword(chart, make, field):
    with pytest.raises(GpuConstructsError) as refused:
        make(chart)
    assert refused.value.problem == (
        f"{field} must have a unit; got '100', which is 100 bytes; write '100Gi' or '100Mi'"
    )
