from __future__ import annotations

from typing import Any

import pytest

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.operator.chart_keys import check_keys
from gpu_constructs.operator.values import NFD
from gpu_constructs.operator.values_rules import check_rules
from gpu_constructs.platforms import Kubernetes, Platform, Talos
from gpu_constructs.versions import GPU_OPERATOR, GpuOperatorRelease

OLD, MIDDLE, NEW = GPU_OPERATOR.values()
OFF = {"driver": {"enabled": False}, "toolkit": {"enabled": False}, "migManager": {"enabled": False}}
LEGACY = {**OFF, "cdi": {"enabled": False}}
OFFICIAL = {
    "driver": {"enabled": False},
    "toolkit": {"enabled": False},
    "hostPaths": {"driverInstallDir": "/usr/local"},
}
MODERN = {**OFF, "hostPaths": {"driverInstallDir": "/usr/local"}}
OURS = {"key": "team", "operator": "Equal", "value": "ml", "effect": "NoSchedule"}
GPU = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def laid(values: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    return {
        **over,
        **{
            key: laid(value, over[key]) if isinstance(value, dict) and isinstance(over.get(key), dict) else value
            for key, value in values.items()
        },
    }


def warnings(
    values: dict[str, Any],
    platform: Platform = Kubernetes(),  # noqa: B008
    release: GpuOperatorRelease = NEW,
    **given: Any,
) -> list[str]:
    check_keys(values, release)
    return check_rules(values, release, platform, **given)


def refusal(
    values: dict[str, Any],
    platform: Platform = Kubernetes(),  # noqa: B008
    release: GpuOperatorRelease = NEW,
    **given: Any,
) -> str:
    with pytest.raises(GpuConstructsError) as refused:
        warnings(values, platform, release, **given)
    return refused.value.problem


@pytest.mark.parametrize("release", GPU_OPERATOR.values(), ids=GPU_OPERATOR)
def test_values_that_talos_needs_pass(release: GpuOperatorRelease) -> None:
    assert warnings(LEGACY, Talos("1.12"), release) == []
    assert warnings(MODERN, Talos("1.13"), release) == []
    assert warnings({}, Kubernetes(), release) == []


def test_the_mig_manager_on_talos_warns_as_it_is_on_by_default() -> None:
    (warning,) = warnings(OFFICIAL, Talos("1.13"))
    assert warning.startswith("values.migManager.enabled is on")
    assert "systemd" in warning


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"driver": {"enabled": True}},
            "values.driver.enabled must be false on Talos; got True; there is no driver image",
        ),
        ({"driver": {"enabled": None}}, "values.driver.enabled must be false on Talos; got None"),
        ({"toolkit": {"enabled": True}}, "values.toolkit.enabled must be false on Talos; got True"),
        ({"driver": {"nvidiaDriverCRD": {"enabled": True}}}, "values.driver.nvidiaDriverCRD.enabled must be false on"),
        ({"hostPaths": {"driverInstallDir": "/opt"}}, "driverInstallDir must be '/usr/local'; got '/opt'"),
        ({"hostPaths": {"driverInstallDir": None}}, "driverInstallDir must be '/usr/local'; got None"),
        ({"cdi": {"nriPluginEnabled": True}}, "values.cdi.nriPluginEnabled must be false without toolkit.enabled"),
    ],
)
def test_talos_refuses(change: dict[str, Any], problem: str) -> None:
    assert problem in refusal(laid(change, MODERN), Talos("1.13"))


def test_nothing_is_said_of_driver_and_toolkit_where_the_operator_may_bring_them() -> None:
    assert warnings({"driver": {"enabled": True}, "toolkit": {"enabled": True}}) == []


def test_cdi_is_refused_where_no_spec_can_work() -> None:
    assert "values.cdi.enabled must be false on Talos 1.12; got True" in refusal(OFF, Talos("1.12"))
    assert "got None" in refusal(laid({"cdi": {"enabled": None}}, OFF), Talos("1.12"))


def test_the_driver_s_folder_is_the_staged_one_where_something_stages_it() -> None:
    staged = {"driver_install_dir": "/var/lib/gpu"}
    assert warnings(laid({"hostPaths": {"driverInstallDir": "/var/lib/gpu/"}}, LEGACY), Talos("1.12"), **staged) == []
    assert "must be '/var/lib/gpu'; got '/run/nvidia/driver'; there the driver's files are staged" in refusal(
        LEGACY, Talos("1.12"), **staged
    )


