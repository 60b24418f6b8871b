from gpu_constructs import GpuNamespace
from gpu_constructs.cluster.namespace_limits import ContainerLimits, NamespaceQuota, namespace_quota
from refusals import refusal


def test_gpus_are_counted_by_request_and_each_name_for_itself(expected):
    gpus = {"nvidia.com/gpu": 4, "nvidia.com/gpu.shared": 10, "nvidia.com/mig-1g.10gb": 0}
    assert NamespaceQuota(gpus=gpus).to_manifest() == expected


def test_devices_of_claims_are_counted_by_device_class():
    assert NamespaceQuota(device_classes={"gpu.nvidia.com": 2}).to_manifest() == {
        "gpu.nvidia.com.deviceclass.resource.k8s.io/devices": "2"
    }


def test_other_keys_stay_as_they_are(keywords):
    hard = keywords
    assert NamespaceQuota(hard=hard).to_manifest() == {key: str(amount) for key, amount in hard.items()}


def test_a_gpu_key_that_kubernetes_never_counts_is_refused():
    for key in ["limits.nvidia.com/gpu", "nvidia.com/gpu"]:
        assert refusal(NamespaceQuota, hard={key: 4}) == (
            f"resource_quota.hard must not contain {key!r}, which Kubernetes accepts but never counts. Use "
            "'requests.nvidia.com/gpu', or gpus={'nvidia.com/gpu': …}"
        )


def test_a_quota_that_limits_nothing_is_refused(rows):
    for given, problem in rows:
        assert refusal(NamespaceQuota, **given) == problem, (given, problem)


def test_a_quota_is_an_object_or_a_mapping_of_kubernetes_keys():
    quota = NamespaceQuota(gpus={"nvidia.com/gpu": 1})
    assert namespace_quota(quota) is quota
    assert namespace_quota({"pods": 3}) == NamespaceQuota(hard={"pods": 3})
    assert namespace_quota(None) is None


def test_a_maximum_of_gpus_allocates_no_gpu_by_default():
    # SetDefaults_LimitRangeItem uses the maximum as the default if there is none.
    limits = ContainerLimits(max={"nvidia.com/gpu": 1, "nvidia.com/gpu.shared": 2, "memory": "64Gi"})
    none = {"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "0"}
    assert limits.to_manifest() == {
        "type": "Container",
        "max": {"nvidia.com/gpu": "1", "nvidia.com/gpu.shared": "2", "memory": "64Gi"},
        "default": none,
        "defaultRequest": none,
    }


def test_defaults_are_written_as_they_are(expected):
    limits = ContainerLimits(default={"cpu": 2, "memory": "8Gi"}, default_request={"cpu": "500m", "memory": "8Gi"})
    assert limits.to_manifest() == expected


def test_a_default_for_an_extended_resource_is_rejected():
    for member in ["default", "default_request"]:
        for name in ["nvidia.com/gpu", "example.com/nic"]:
            assert refusal(ContainerLimits, **{member: {name: 1}}) == (
                f"limit_range.{member} must not contain {name!r}, because every container that sets no value would get "
                "this resource. Request it in the containers that need it"
            )


def test_limits_that_kubernetes_refuses_or_that_limit_nothing_are_refused(rows):
    for given, problem in rows:
        assert refusal(ContainerLimits, **given) == problem, (given, problem)


def test_a_namespace_brings_its_quota_and_its_limits(chart, objects, snapshot, keywords):
    GpuNamespace(chart, "namespace", **keywords)
    assert objects(chart) == snapshot
