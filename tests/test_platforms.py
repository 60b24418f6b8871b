import pytest

from gpu_constructs import GpuConstructsError, Kubernetes, Talos
from gpu_constructs.platforms import DEFAULT_PLATFORM, ROUTES, require, routes
from gpu_constructs.versions import KUBERNETES_RELEASES

TALOS = ["1.10", "1.11", "1.12", "1.13", "1.14"]


@pytest.mark.parametrize("version", TALOS)
@pytest.mark.parametrize("spelt", ["{}", "v{}", "{}.0", "v{}.11"])
def test_a_talos_line_is_taken_in_each_spelling_of_its_releases(version, spelt):
    platform = Talos(spelt.format(version))
    assert platform.kubernetes == Talos(version).kubernetes
    assert platform.supports_cdi == Talos(version).supports_cdi


@pytest.mark.parametrize("version", ["1.14.0-rc.1", "v1.12.0-beta.0", "1.13.0-alpha.2"])
def test_a_release_before_the_first_is_taken_for_its_line(version):
    platform = Talos(version)
    assert platform.line == version.removeprefix("v")[:4]
    assert platform.kubernetes == Talos(platform.line).kubernetes
    assert str(platform) == f"Talos {version}"


@pytest.mark.parametrize(
    "version",
    [
        "1.12-rc.1",
        "1.12.0-rc",
        "1.12.0-rc1",
        "1.12.0-pre.1",
        "1.12.0-rc.1.2",
        "1.12.0-rc.1\n",
        "1.9.0-rc.1",
        "1.9",
        "1.15",
        "1",
        "",
        "1.12.x",
        "1.12.4.1",
        "1.12-beta",
        "vv1.12",
        "latest",
        "1.1",
    ],
)
def test_a_talos_version_we_do_not_know_is_refused_with_those_we_do(version):
    with pytest.raises(GpuConstructsError) as refused:
        Talos(version)
    assert str(refused.value) == (
        "platform.version must be one of '1.10', '1.11', '1.12', '1.13', '1.14' or a patch release of them; "
        f"got {version!r}; take the nearest of them to the Talos you run"
    )


@pytest.mark.parametrize("version", ["1.26", "2.0", "", "v1.33", "1.33.1"])
def test_a_kubernetes_version_we_do_not_check_with_is_refused_with_those_we_do(version):
    with pytest.raises(GpuConstructsError) as refused:
        Kubernetes(version)
    listed = ", ".join(f"'1.{minor}'" for minor in range(27, 38))
    assert str(refused.value).startswith(f"platform.version must be one of {listed}; got {version!r}")


@pytest.mark.parametrize("platform", [Talos, Kubernetes])
@pytest.mark.parametrize("version", [1.12, None, 1])
def test_a_version_that_is_no_text_is_refused_as_a_python_type(platform, version):
    with pytest.raises(GpuConstructsError) as refused:
        platform(version)
    assert str(refused.value) == f"platform.version must be str; got {type(version).__name__}: {version!r}"


def test_the_default_platform_is_talos_1_12():
    assert Talos() == Talos("1.12") == DEFAULT_PLATFORM


def test_plain_kubernetes_is_the_newest_release_unless_told_otherwise():
    assert Kubernetes().kubernetes == KUBERNETES_RELEASES[-1] == "1.37"
    assert Kubernetes("1.27").kubernetes == "1.27"


@pytest.mark.parametrize("version", TALOS)
def test_each_talos_line_installs_a_kubernetes_we_check_with(version):
    assert Talos(version).kubernetes in KUBERNETES_RELEASES


@pytest.mark.parametrize("version", TALOS)
def test_talos_hands_devices_out_by_environment_and_finds_them_through_nvml(version):
    platform = Talos(version)
    assert platform.device_list_strategy == ("envvar",)
    assert platform.device_discovery_strategy == "nvml"


@pytest.mark.parametrize("version", TALOS)
def test_talos_needs_a_runtime_class_and_enforces_baseline_by_itself(version):
    platform = Talos(version)
    assert platform.runtime_class == "nvidia"
    assert platform.pod_security_default == "baseline"
    assert platform.gpu_node_selector == {"nvidia.com/gpu.present": "true"}
    assert len(platform.driver_node_labels) == 4
    assert all(label.startswith("extensions.talos.dev/") for label in platform.driver_node_labels)


