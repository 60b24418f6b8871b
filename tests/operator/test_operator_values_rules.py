import re
from functools import partial

import pytest

import refusals
from gpu_constructs.catalog.platforms import Kubernetes, Talos
from gpu_constructs.catalog.versions import GPU_OPERATOR
from gpu_constructs.operator.chart_keys import check_keys
from gpu_constructs.operator.values import NFD
from gpu_constructs.operator.values_rules import check_rules
from tables import beside

OLD, MIDDLE, NEW = (GPU_OPERATOR[release] for release in ("25.10.1", "26.3.3", "26.7.0"))
OFF = {"driver": {"enabled": False}, "toolkit": {"enabled": False}, "migManager": {"enabled": False}}
LEGACY = {**OFF, "cdi": {"enabled": False}}
MODERN = {**OFF, "hostPaths": {"driverInstallDir": "/usr/local"}}
OURS = {"key": "team", "operator": "Equal", "value": "ml", "effect": "NoSchedule"}
GPU = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
CLUSTER = {"gpuCluster": {"deployCR": True}, "clusterPolicy": {"deployCR": False}}
DRIVERLESS = {"driver": {"enabled": False}}
CREATED = {"create": True, "name": "mine", "data": {"small": "version: v1"}}


def laid(change, over):
    return {
        **over,
        **{
            key: laid(value, over[key]) if isinstance(value, dict) and isinstance(over.get(key), dict) else value
            for key, value in change.items()
        },
    }


def env(strategy):
    return {"devicePlugin": {"env": [{"name": "DEVICE_LIST_STRATEGY", "value": strategy}]}}


def config(**given):
    return {"devicePlugin": {"config": given}}


def warnings(values, platform=None, release=NEW, **given):
    check_keys(values, release)
    return check_rules(values, release, platform or Kubernetes(), **given)


refusal = partial(refusals.problem, warnings)


PASSING = beside(__file__, "operator_values_rules")["passing"]


def test_values_that_contradict_nothing_pass():
    for values, platform in PASSING:
        for release in (OLD, MIDDLE, NEW):
            assert warnings(values, platform, release) == [], (values, release)
    for values in (DRIVERLESS, {"driver": {"nvidiaDriverCRD": {"enabled": True}}}):
        assert warnings({**CLUSTER, **values}) == []
    for release in (MIDDLE, NEW):
        assert warnings({"cdi": {"nriPluginEnabled": True}}, None, release) == []


def test_cdi_is_off_by_default_before_25_10():
    for release in GPU_OPERATOR.values():
        by_default, other = ("cdi-cri", "envvar") if release.uses_cdi_by_default else ("envvar", "cdi-cri")
        assert warnings(env(by_default), None, release) == [], release
        assert " while " in refusal(env(other), release=release), release


def test_values_that_talos_rejects(refused):
    refused(lambda change: warnings(laid(change, MODERN), Talos("1.13")))


def test_older_talos_rejects_cdi_gdrcopy_and_volume_mounts():
    assert "values.cdi.enabled must be false on Talos 1.12, got True" in refusal(OFF, Talos("1.12"))
    assert "got None" in refusal(laid({"cdi": {"enabled": None}}, OFF), Talos("1.12"))
    copy = laid({"gdrcopy": {"enabled": True}}, LEGACY)
    assert "values.gdrcopy.enabled must be false on Talos 1.11" in refusal(copy, Talos("1.11"))
    assert "it uses CDI" in refusal(laid(CLUSTER, LEGACY), Talos("1.12"))
    by_argument = {"devicePlugin": {"args": ["nvidia-device-plugin --device-list-strategy=envvar,volume-mounts"]}}
    for plugin in (env("volume-mounts"), by_argument):
        found = refusal({**LEGACY, **plugin}, Talos("1.12"))
        assert "must not contain 'volume-mounts' on Talos 1.12, got " in found
        assert found.endswith(". Use 'envvar'")


def test_a_bridge_that_stages_decides_the_folder_of_the_driver():
    staged = {"driver_install_dir": "/var/lib/gpu"}
    assert warnings(laid({"hostPaths": {"driverInstallDir": "/var/lib/gpu/"}}, LEGACY), Talos("1.12"), **staged) == []
    assert "must be '/var/lib/gpu', the folder of the driver files of the bridge, got '/run/nvidia/driver'" in refusal(
        LEGACY, Talos("1.12"), **staged
    )


@pytest.mark.parametrize("switch", ["driver", "toolkit", "cdi"])
def test_a_bridge_excludes_driver_toolkit_and_cdi_of_the_operator(switch):
    assert warnings(LEGACY, has_bridge=True) == []
    for got in (True, None):
        values = laid({switch: {"enabled": got}}, LEGACY)
        assert f"values.{switch}.enabled must be false with a ValidationBridge" in refusal(values, has_bridge=True)