@pytest.mark.parametrize(
    ("strategy", "cdi", "problem"),
    [
        ("envvars", False, "got 'envvars' (did you mean 'envvar'?)"),
        ("envvar, cdi-cri", True, "joined by commas alone"),
        ("", True, "must be words of envvar, volume-mounts, cdi-annotations, cdi-cri"),
        ("envvar", True, "must be a cdi- strategy while cdi.enabled is true, as it is by default; got 'envvar'; set"),
        ("cdi-cri", False, "must be 'envvar' or 'volume-mounts' while cdi.enabled is false; got 'cdi-cri'"),
    ],
)
def test_a_device_list_strategy_is_refused(strategy: str, cdi: bool, problem: str) -> None:
    env = [{"name": "OTHER", "value": "1"}, {"name": "DEVICE_LIST_STRATEGY", "value": strategy}]
    found = refusal({"cdi": {"enabled": cdi}, "devicePlugin": {"env": env}})
    assert found.startswith("values.devicePlugin.env[1].value must be ")
    assert problem in found


@pytest.mark.parametrize(
    ("strategy", "cdi"), [("envvar", False), ("volume-mounts", False), ("cdi-cri", True), ("envvar,cdi-cri", True)]
)
def test_a_device_list_strategy_passes(strategy: str, cdi: bool) -> None:
    env = [{"name": "DEVICE_LIST_STRATEGY", "value": strategy}]
    assert warnings({"cdi": {"enabled": cdi}, "devicePlugin": {"env": env}}) == []


@pytest.mark.parametrize(
    "plugin",
    [
        {"env": [{"name": "DEVICE_LIST_STRATEGY", "value": "volume-mounts"}]},
        {"args": ["nvidia-device-plugin --device-list-strategy=envvar,volume-mounts"]},
    ],
)
def test_the_toolkit_of_talos_does_not_accept_volume_mounts(plugin: dict[str, Any]) -> None:
    found = refusal({**LEGACY, "devicePlugin": plugin}, Talos("1.12"))
    assert "must not hold 'volume-mounts' on Talos 1.12; got " in found
    assert found.endswith("; use 'envvar'")


@pytest.mark.parametrize("release", [MIDDLE, NEW])
def test_the_nri_plugin_needs_cdi_and_the_toolkit(release: GpuOperatorRelease) -> None:
    nri = {"cdi": {"nriPluginEnabled": True}}
    assert warnings(nri, release=release) == []
    assert "without cdi.enabled" in refusal({"cdi": {"nriPluginEnabled": True, "enabled": False}}, release=release)
    assert "without toolkit.enabled" in refusal({**nri, "toolkit": {"enabled": False}}, release=release)


@pytest.mark.parametrize("release", GPU_OPERATOR.values(), ids=GPU_OPERATOR)
@pytest.mark.parametrize("operand", ["devicePlugin", "migManager", "dcgmExporter"])
def test_a_config_map_to_create_needs_name_and_data(operand: str, release: GpuOperatorRelease) -> None:
    data: Any = "a" if operand == "dcgmExporter" else {"a": "version: v1"}
    full = {"create": True, "name": "mine", "data": data}
    assert not [one for one in warnings({operand: {"config": full}}, release=release) if "create" in one]
    for key in ("name", "data"):
        without = {name: value for name, value in full.items() if name != key}
        problem = refusal({operand: {"config": without}}, release=release)
        assert f"values.{operand}.config.{key} must be given where {operand}.config.create is true" in problem


def test_the_default_configuration_must_be_one_of_those_created() -> None:
    config = {"create": True, "name": "mine", "data": {"small": "version: v1"}, "default": "smal"}
    assert "must be one of small; got 'smal'; config-manager fails (did you mean 'small'?)" in refusal(
        {"devicePlugin": {"config": config}}
    )
    assert warnings({"devicePlugin": {"config": {**config, "default": "small"}}}) == []


