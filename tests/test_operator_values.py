import re
from datetime import timedelta

import pytest

from gpu_constructs import (
    Configs,
    Flags,
    GfdFlags,
    GpuConstructsError,
    Kubernetes,
    PluginConfig,
    PluginFlags,
    Sharing,
    Talos,
    Toleration,
)
from gpu_constructs.operator import values
from gpu_constructs.versions import GPU_OPERATOR

OLD, MIDDLE, NEW = (release.device_plugin for release in GPU_OPERATOR.values())
TAINT = Toleration(key="dedicated", value="ai", effect="NoSchedule")
SLICES = PluginConfig(sharing=Sharing.time_slicing(replicas=4))
NVIDIA_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def of_keywords(**given):
    nothing = {
        "tolerations": (),
        "device_list_strategy": (),
        "configs": None,
        "mig_strategy": None,
        "switches": {},
    }
    return values.of_keywords(**{**nothing, **given})


def refusal(make, *given, **more):
    with pytest.raises(GpuConstructsError) as refused:
        make(*given, **more)
    return str(refused.value)


@pytest.mark.parametrize("line", ["1.10", "1.11", "1.12"])
def test_until_talos_1_12_the_operator_installs_nothing_and_uses_no_cdi(line):
    assert values.of_platform(Talos(line), driver_install_dir=None) == {
        "driver": {"enabled": False},
        "toolkit": {"enabled": False},
        "cdi": {"enabled": False},
        "migManager": {"enabled": False},
    }


@pytest.mark.parametrize("line", ["1.13", "1.14"])
def test_from_talos_1_13_on_the_validator_looks_for_the_driver_in_usr_local(line):
    assert values.of_platform(Talos(line), driver_install_dir=None) == {
        "driver": {"enabled": False},
        "toolkit": {"enabled": False},
        "hostPaths": {"driverInstallDir": "/usr/local"},
        "migManager": {"enabled": False},
    }


def test_staged_files_are_where_the_validator_looks():
    staged = values.of_platform(Talos("1.12"), driver_install_dir="/var/lib/gpu-constructs/driver")
    assert staged["hostPaths"] == {"driverInstallDir": "/var/lib/gpu-constructs/driver"}
    assert staged["cdi"] == {"enabled": False}
    assert values.of_platform(Kubernetes(), driver_install_dir="/opt/driver") == {
        "hostPaths": {"driverInstallDir": "/opt/driver"}
    }


def test_beside_a_bridge_plain_kubernetes_has_driver_and_toolkit_and_no_cdi():
    off = {"driver": {"enabled": False}, "toolkit": {"enabled": False}, "cdi": {"enabled": False}}
    assert values.of_platform(Kubernetes(), driver_install_dir=None, has_bridge=True) == off
    assert values.of_platform(Kubernetes(), driver_install_dir="/opt/driver", has_bridge=True) == {
        **off,
        "hostPaths": {"driverInstallDir": "/opt/driver"},
    }


def test_plain_kubernetes_leaves_everything_to_the_chart():
    assert values.of_platform(Kubernetes(), driver_install_dir=None) == {}


def test_keywords_left_out_say_nothing():
    assert of_keywords(switches={"cdi.enabled": None}) == {}


def test_a_switch_is_written_under_its_key():
    switches = {"dcgmExporter.enabled": True, "dcgmExporter.serviceMonitor.enabled": False}
    assert of_keywords(switches=switches) == {"dcgmExporter": {"enabled": True, "serviceMonitor": {"enabled": False}}}


def test_tolerations_reach_both_places_and_keep_those_of_the_chart():
    written = of_keywords(tolerations=[TAINT])
    assert written == {
        "daemonsets": {"tolerations": [NVIDIA_TAINT, TAINT.to_manifest()]},
        "node-feature-discovery": {
            "worker": {
                "tolerations": [
                    {"key": "node-role.kubernetes.io/control-plane", "operator": "Equal", "effect": "NoSchedule"},
                    NVIDIA_TAINT,
                    TAINT.to_manifest(),
                ]
            }
        },
    }


