import pytest

from gpu_constructs import GpuConstructsError, Kubernetes, NvidiaRuntimeClass, Sharing, Talos
from gpu_constructs.platforms import DEFAULT_PLATFORM
from gpu_constructs.workload.backend import Backend
from gpu_constructs.workload.gpu_profile import GpuProfile, profile_of

NEW = Talos("1.14")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({}, "nvidia"),
        ({"platform": Kubernetes()}, None),
        ({"platform": Kubernetes(), "runtime_class": "gpu"}, "gpu"),
        ({"platform": NEW, "backend": Backend.dra_claims()}, None),
        ({"platform": NEW, "backend": Backend.dra_extended_resource()}, None),
        ({"platform": NEW, "backend": Backend.dra_claims(), "runtime_class": "gpu"}, "gpu"),
    ],
    ids=str,
)
def test_pods_name_a_runtime_class_where_devices_come_by_one(given, name):
    assert GpuProfile(**given).runtime_class_name == name


def test_a_runtime_class_can_be_handed_over(chart):
    made = NvidiaRuntimeClass(chart, "runtime-class", name="gpu-runtime")
    assert GpuProfile(runtime_class=made).runtime_class_name == "gpu-runtime"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mig_strategy": "singel"}, "profile.mig_strategy must be one of "),
        ({"sharing": "mps"}, "profile.sharing "),
        ({"platform": "talos"}, "profile.platform "),
        ({"tolerations": [{"key": "a"}]}, "profile.tolerations[0] "),
        ({"node_selector": {"a b": "c"}}, "profile.node_selector has a key that is no label key; got 'a b'"),
        ({"runtime_class": 5}, "profile.runtime_class must be the name of a RuntimeClass"),
        ({"backend": "dra"}, "profile.backend "),
        (
            {"platform": Talos("1.12"), "backend": Backend.dra_claims()},
            "backend 'dra-claims' does not go with platform ",
        ),
        ({"sharign": Sharing.none()}, "sharign is no member of GpuProfile (did you mean 'sharing'?)"),
    ],
    ids=str,
)
def test_what_no_cluster_is_like_is_refused_in_one_line(given, message):
    with pytest.raises(GpuConstructsError) as refused:
        GpuProfile(**given)
    assert str(refused.value).startswith(message)
    assert len(str(refused.value).splitlines()) == 1


def test_a_platform_beside_a_profile_is_refused_even_where_it_equals_the_default():
    local = GpuProfile(platform=Kubernetes("1.36"))
    same = Talos(DEFAULT_PLATFORM.version)
    assert same == DEFAULT_PLATFORM
    with pytest.raises(GpuConstructsError, match="platform and profile must not both be given"):
        profile_of(local, same, (), None, None)
    for harmless in (DEFAULT_PLATFORM, Kubernetes("1.36")):
        assert profile_of(local, harmless, (), None, None) is local
