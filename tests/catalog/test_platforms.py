import pytest

from gpu_constructs import GpuConstructsError, Kubernetes, Talos
from gpu_constructs.catalog.platforms import ROUTES, require, routes
from gpu_constructs.catalog.versions import KUBERNETES_RELEASES
from refusals import refusal

TALOS = ["1.10", "1.11", "1.12", "1.13", "1.14"]


def test_a_talos_line_is_taken_in_each_spelling_of_its_releases():
    for version in TALOS:
        for spelt in ["{}", "v{}", "{}.0", "v{}.11"]:
            platform = Talos(spelt.format(version))
            assert platform.kubernetes == Talos(version).kubernetes, (version, spelt)
            assert platform.supports_cdi == Talos(version).supports_cdi, (version, spelt)


def test_a_release_before_the_first_is_taken_for_its_line():
    for version in ["1.14.0-rc.1", "v1.12.0-beta.0", "1.13.0-alpha.2"]:
        platform = Talos(version)
        assert platform.line == version.removeprefix("v")[:4], version
        assert platform.kubernetes == Talos(platform.line).kubernetes, version
        assert str(platform) == f"Talos {version}", version


def test_a_talos_version_we_do_not_know_is_refused_with_those_we_do():
    for version in [
        *("1.12-rc.1", "1.12.0-rc", "1.12.0-rc1", "1.12.0-pre.1", "1.12.0-rc.1.2", "1.12.0-rc.1\n", "1.9.0-rc.1"),
        *("1.9", "1.15", "1", "", "1.12.x", "1.12.4.1", "1.12-beta", "vv1.12", "latest", "1.1"),
    ]:
        assert refusal(Talos, version) == (
            "platform.version must be one of '1.10', '1.11', '1.12', '1.13', '1.14' or a patch release of them; "
            f"got {version!r}; take the nearest of them to the Talos you run"
        )


def test_a_kubernetes_version_we_do_not_check_with_is_refused_with_those_we_do():
    for version in ["1.26", "2.0", "", "v1.33", "1.33.1"]:
        with pytest.raises(GpuConstructsError) as refused:
            Kubernetes(version)
        listed = ", ".join(f"'1.{minor}'" for minor in range(27, 38))
        assert str(refused.value).startswith(f"platform.version must be one of {listed}; got {version!r}"), version


def test_a_version_that_is_no_text_is_refused_as_a_python_type():
    for platform in [Talos, Kubernetes]:
        for version in [1.12, None, 1]:
            assert (
                refusal(platform, version) == f"platform.version must be str; got {type(version).__name__}: {version!r}"
            )


def test_each_talos_line_installs_a_kubernetes_we_check_with():
    for version in TALOS:
        assert Talos(version).kubernetes in KUBERNETES_RELEASES, version


def test_talos_can_use_cdi_and_needs_no_bridge_from_1_13_on():
    for version, is_possible in list(zip(TALOS, [False, False, False, True, True], strict=True)):
        platform = Talos(version)
        assert platform.supports_cdi is is_possible, (version, is_possible)
        assert platform.gpu_operator_needs_bridge is not is_possible, (version, is_possible)
        assert platform.nvidia_driver_root == ("/usr/local" if is_possible else None), (version, is_possible)


def test_a_platform_is_written_as_users_call_it():
    assert str(Talos("1.12.4")) == "Talos 1.12.4"
    assert str(Kubernetes("1.33")) == "Kubernetes 1.33"


def test_talos_moved_the_driver_and_its_runtime_at_1_13():
    for version, is_new in list(zip(TALOS, [False, False, False, True, True], strict=True)):
        platform = Talos(version)
        assert platform.runtime_mode == ("cdi" if is_new else "legacy"), (version, is_new)
        assert platform.driver_library_path == ("/usr/local/lib" if is_new else "/usr/local/glibc/usr/lib")
        assert platform.driver_program_path == "/usr/local/bin", (version, is_new)
        assert platform.needs_bpf_jit_harden is not is_new, (version, is_new)


def test_talos_configures_machines_by_documents_from_1_14_on():
    for version in TALOS:
        platform = Talos(version)
        assert platform.machine_config == ("multi-document" if version == "1.14" else "v1alpha1"), version
        assert platform.node_taints_reach_workers is (version == "1.14"), version


OLD = ("device-plugin", "gpu-operator-bridge")
NEW = ("device-plugin", "device-plugin-cdi", "gpu-operator", "dra")


def test_each_platform_has_its_routes(rows):
    for platform, expected in rows:
        assert list(routes(platform)) == expected, (platform, expected)


def test_a_route_that_does_not_work_is_refused_with_the_reason_and_those_that_do():
    with pytest.raises(GpuConstructsError) as refused:
        require(Talos("1.13"), "gpu-operator-bridge")
    problem, _, listed = str(refused.value).partition(". Supported there: ")
    assert problem == (
        "platform Talos 1.13 does not go with the GPU Operator beside a ValidationBridge (GpuOperator, "
        "ValidationBridge): from Talos 1.13 on the operator's own validator passes with driver.enabled=false, "
        "toolkit.enabled=false and hostPaths.driverInstallDir=/usr/local, and a bridge would hide what it finds; leave "
        "the bridge out"
    )
    assert listed.split("; ") == [ROUTES[route] for route in NEW]


def test_a_route_that_works_is_taken():
    for route in OLD:
        require(Talos("1.12"), route)