def test_without_node_feature_discovery_its_worker_needs_none():
    written = of_keywords(tolerations=[TAINT], switches={"nfd.enabled": False})
    assert written.keys() == {"nfd", "daemonsets"}


def test_the_device_list_strategy_is_a_variable_of_the_plugin():
    assert of_keywords(device_list_strategy=("cdi-annotations", "cdi-cri")) == {
        "devicePlugin": {"env": [{"name": "DEVICE_LIST_STRATEGY", "value": "cdi-annotations,cdi-cri"}]}
    }


def test_one_configuration_is_the_default_of_a_config_map_that_the_chart_makes():
    configs = values.plugin_configs(SLICES, NEW)
    config = of_keywords(configs=configs)["devicePlugin"]["config"]
    assert re.fullmatch("nvidia-device-plugin-configs-[0-9a-f]{8}", config.pop("name"))
    assert config == {"create": True, "default": "default", "data": {"default": SLICES.to_yaml()}}


def test_a_changed_configuration_is_mounted_by_another_name_and_touches_no_other_operand():
    first, second, same, other_key = (
        of_keywords(configs=values.plugin_configs(config, NEW))
        for config in (SLICES, PluginConfig(), SLICES, Configs.managed({"other": SLICES}, default="other"))
    )
    names = [one["devicePlugin"]["config"]["name"] for one in (first, second, other_key)]
    assert len(set(names)) == 3
    assert first == same
    assert first.keys() == {"devicePlugin"}


def test_several_configurations_keep_their_names():
    configs = Configs.managed({"a": SLICES, "b": PluginConfig()}, default="b")
    config = of_keywords(configs=configs)["devicePlugin"]["config"]
    assert (config["default"], list(config["data"])) == ("b", ["a", "b"])


def test_a_config_map_of_somebody_else_is_named_and_not_made():
    configs = Configs.external("theirs", default="a")
    assert of_keywords(configs=configs) == {"devicePlugin": {"config": {"name": "theirs", "default": "a"}}}
    without = Configs.external("theirs", fallback_strategies=["empty"])
    assert of_keywords(configs=without) == {"devicePlugin": {"config": {"name": "theirs"}}}


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (SLICES, None),
        (PluginConfig(flags=Flags(mig_strategy="mixed")), "mixed"),
        (PluginConfig(flags=Flags(mig_strategy="none")), "none"),
        (PluginConfig(sharing=Sharing.mps(replicas=4)), "none"),
    ],
)
def test_the_operator_is_told_the_mig_strategy_of_the_file_which_its_own_would_beat(config, told):
    assert values.mig_strategy(values.plugin_configs(config, NEW)) == told


def test_without_a_configuration_there_is_no_mig_strategy_to_tell():
    assert values.mig_strategy(None) is None
    assert values.mig_strategy(Configs.external("theirs", default="a")) is None


def test_configurations_for_one_daemonset_each_are_refused():
    assert refusal(values.plugin_configs, Configs.named({"a": SLICES}, default="a"), NEW) == (
        "config must be a PluginConfig, Configs.managed(...) or Configs.external(...): the operator has one DaemonSet "
        "with a config-manager; got Configs.named(...)"
    )


def test_what_says_nothing_to_the_operator_is_refused():
    external = Configs.external("theirs", default="a", may_use=["mig"])
    assert refusal(values.plugin_configs, external, NEW).startswith("config.flags and config.may_use do nothing here")


def test_configurations_must_agree_on_the_mig_strategy():
    mixed = PluginConfig(flags=Flags(mig_strategy="mixed"))
    configs = Configs.managed({"a": SLICES, "b": mixed}, default="a")
    assert refusal(values.plugin_configs, configs, NEW) == (
        "config must have one flags.mig_strategy in all configurations, since the operator states it for all nodes; "
        "got 'mixed', 'none'"
    )


