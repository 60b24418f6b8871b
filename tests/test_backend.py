import pytest

from gpu_constructs import GpuConstructsError, Kubernetes, Talos
from gpu_constructs.workload.backend import Backend

PLUGIN, CLAIMS, EXTENDED = Backend.device_plugin(), Backend.dra_claims(), Backend.dra_extended_resource()
LOCAL = [Kubernetes(f"1.{minor}") for minor in range(27, 38)]
TALOS = [Talos(f"1.{minor}") for minor in range(10, 15)]


def serves(backend, platform):
    try:
        backend.require(platform)
    except GpuConstructsError:
        return False
    return True


def test_every_backend_but_the_device_plugin_is_a_dra_driver():
    assert [backend.is_dra for backend in (PLUGIN, CLAIMS, EXTENDED)] == [False, True, True]


@pytest.mark.parametrize(
    ("backend", "platforms"),
    [
        (PLUGIN, [*LOCAL, *TALOS]),
        (CLAIMS, [*LOCAL[7:], *TALOS[3:]]),
        (EXTENDED, [*LOCAL[9:], *TALOS[3:]]),
    ],
    ids=["device-plugin", "dra-claims", "dra-extended-resource"],
)
def test_a_backend_is_there_from_a_release_on(backend, platforms):
    assert [platform for platform in [*LOCAL, *TALOS] if serves(backend, platform)] == platforms


@pytest.mark.parametrize(
    ("backend", "platform", "parts"),
    [
        (CLAIMS, Kubernetes("1.33"), ["'dra-claims'", "Kubernetes 1.33", "resource.k8s.io/v1", "1.34"]),
        (CLAIMS, Talos("1.12"), ["'dra-claims'", "Talos 1.12", "CDI", "Backend.device_plugin()"]),
        (
            EXTENDED,
            Kubernetes("1.35"),
            ["'dra-extended-resource'", "1.36 or later", "got Kubernetes 1.35;", "Backend.dra_claims()"],
        ),
    ],
    ids=str,
)
def test_a_platform_without_it_is_refused_with_the_reason(backend, platform, parts):
    with pytest.raises(GpuConstructsError) as refused:
        backend.require(platform)
    assert all(part in str(refused.value) for part in parts)
    assert len(str(refused.value).splitlines()) == 1


def test_classes_of_another_name_can_be_claimed():
    backend = Backend.dra_claims(device_class="big.gpu.example", mig_device_class="small.gpu.example")
    assert (backend.device_class, backend.mig_device_class) == ("big.gpu.example", "small.gpu.example")
    assert (CLAIMS.device_class, CLAIMS.mig_device_class) == ("gpu.nvidia.com", "mig.nvidia.com")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Backend(kind="dra"), "backend.kind must be one of "),
        (lambda: Backend.dra_claims(device_class="My Class"), "backend.device_class must be a DNS subdomain"),
        (lambda: Backend.dra_claims(mig_device_class=5), "backend.mig_device_class must be str"),
        (lambda: Backend.dra_claims(clas="x"), "clas is no keyword of Backend.dra_claims"),
    ],
)
def test_what_no_cluster_has_is_refused(make, message):
    with pytest.raises(GpuConstructsError) as refused:
        make()
    assert str(refused.value).startswith(message)