@pytest.mark.parametrize(("version", "is_possible"), list(zip(TALOS, [False, False, False, True, True], strict=True)))
def test_talos_can_use_cdi_and_needs_no_bridge_from_1_13_on(version, is_possible):
    platform = Talos(version)
    assert platform.supports_cdi is is_possible
    assert platform.gpu_operator_needs_bridge is not is_possible
    assert platform.nvidia_driver_root == ("/usr/local" if is_possible else None)


@pytest.mark.parametrize(("version", "is_needed"), list(zip(TALOS, [False, False, True, True, True], strict=True)))
def test_talos_grants_mig_monitoring_to_privileged_containers_only_from_1_12_on(version, is_needed):
    assert Talos(version).mig_needs_privileged is is_needed


def test_plain_kubernetes_assumes_nothing():
    platform = Kubernetes()
    assert platform.runtime_class is None
    assert platform.device_list_strategy == ()
    assert platform.device_discovery_strategy is None
    assert platform.pod_security_default is None
    assert platform.gpu_node_selector == {}
    assert platform.driver_node_labels == ()
    assert platform.supports_cdi
    assert platform.nvidia_driver_root == "/"
    assert not platform.mig_needs_privileged
    assert not platform.gpu_operator_needs_bridge


def test_a_platform_is_written_as_users_call_it():
    assert str(Talos("1.12.4")) == "Talos 1.12.4"
    assert str(Kubernetes("1.33")) == "Kubernetes 1.33"


@pytest.mark.parametrize("platform", [Talos(), Kubernetes()])
def test_a_platform_cannot_be_changed_after_it_was_checked(platform):
    with pytest.raises(AttributeError):
        platform.version = "9.9"


@pytest.mark.parametrize("version", TALOS)
def test_mps_is_doubtful_on_the_one_line_of_talos_that_it_was_reported_on(version):
    assert Talos(version).mps_is_doubtful is (version == "1.12")
    assert Talos(f"v{version}.3").mps_is_doubtful is (version == "1.12")


def test_nothing_is_known_against_mps_on_plain_kubernetes():
    assert not Kubernetes().mps_is_doubtful


@pytest.mark.parametrize(("version", "is_new"), list(zip(TALOS, [False, False, False, True, True], strict=True)))
def test_talos_moved_the_driver_and_its_runtime_at_1_13(version, is_new):
    platform = Talos(version)
    assert platform.runtime_mode == ("cdi" if is_new else "legacy")
    assert platform.driver_library_path == ("/usr/local/lib" if is_new else "/usr/local/glibc/usr/lib")
    assert platform.driver_program_path == "/usr/local/bin"
    assert platform.needs_bpf_jit_harden is not is_new


@pytest.mark.parametrize("version", TALOS)
def test_talos_configures_machines_by_documents_from_1_14_on(version):
    platform = Talos(version)
    assert platform.machine_config == ("multi-document" if version == "1.14" else "v1alpha1")
    assert platform.node_taints_reach_workers is (version == "1.14")


@pytest.mark.parametrize("version", TALOS)
def test_talos_has_gdrcopy_from_1_12_on(version):
    assert Talos(version).has_gdrdrv is (version not in ("1.10", "1.11"))


def test_the_nodes_of_talos_bring_the_driver_and_those_of_others_may_not():
    assert Talos().brings_driver
    assert not Kubernetes().brings_driver


OLD = ("device-plugin", "gpu-operator-bridge")
NEW = ("device-plugin", "device-plugin-cdi", "gpu-operator", "dra")
ANY = ("device-plugin", "device-plugin-cdi", "gpu-operator", "gpu-operator-bridge", "dra")


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        *((Talos(version), OLD if version < "1.13" else NEW) for version in TALOS),
        (Kubernetes("1.33"), ANY[:-1]),
        (Kubernetes("1.34"), ANY),
        (Kubernetes(), ANY),
    ],
    ids=str,
)
def test_each_platform_has_its_routes(platform, expected):
    assert routes(platform) == expected


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


@pytest.mark.parametrize("route", OLD)
def test_a_route_that_works_is_taken(route):
    require(Talos("1.12"), route)