def test_a_device_list_strategy_that_does_not_go_with_cdi_is_rejected(refused):
    refused(warnings)


def test_arguments_of_the_device_plugin_replace_its_script():
    for flag in ("--device-list-strategy=envvar", "-device-list-strategy 'envvar'"):
        values = {"devicePlugin": {"args": [f"nvidia-device-plugin {flag}"]}, "cdi": {"enabled": False}}
        assert warnings(values) == []


def test_values_that_contradict_each_other_are_rejected(refused):
    refused(warnings)


def test_a_gpu_cluster_needs_an_api_of_the_cluster():
    assert "resource.k8s.io/v1" in refusal({**CLUSTER, **DRIVERLESS}, Kubernetes("1.33"))


@pytest.mark.parametrize("operand", ["devicePlugin", "migManager", "dcgmExporter"])
def test_a_new_config_map_needs_a_name_and_data(operand):
    full = {**CREATED, "data": "a"} if operand == "dcgmExporter" else CREATED
    assert not [one for one in warnings({operand: {"config": full}}) if "create" in one]
    for key in ("name", "data"):
        without = {name: value for name, value in full.items() if name != key}
        problem = refusal({operand: {"config": without}})
        assert f"values.{operand}.config.{key} must have a value if {operand}.config.create is true" in problem


WARNED = beside(__file__, "operator_values_rules")["warned"]


@pytest.mark.parametrize(("values", "platform", "says"), WARNED)
def test_values_that_are_probably_a_mistake_warn(values, platform, says):
    (warning,) = warnings(values, platform)
    assert says in warning
    assert re.search(r"[.;] ", warning) or "so each GPU node must already have them" in warning


def test_a_pod_security_context_applies_to_a_gpu_cluster():
    assert warnings({"daemonsets": {"podSecurityContext": {"runAsUser": 0}}, **CLUSTER, **DRIVERLESS}) == []


def test_a_variable_that_the_validator_does_not_read_warns():
    def variable(name, release=NEW):
        return warnings({"validator": {"driver": {"env": [{"name": name, "value": "/"}]}}}, None, release)

    (warning,) = variable("OUTPUT_DIRS")
    assert warning.startswith("values.validator.driver.env sets 'OUTPUT_DIRS', which the validator does not read")
    assert "(did you mean 'OUTPUT_DIR'?). Remove it unless another program in its containers reads it" in warning
    assert "DRIVER_INSTALL_DIR_CTR_PATH" in warning
    for name in """DISABLE_DEV_CHAR_SYMLINK_CREATION DRIVER_VALIDATION_SKIP_GPU_INIT KUBERNETES_SERVICE_HOST HTTPS_PROXY
        no_proxy SSL_CERT_FILE GOMEMLIMIT""".split():
        assert variable(name) == [], name
    assert len(variable("DRIVER_VALIDATION_SKIP_GPU_INIT", MIDDLE)) == 1


def test_a_toleration_covers_more_specific_ones():
    def labelled(toleration):
        return {"daemonsets": {"tolerations": [OURS]}, NFD: {"worker": {"tolerations": [toleration]}}}

    exists = {"key": "team", "operator": "Exists"}
    for wide in ({"operator": "Exists"}, exists, {**exists, "effect": "NoSchedule"}, {"key": "team", "value": "ml"}):
        warnings(labelled(wide))
    for other in ({**exists, "effect": "NoExecute"}, {"key": "team", "value": "other"}, {**exists, "key": "squad"}):
        assert "must contain all" in refusal(labelled(other))


def test_messages_name_the_keyword_that_set_a_value():
    keywords = {"driver.enabled": "driver", "migManager.enabled": "mig_manager", "cdi.enabled": "cdi"}
    found = refusal(laid({"driver": {"enabled": True}}, MODERN), Talos("1.13"), keywords=keywords)
    assert found.startswith("driver must be False on Talos, got True: ")
    assert found.endswith(". Remove driver")
    (warning,) = warnings(laid({"migManager": {"enabled": True}}, MODERN), Talos("1.13"), keywords=keywords)
    assert warning.startswith("mig_manager is on: ")
    keywords = {"devicePlugin.env": "device_list_strategy", "cdi.enabled": "cdi"}
    assert refusal(env("envvar"), keywords=keywords).startswith(
        "device_list_strategy must be a strategy that starts with 'cdi-' while CDI is on (the default), got 'envvar'. "
        "Pass cdi=False, or remove device_list_strategy"
    )
    assert refusal({**env("cdi-cri"), "cdi": {"enabled": False}}, keywords=keywords) == (
        "device_list_strategy must be 'envvar' or 'volume-mounts' while CDI is off, got 'cdi-cri'. Remove "
        "device_list_strategy, or cdi=False"
    )
