import pytest

from gpu_constructs import GpuConstructsError, Kubernetes, Talos
from gpu_constructs.catalog.platforms import ROUTES, require, routes
from gpu_constructs.catalog.versions import KUBERNETES_RELEASES
from refusals import refusal

TALOS = ["1.10", "1.11", "1.12", "1.13", "1.14"]


def test_a_talos_release_is_accepted_in_each_spelling():
    for version in TALOS:
        for spelt in ["{}", "v{}", "{}.0", "v{}.11"]:
            platform = Talos(spelt.format(version))
            assert platform.kubernetes == Talos(version).kubernetes, (version, spelt)
            assert platform.supports_cdi == Talos(version).supports_cdi, (version, spelt)


def test_a_prerelease_counts_as_its_minor_release():
    for version in ["1.14.0-rc.1", "v1.12.0-beta.0", "1.13.0-alpha.2"]:
        platform = Talos(version)
        assert platform.line == version.removeprefix("v")[:4], version
        assert platform.kubernetes == Talos(platform.line).kubernetes, version
        assert str(platform) == f"Talos {version}", version


def test_an_unknown_talos_version_is_rejected_with_the_supported_ones():
    for version in [
        *("1.12-rc.1", "1.12.0-rc", "1.12.0-rc1", "1.12.0-pre.1", "1.12.0-rc.1.2", "1.12.0-rc.1\n", "1.9.0-rc.1"),
        *("1.9", "1.15", "1", "", "1.12.x", "1.12.4.1", "1.12-beta", "vv1.12", "latest", "1.1"),
    ]:
        assert refusal(Talos, version) == (
            "platform.version must be one of '1.10', '1.11', '1.12', '1.13', '1.14' or a patch release of one, "
            f"got {version!r}. Pass the one that is nearest to your Talos release"
        )


def test_an_unknown_kubernetes_version_is_rejected_with_the_supported_ones():
    for version in ["1.26", "2.0", "", "v1.33", "1.33.1"]:
        with pytest.raises(GpuConstructsError) as refused:
            Kubernetes(version)
        listed = ", ".join(f"'1.{minor}'" for minor in range(27, 38))
        assert str(refused.value).startswith(f"platform.version must be one of {listed}, got {version!r}"), version


def test_a_version_that_is_not_text_is_rejected_with_its_python_type():
    for platform in [Talos, Kubernetes]:
        for version in [1.12, None, 1]:
            assert (
                refusal(platform, version) == f"platform.version must be str, got {type(version).__name__}: {version!r}"
            )


def test_each_talos_release_installs_a_supported_kubernetes_release():
    for version in TALOS:
        assert Talos(version).kubernetes in KUBERNETES_RELEASES, version


def test_talos_can_use_cdi_and_needs_no_bridge_from_1_13_on():
    for version, is_possible in list(zip(TALOS, [False, False, False, True, True], strict=True)):
        platform = Talos(version)
        assert platform.supports_cdi is is_possible, (version, is_possible)
        assert platform.gpu_operator_needs_bridge is not is_possible, (version, is_possible)
        assert platform.nvidia_driver_root == ("/usr/local" if is_possible else None), (version, is_possible)


def test_the_text_of_a_platform_is_its_common_name():
    assert str(Talos("1.12.4")) == "Talos 1.12.4"
    assert str(Kubernetes("1.33")) == "Kubernetes 1.33"


def test_talos_moved_the_driver_and_its_runtime_at_1_13():
    for version, is_new in list(zip(TALOS, [False, False, False, True, True], strict=True)):
        platform = Talos(version)
        assert platform.runtime_mode == ("cdi" if is_new else "legacy"), (version, is_new)
        assert platform.driver_library_path == ("/usr/local/lib" if is_new else "/usr/local/glibc/usr/lib")
        assert platform.driver_program_path == "/usr/local/bin", (version, is_new)
        assert platform.needs_bpf_jit_harden is not is_new, (version, is_new)


def test_talos_has_multi_document_configuration_from_1_14_on():
    for version in TALOS:
        platform = Talos(version)
        assert platform.machine_config == ("multi-document" if version == "1.14" else "v1alpha1"), version
        assert platform.node_taints_reach_workers is (version == "1.14"), version


OLD = ("device-plugin", "gpu-operator-bridge")
NEW = ("device-plugin", "device-plugin-cdi", "gpu-operator", "dra")


def test_each_platform_has_its_routes(rows):
    for platform, expected in rows:
        assert list(routes(platform)) == expected, (platform, expected)


def test_a_route_that_does_not_work_is_rejected_with_the_reason_and_the_alternatives():
    problem, _, listed = refusal(require, Talos("1.13"), "gpu-operator-bridge").partition(". Supported there: ")
    assert problem == (
        "platform Talos 1.13 does not support the GPU Operator with a ValidationBridge (GpuOperator, "
        "ValidationBridge): from Talos 1.13 on, a bridge hides what the validator of the operator finds. Leave the "
        "bridge out, and set driver.enabled=false, toolkit.enabled=false and hostPaths.driverInstallDir=/usr/local"
    )
    assert listed.split("; ") == [ROUTES[route] for route in NEW]


def test_a_route_that_works_is_accepted():
    for route in OLD:
        require(Talos("1.12"), route)