def test_configurations_without_a_default_warn() -> None:
    (warning,) = warnings({"devicePlugin": {"config": {"name": "theirs"}}})
    assert "runs an empty configuration" in warning
    assert warnings({"devicePlugin": {"config": {"name": "theirs", "default": "a"}}}) == []


def test_gdrcopy_is_refused_where_no_extension_has_its_module() -> None:
    on = laid({"gdrcopy": {"enabled": True}}, LEGACY)
    assert "values.gdrcopy.enabled must be false on Talos 1.11" in refusal(on, Talos("1.11"))
    (warning,) = warnings(on, Talos("1.12"))
    assert "values.gdrcopy.enabled installs nothing while driver.enabled is false" in warning


def test_gds_without_the_driver_warns() -> None:
    gds = {"gds": {"enabled": True}}
    assert warnings(gds) == []
    (warning,) = warnings({**gds, "driver": {"enabled": False}})
    assert "nvidia_fs" in warning


def test_virtual_machines_on_talos_warn() -> None:
    sandbox = {"sandboxWorkloads": {"enabled": True}}
    assert "sandboxWorkloads" in warnings(laid(sandbox, MODERN), Talos("1.13"))[0]
    assert warnings(sandbox) == []


def test_labelling_its_own_namespace_is_needless() -> None:
    (warning,) = warnings({"psa": {"enabled": True}})
    assert warning.startswith("values.psa.enabled is needless: ")
    assert warning.endswith("; leave it out")
    assert warnings({"psa": {"enabled": False}}) == []


def test_node_feature_discovery_of_others_needs_no_warning_that_nothing_silences() -> None:
    assert [warnings({"nfd": {"enabled": False}}, release=release) for release in GPU_OPERATOR.values()] == [[]] * 3


def test_a_variable_that_the_validator_does_not_read_warns() -> None:
    def env(name: str) -> dict[str, Any]:
        return {"validator": {"driver": {"env": [{"name": name, "value": "/"}]}}}

    (warning,) = warnings(env("NVIDIA_DRIVER_ROOT"))
    assert "values.validator.driver.env sets 'NVIDIA_DRIVER_ROOT', which the validator does not read" in warning
    assert "DRIVER_INSTALL_DIR_CTR_PATH" in warning
    assert warnings(env("DISABLE_DEV_CHAR_SYMLINK_CREATION")) == []
    assert warnings(env("DRIVER_VALIDATION_SKIP_GPU_INIT")) == []
    assert len(warnings(env("DRIVER_VALIDATION_SKIP_GPU_INIT"), release=MIDDLE)) == 1
    (warning,) = warnings(env("OUTPUT_DIRS"))
    assert "(did you mean 'OUTPUT_DIR'?); leave it out unless another program in its containers reads it" in warning
    assert len(warnings({"validator": {"env": [{"name": "DRIVER_ROOT", "value": "/"}]}})) == 1


@pytest.mark.parametrize(
    "name",
    ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "HTTPS_PROXY", "no_proxy", "SSL_CERT_FILE", "GOMEMLIMIT"],
)
def test_what_the_libraries_of_the_validator_read_does_not_warn(name: str) -> None:
    assert warnings({"validator": {"plugin": {"env": [{"name": name, "value": "kubernetes.default"}]}}}) == []


def test_tolerations_of_the_operands_must_be_those_of_the_labelling_worker() -> None:
    operands = {"daemonsets": {"tolerations": [GPU, OURS]}}
    worker = {NFD: {"worker": {"tolerations": [GPU, OURS]}}}
    assert (
        f"values.{NFD}.worker.tolerations must hold what daemonsets.tolerations holds; got no {{'key': 'team'"
        in refusal(operands)
    )
    (warning,) = warnings(worker)
    assert warning.startswith("values.daemonsets.tolerations lacks {'key': 'team'")
    assert warning.endswith("; add it, or pass tolerations=[...]")
    assert warnings({**operands, **worker}) == []
    assert warnings({**operands, "nfd": {"enabled": False}}, release=OLD) == []


@pytest.mark.parametrize(
    "wide",
    [
        {"operator": "Exists"},
        {"key": "team", "operator": "Exists"},
        {"key": "team", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "team", "value": "ml"},
    ],
)
def test_a_wider_toleration_is_not_refused(wide: dict[str, Any]) -> None:
    values = {"daemonsets": {"tolerations": [OURS]}, NFD: {"worker": {"tolerations": [wide]}}}
    warnings(values)


