"""Which API hands GPUs out, and how pods of a cluster reach its GPUs."""

import pytest

from gpu_constructs import Backend, GpuConstructsError, GpuProfile, Kubernetes, NvidiaRuntimeClass, Talos
from gpu_constructs.catalog.platforms import DEFAULT_PLATFORM
from gpu_constructs.workload.gpu_profile import profile_of
from refusals import check_refusals
from tables import cases

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


@cases
def test_pods_name_a_runtime_class_where_devices_come_by_one(given, name):
    assert GpuProfile(**given).runtime_class_name == name


def test_a_runtime_class_can_be_handed_over(chart):
    made = NvidiaRuntimeClass(chart, "runtime-class", name="gpu-runtime")
    assert GpuProfile(runtime_class=made).runtime_class_name == "gpu-runtime"


def test_what_no_cluster_is_like_is_refused(rows):
    check_refusals(GpuProfile, rows)
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