@pytest.mark.parametrize(
    ("flags", "variable"),
    [
        (Flags(fail_on_init_error=False), "FAIL_ON_INIT_ERROR"),
        (Flags(plugin=PluginFlags(pass_device_specs=False)), "PASS_DEVICE_SPECS"),
        (Flags(plugin=PluginFlags(device_id_strategy="index")), "DEVICE_ID_STRATEGY"),
        (Flags(plugin=PluginFlags(container_driver_root="/x")), "DRIVER_ROOT_CTR_PATH"),
        (Flags(nvidia_driver_root="/x"), "NVIDIA_DRIVER_ROOT"),
        (Flags(nvidia_dev_root="/x"), "NVIDIA_DEV_ROOT"),
        (Flags(mps_root="/x"), "MPS_ROOT"),
        (Flags(gfd=GfdFlags(sleep_interval=timedelta(seconds=5))), "GFD_SLEEP_INTERVAL"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_setting_that_the_operators_own_variable_beats_is_refused(flags, variable):
    message = refusal(values.plugin_configs, PluginConfig(flags=flags), NEW)
    assert f"the operator states {variable} beside it, which wins" in message
    assert f"[{{'name': {variable!r}, 'value': ...}}]" in message


def test_a_device_list_strategy_in_the_file_is_refused_with_its_keyword():
    config = PluginConfig(flags=Flags(plugin=PluginFlags(device_list_strategy="envvar")))
    assert refusal(values.plugin_configs, config, NEW).endswith("take it out and pass device_list_strategy=...")


def test_a_setting_that_says_what_the_operator_says_is_taken():
    flags = Flags(fail_on_init_error=True, plugin=PluginFlags(pass_device_specs=True, device_id_strategy="uuid"))
    assert values.plugin_configs(PluginConfig(flags=flags), NEW)


@pytest.mark.parametrize(("release", "is_taken"), [(OLD, False), (MIDDLE, False), (NEW, True)], ids=lambda r: str(r))
def test_a_setting_needs_the_release_of_the_plugin_that_the_operator_runs(release, is_taken):
    config = PluginConfig(flags=Flags(plugin=PluginFlags(shared_devices_allocation_policy="packed")))
    if is_taken:
        assert values.plugin_configs(config, release)
    else:
        assert f"which {release.version} would ignore" in refusal(values.plugin_configs, config, release)


def test_own_values_are_laid_over_the_platforms_and_lists_replace():
    base = {"driver": {"enabled": False}, "cdi": {"enabled": False}}
    own = {"driver": {"version": "1"}, "operator": {"args": ["a"]}, "cdi": {"enabled": True}}
    assert values.merged(base, {}, own) == {
        "driver": {"enabled": False, "version": "1"},
        "cdi": {"enabled": True},
        "operator": {"args": ["a"]},
    }


def test_nothing_that_was_given_is_changed():
    base, stated, own = {"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"d": 3}}
    assert values.merged(base, stated, own) == {"a": {"b": 1, "c": 2, "d": 3}}
    assert (base, stated, own) == ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"d": 3}})


def test_own_values_may_repeat_a_keyword_and_not_contradict_it():
    stated = {"mig": {"strategy": "mixed"}}
    assert values.merged({}, stated, {"mig": {"strategy": "mixed"}}) == stated
    assert refusal(values.merged, {}, stated, {"mig": {"strategy": "none"}}) == (
        "values.mig.strategy is 'none', and the keyword mig_strategy says 'mixed'; leave one of the two out"
    )


def test_own_values_join_no_configuration_that_a_keyword_wrote():
    stated = of_keywords(configs=values.plugin_configs(SLICES, NEW))
    more = {"devicePlugin": {"config": {"data": {"other": "version: v1"}}}}
    keywords = values.keywords_of(stated, config="sharing", mig_strategy="sharing")
    assert refusal(values.merged, {}, stated, more, keywords) == (
        "values.devicePlugin.config.data.other must not stand beside the keyword sharing, which writes the whole "
        "section; got 'version: v1'; say it there, or leave sharing out"
    )
    external = of_keywords(configs=Configs.external("theirs", default="a"))
    assert "values.devicePlugin.config.data must not stand beside the keyword config" in refusal(
        values.merged, {}, external, more
    )
    same = {"devicePlugin": {"config": {**stated["devicePlugin"]["config"]}}}
    assert values.merged({}, stated, same) == stated


def test_a_key_is_named_by_the_keyword_that_said_it():
    stated = of_keywords(switches={"cdi.enabled": True}, mig_strategy="none")
    assert values.keywords_of(stated, config="config", mig_strategy="sharing") == {
        "cdi.enabled": "cdi",
        "mig.strategy": "sharing",
    }


STRATEGY = {"name": "DEVICE_LIST_STRATEGY", "value": "envvar"}


def test_variables_of_the_user_join_those_of_keywords():
    other = {"name": "FAIL_ON_INIT_ERROR", "value": "false"}
    stated = {"devicePlugin": {"env": [STRATEGY]}}
    assert values.merged({}, stated, {"devicePlugin": {"env": [other, STRATEGY]}}) == {
        "devicePlugin": {"env": [STRATEGY, other]}
    }


def test_a_variable_is_not_said_twice_in_different_ways():
    own = {"devicePlugin": {"env": [{**STRATEGY, "value": "cdi-cri"}]}}
    assert refusal(values.merged, {}, {"devicePlugin": {"env": [STRATEGY]}}, own) == (
        "values.devicePlugin.env sets DEVICE_LIST_STRATEGY to 'cdi-cri', and the keyword "
        "device_list_strategy says 'envvar'; leave one of the two out"
    )


def told(**config):
    return {"devicePlugin": {"config": config}}


def test_a_configuration_written_as_text_is_read():
    written = told(create=True, name="a", data={"b": SLICES.to_yaml(), "gone": None})
    assert values.config_warnings(written, NEW) == []
    assert values.values_configs(written).configs["b"].sharing == SLICES.sharing


def test_of_several_configurations_written_as_text_the_default_is_the_one_named():
    written = told(create=True, name="a", data={"a": "version: v1", "b": SLICES.to_yaml()}, default="b")
    assert values.values_configs(written).default == "b"


def test_without_a_configuration_a_gpu_is_advertised_as_it_is():
    assert [one.sharing for one in values.values_configs({}).configs.values()] == [Sharing.none()]


@pytest.mark.parametrize(
    "config",
    [{"name": "theirs"}, {"create": True, "name": "a", "data": {"b": "version: v1\nodd: 1"}}],
)
def test_what_a_configuration_advertises_that_nobody_here_reads_is_not_known(config):
    assert values.values_configs(told(**config)) is None


def test_a_configuration_that_is_no_yaml_is_refused():
    message = refusal(values.config_warnings, told(create=True, name="a", data={"b": "a: ["}), NEW)
    assert message.startswith("values.devicePlugin.config.data['b'] must be YAML; got while parsing a flow node ")
    assert message.endswith("; mend it, or pass config=PluginConfig(...)")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "release", "says"),
    [
        ("version: v1\nodd: 1", NEW, "line 2: odd is no key of the file"),
        ("version: v1\nflags: {failOnInitError: false}", NEW, "config 'b' must not state flags.fail_on_init_error"),
        ("version: v1\nflags: {plugin: {sharedDevicesAllocationPolicy: packed}}", OLD, "would ignore"),
    ],
)
def test_a_configuration_written_as_text_may_be_doubtful(text, release, says):
    (warning,) = values.config_warnings(told(create=True, name="a", data={"b": text}), release)
    assert warning.startswith("values.devicePlugin.config.data['b'] may not do what it says: ")
    assert says in warning
