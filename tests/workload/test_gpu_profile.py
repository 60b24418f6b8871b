"""Which API hands GPUs out, and how pods of a cluster reach its GPUs."""

import pytest

from gpu_constructs import Backend, GpuConstructsError, GpuProfile, Kubernetes, NvidiaRuntimeClass, Sharing, Talos
from gpu_constructs.catalog.platforms import DEFAULT_PLATFORM
from gpu_constructs.workload.gpu_profile import profile_of
from refusals import check_refusals

NEW = Talos("1.14")
PLUGIN, CLAIMS, EXTENDED = Backend.device_plugin(), Backend.dra_claims(), Backend.dra_extended_resource()
LOCAL = [Kubernetes(f"1.{minor}") for minor in range(27, 38)]
TALOS = [Talos(f"1.{minor}") for minor in range(10, 15)]


def serves(backend, platform):
    try:
        return GpuProfile(backend=backend, platform=platform).backend == backend
    except GpuConstructsError:
        return False


def test_a_backend_is_there_from_a_release_on():
    for backend, platforms in (
        (PLUGIN, [*LOCAL, *TALOS]),
        (CLAIMS, [*LOCAL[7:], *TALOS[3:]]),
        (EXTENDED, [*LOCAL[9:], *TALOS[3:]]),
    ):
        assert [platform for platform in [*LOCAL, *TALOS] if serves(backend, platform)] == platforms


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({}, "nvidia"),
        ({"platform": Kubernetes()}, None),
        ({"platform": Kubernetes(), "runtime_class": "gpu"}, "gpu"),
        ({"platform": NEW, "backend": CLAIMS}, None),
        ({"platform": NEW, "backend": EXTENDED}, None),
        ({"platform": NEW, "backend": CLAIMS, "runtime_class": "gpu"}, "gpu"),
    ],
    ids=str,
)
def test_pods_name_a_runtime_class_where_devices_come_by_one(given, name):
    assert GpuProfile(**given).runtime_class_name == name


def test_a_runtime_class_can_be_handed_over(chart):
    made = NvidiaRuntimeClass(chart, "runtime-class", name="gpu-runtime")
    assert GpuProfile(runtime_class=made).runtime_class_name == "gpu-runtime"


def test_what_no_cluster_is_like_is_refused():
    check_refusals(
        GpuProfile,
        [
            ({"mig_strategy": "singel"}, "profile.mig_strategy must be one of "),
            ({"sharing": "mps"}, "profile.sharing "),
            ({"platform": "talos"}, "profile.platform "),
            ({"tolerations": [{"key": "a"}]}, "profile.tolerations[0] "),
            ({"node_selector": {"a b": "c"}}, "profile.node_selector has a key that is not a label key; got 'a b'"),
            ({"runtime_class": 5}, "profile.runtime_class must be the name of a RuntimeClass"),
            ({"backend": "dra"}, "profile.backend "),
            ({"sharign": Sharing.none()}, "sharign is not a member of GpuProfile (did you mean 'sharing'?)"),
            (
                {"platform": Kubernetes("1.33"), "backend": CLAIMS},
                "backend 'dra-claims' does not go with platform Kubernetes 1.33: …resource.k8s.io/v1…1.34",
            ),
            (
                {"platform": Talos("1.12"), "backend": CLAIMS},
                "backend 'dra-claims' does not go with platform Talos 1.12: …CDI…use Backend.device_plugin()",
            ),
            (
                {"platform": Kubernetes("1.35"), "backend": EXTENDED},
                "backend 'dra-extended-resource' needs Kubernetes 1.36 or later…got Kubernetes 1.35; use Backend.dra_c",
            ),
        ],
    )
    check_refusals(Backend, [({"kind": "dra"}, "backend.kind must be one of ")])
    check_refusals(
        Backend.dra_claims,
        [
            ({"device_class": "My Class"}, "backend.device_class must be a DNS subdomain"),
            ({"mig_device_class": 5}, "backend.mig_device_class must be str"),
            ({"clas": "x"}, "clas is not a keyword of Backend.dra_claims"),
        ],
    )


def test_a_platform_beside_a_profile_is_refused_even_where_it_equals_the_default():
    local = GpuProfile(platform=Kubernetes("1.36"))
    same = Talos(DEFAULT_PLATFORM.version)
    assert same == DEFAULT_PLATFORM
    with pytest.raises(GpuConstructsError, match="platform and profile must not both be given"):
        profile_of(local, same, (), None, None)
    for harmless in (DEFAULT_PLATFORM, Kubernetes("1.36")):
        assert profile_of(local, harmless, (), None, None) is local