@pytest.mark.parametrize(
    "other",
    [
        {"key": "team", "operator": "Exists", "effect": "NoExecute"},
        {"key": "team", "value": "other"},
        {"key": "squad", "operator": "Exists"},
    ],
)
def test_another_toleration_does_not_cover_one(other: dict[str, Any]) -> None:
    assert "must hold" in refusal({"daemonsets": {"tolerations": [OURS]}, NFD: {"worker": {"tolerations": [other]}}})


def test_cluster_policy_and_gpu_cluster_exclude_each_other() -> None:
    both = {"gpuCluster": {"deployCR": True}}
    assert "clusterPolicy.deployCR must be false beside gpuCluster.deployCR" in refusal(both)
    alone = {**both, "clusterPolicy": {"deployCR": False}}
    assert "driver.nvidiaDriverCRD.enabled must be true beside" in refusal(alone)
    assert warnings({**alone, "driver": {"enabled": False}}) == []
    assert warnings({**alone, "driver": {"nvidiaDriverCRD": {"enabled": True}}}) == []
    assert "resource.k8s.io/v1" in refusal({**alone, "driver": {"enabled": False}}, Kubernetes("1.33"))


@pytest.mark.parametrize(
    ("platform", "values", "why"),
    [
        (Talos("1.12"), LEGACY, "its devices are handed out by CDI"),
        (Talos("1.13"), MODERN, "its validator tells the DRA driver the root '/'"),
    ],
)
def test_a_gpu_cluster_is_refused_on_talos(platform: Platform, values: dict[str, Any], why: str) -> None:
    gpu_cluster = {"gpuCluster": {"deployCR": True}, "clusterPolicy": {"deployCR": False}}
    found = refusal(laid(gpu_cluster, values), platform)
    assert found.startswith(f"values.gpuCluster.deployCR must be false on {platform}; got True; {why}")
    assert warnings({**gpu_cluster, "driver": {"enabled": False}}) == []


def test_neither_custom_resource_warns() -> None:
    (warning,) = warnings({"clusterPolicy": {"deployCR": False}})
    assert "the operator has nothing to do" in warning


def test_a_pod_security_context_reaches_a_gpu_cluster_alone() -> None:
    values = {"daemonsets": {"podSecurityContext": {"runAsUser": 0}}}
    (warning,) = warnings(values)
    assert "no ClusterPolicy gets it" in warning
    gpu_cluster = {"gpuCluster": {"deployCR": True}, "clusterPolicy": {"deployCR": False}, "driver": {"enabled": False}}
    assert warnings({**values, **gpu_cluster}) == []


def test_a_worker_without_the_chart_s_own_toleration_warns_where_the_operands_have_it_by_default() -> None:
    without = {NFD: {"worker": {"tolerations": []}}}
    (warning,) = warnings(without)
    assert warning.startswith(f"values.{NFD}.worker.tolerations lacks {{'key': 'nvidia.com/gpu'")
    assert warning.endswith("; add it, if a node has it")
    stated = {"daemonsets": {"tolerations": [GPU]}}
    assert "must hold what daemonsets.tolerations holds" in refusal({**without, **stated})
    off = {NFD: {"worker": {"enable": False, "tolerations": []}}}
    assert warnings({**off, **stated}) == []


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({"driver": {"enabled": True}}, "driver.enabled"),
        ({"toolkit": {"enabled": True}}, "toolkit.enabled"),
        ({"cdi": {"enabled": True}}, "cdi.enabled"),
        ({"cdi": {"enabled": None}}, "cdi.enabled"),
    ],
)
def test_a_bridge_goes_with_no_driver_toolkit_or_cdi_of_the_operator(values: dict[str, Any], path: str) -> None:
    assert f"values.{path} must be false beside a ValidationBridge" in refusal(laid(values, LEGACY), has_bridge=True)
    assert warnings(LEGACY, has_bridge=True) == []


