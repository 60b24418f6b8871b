"""The API that allocates GPUs, and the settings of a cluster's GPU pods."""

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


def test_a_backend_needs_a_release():
    for backend, platforms in (
        (PLUGIN, [*LOCAL, *TALOS]),
        (CLAIMS, [*LOCAL[7:], *TALOS[3:]]),
        (EXTENDED, [*LOCAL[9:], *TALOS[3:]]),
    ):
        assert [platform for platform in [*LOCAL, *TALOS] if serves(backend, platform)] == platforms


@cases
def test_pods_have_a_runtime_class_if_the_backend_uses_it(given, name):
    assert GpuProfile(**given).runtime_class_name == name


def test_a_runtime_class_can_be_an_object(chart):
    made = NvidiaRuntimeClass(chart, "runtime-class", name="gpu-runtime")
    assert GpuProfile(runtime_class=made).runtime_class_name == "gpu-runtime"


def test_impossible_profiles_are_rejected(rows):
    check_refusals(GpuProfile, rows)
    check_refusals(Backend, [({"kind": "dra"}, "backend.kind must be one of …")])
    check_refusals(
        Backend.dra_claims,
        [
            ({"device_class": "My Class"}, "backend.device_class must be a DNS subdomain…"),
            ({"mig_device_class": 5}, "backend.mig_device_class must be str…"),
            ({"clas": "x"}, "clas is not a keyword of Backend.dra_claims"),
        ],
    )


def test_a_platform_with_a_profile_is_rejected_even_if_it_is_the_default():
    local = GpuProfile(platform=Kubernetes("1.36"))
    same = Talos(DEFAULT_PLATFORM.version)
    assert same == DEFAULT_PLATFORM
    with pytest.raises(GpuConstructsError, match="platform and profile must not both have a value"):
        profile_of(local, same, (), None, None)
    for harmless in (DEFAULT_PLATFORM, Kubernetes("1.36")):
        assert profile_of(local, harmless, (), None, None) is local