@pytest.mark.parametrize("name", [None, "", "nvidia"])
def test_talos_has_one_runtime_class(name: str | None) -> None:
    values = {**MODERN, "operator": {"runtimeClass": name}}
    assert warnings(values, Talos("1.13")) == []
    assert refusal({**values, "operator": {"runtimeClass": "nvidia-cdi"}}, Talos("1.13")).startswith(
        "values.operator.runtimeClass must be 'nvidia' on Talos 1.13; got 'nvidia-cdi'; it names the handler too"
    )
    assert warnings({"operator": {"runtimeClass": "nvidia-cdi"}}) == []


def test_an_argument_of_the_device_plugin_stands_for_its_script() -> None:
    flag = "--device-list-strategy=envvar"
    assert refusal({"devicePlugin": {"args": [flag]}}) == (
        "values.devicePlugin.args must open with a command of a shell: the operator runs '/bin/sh -c' with it instead "
        f"of its own script; got {flag!r}; say flags as variables in values.devicePlugin.env, like DEVICE_LIST_STRATEGY"
    )
    assert warnings({"devicePlugin": {"args": ["/bin/entrypoint.sh"]}}) == []


@pytest.mark.parametrize("flag", ["--device-list-strategy=envvar", "-device-list-strategy 'envvar'"])
def test_a_strategy_in_an_argument_goes_with_cdi_too(flag: str) -> None:
    values = {"devicePlugin": {"args": [f"nvidia-device-plugin {flag}"]}}
    assert refusal(values).startswith(
        "--device-list-strategy in values.devicePlugin.args must be a cdi- strategy while cdi.enabled is true"
    )
    assert warnings({**values, "cdi": {"enabled": False}}) == []


def test_a_service_monitor_needs_its_exporter() -> None:
    monitor = {"serviceMonitor": {"enabled": True}}
    assert warnings({"dcgmExporter": monitor}) == []
    assert refusal({"dcgmExporter": {**monitor, "enabled": False}}).startswith(
        "values.dcgmExporter.serviceMonitor.enabled must be false while dcgmExporter.enabled is false; got True; "
    )


@pytest.mark.parametrize(
    "plugin", [{"config": {"name": "a", "default": "b"}}, {"env": [{"name": "FAIL_ON_INIT_ERROR", "value": "true"}]}]
)
def test_a_gpu_cluster_has_no_device_plugin_to_configure(plugin: dict[str, Any]) -> None:
    values = {"gpuCluster": {"deployCR": True}, "clusterPolicy": {"deployCR": False}, "driver": {"enabled": False}}
    assert "must be left out beside gpuCluster.deployCR" in refusal({**values, "devicePlugin": plugin})


def test_what_a_keyword_said_is_named_by_the_keyword() -> None:
    keywords = {"driver.enabled": "driver", "migManager.enabled": "mig_manager", "cdi.enabled": "cdi"}
    found = refusal(laid({"driver": {"enabled": True}}, MODERN), Talos("1.13"), keywords=keywords)
    assert found.startswith("driver must be False on Talos; got True; ")
    assert found.endswith("; leave driver out")
    assert "cdi must be False on Talos 1.12; got True; " in refusal(
        laid({"cdi": {"enabled": True}}, LEGACY), Talos("1.12"), keywords=keywords
    )
    (warning,) = warnings(laid({"migManager": {"enabled": True}}, MODERN), Talos("1.13"), keywords=keywords)
    assert warning.startswith("mig_manager is on: ")


def test_a_strategy_that_a_keyword_said_is_named_by_the_keyword() -> None:
    keywords = {"devicePlugin.env": "device_list_strategy", "cdi.enabled": "cdi"}

    def env(value: str) -> dict[str, Any]:
        return {"devicePlugin": {"env": [{"name": "DEVICE_LIST_STRATEGY", "value": value}]}}

    assert refusal(env("envvar"), keywords=keywords).startswith(
        "device_list_strategy must be a cdi- strategy while CDI is on, as it is by default; got 'envvar'; pass "
        "cdi=False, which alone gives 'envvar', or leave device_list_strategy out"
    )
    assert refusal({**env("cdi-cri"), "cdi": {"enabled": False}}, keywords=keywords) == (
        "device_list_strategy must be 'envvar' or 'volume-mounts' while CDI is off; got 'cdi-cri'; leave "
        "device_list_strategy out, or take cdi=False back"
    )
