import re
from functools import partial

import pytest
from cdk8s import App, Chart

import refusals
from gpu_constructs import (
    Configs,
    Delivery,
    Flags,
    GpuConstructsWarning,
    GpuOperator,
    Kubernetes,
    PluginConfig,
    PluginFlags,
    Sharing,
    Toleration,
)
from tables import cases

TAINT = Toleration(key="dedicated", value="ai", effect="NoSchedule")
SLICES = PluginConfig(sharing=Sharing.time_slicing(replicas=4))
NVIDIA_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
STRATEGY = {"name": "DEVICE_LIST_STRATEGY", "value": "cdi-cri"}


def operator(**given):
    given = {"delivery": Delivery.values(), "platform": Kubernetes(), **given}
    return GpuOperator(Chart(App(), "gpu"), "operator", **given)


def values(**given):
    return operator(**given).values


refusal = partial(refusals.problem, operator)


def config_of(config, **given):
    return values(config=config, **given)["devicePlugin"]["config"]


def test_tolerations_apply_to_operands_and_worker_and_keep_those_of_the_chart():
    control_plane = {"key": "node-role.kubernetes.io/control-plane", "operator": "Equal", "effect": "NoSchedule"}
    operands = {"tolerations": [NVIDIA_TAINT, TAINT.to_manifest()]}
    worker = {"tolerations": [control_plane, NVIDIA_TAINT, TAINT.to_manifest()]}
    assert values(tolerations=[TAINT]) == {"daemonsets": operands, "node-feature-discovery": {"worker": worker}}
    without = values(tolerations=[TAINT], node_feature_discovery=False)
    assert without == {"daemonsets": operands, "nfd": {"enabled": False}}


def test_the_device_list_strategy_is_a_variable_of_the_plugin():
    told = values(device_list_strategy=["cdi-annotations", "cdi-cri"])
    assert told["devicePlugin"]["env"] == [{"name": "DEVICE_LIST_STRATEGY", "value": "cdi-annotations,cdi-cri"}]


def test_a_single_configuration_is_the_default_of_a_new_config_map():
    config = values(sharing=SLICES.sharing)["devicePlugin"]["config"]
    assert config == config_of(SLICES)
    assert re.fullmatch("nvidia-device-plugin-configs-[0-9a-f]{8}", config.pop("name"))
    assert config == {"create": True, "default": "default", "data": {"default": SLICES.to_yaml()}}


def test_a_changed_configuration_changes_the_name_of_its_config_map():
    other_key = Configs.managed({"other": SLICES}, default="other")
    assert len({config_of(config)["name"] for config in (SLICES, PluginConfig(), SLICES, other_key)}) == 3


def test_several_configurations_keep_their_names_and_an_external_one_is_a_reference():
    config = config_of(Configs.managed({"a": SLICES, "b": PluginConfig(sharing=SLICES.sharing)}, default="b"))
    assert (config["default"], list(config["data"])) == ("b", ["a", "b"])
    assert config_of(Configs.external("theirs", default="a")) == {"name": "theirs", "default": "a"}
    with pytest.warns(GpuConstructsWarning, match="runs an empty configuration"):
        assert config_of(Configs.external("theirs", fallback_strategies=["empty"])) == {"name": "theirs"}


def test_the_operator_gets_the_mig_strategy_of_the_file():
    strategies = [
        (SLICES, None),
        (PluginConfig(flags=Flags(mig_strategy="mixed")), "mixed"),
        (PluginConfig(flags=Flags(mig_strategy="none")), "none"),
        (PluginConfig(sharing=Sharing.mps(replicas=4)), "none"),
        (Configs.external("theirs", default="a"), None),
    ]
    for config, strategy in strategies:
        assert values(config=config).get("mig", {}).get("strategy") == strategy
    assert values(config=strategies[-1][0], mig_strategy="mixed")["mig"] == {"strategy": "mixed"}
    shared = Sharing.time_slicing(resources={"nvidia.com/mig-1g.5gb": 2})
    assert values(sharing=shared, mig_strategy="mixed")["mig"] == {"strategy": "mixed"}


def test_configurations_that_the_operator_cannot_use_are_rejected():
    assert refusal(config=Configs.named({"a": SLICES}, default="a")) == (
        "config must be a PluginConfig, Configs.managed(...) or Configs.external(...), got Configs.named(...): the "
        "operator has one DaemonSet with a config-manager"
    )
    external = Configs.external("theirs", default="a", may_use=["mig"])
    assert refusal(config=external).startswith("config.flags and config.may_use must be absent")
    mixed = PluginConfig(flags=Flags(mig_strategy="mixed"))
    assert refusal(config=Configs.managed({"a": SLICES, "b": mixed}, default="a")) == (
        "config must have one flags.mig_strategy in all configurations, because the operator sets it for all nodes, "
        "got 'mixed', 'none'"
    )


@cases
def test_a_setting_that_a_variable_of_the_operator_overrides_is_rejected(flags, variable):
    message = refusal(config=PluginConfig(flags=flags))
    assert f"the variable {variable} of the operator overrides" in message
    way_out = f"[{{'name': {variable!r}, 'value': ...}}]"
    assert ("set device_list_strategy=..." if variable == "DEVICE_LIST_STRATEGY" else way_out) in message


def test_a_setting_with_the_value_of_the_operator_is_accepted():
    flags = Flags(fail_on_init_error=True, plugin=PluginFlags(pass_device_specs=True, device_id_strategy="uuid"))
    assert config_of(PluginConfig(flags=flags))


def test_a_setting_needs_the_release_of_the_plugin_that_the_operator_runs():
    config = PluginConfig(flags=Flags(plugin=PluginFlags(shared_devices_allocation_policy="packed")))
    assert config_of(config)
    for version in ("25.10.1", "26.3.3"):
        assert "ignores or rejects it" in refusal(config=config, version=version)


def test_values_of_the_user_override_keys_and_replace_lists():
    own = {"driver": {"version": "1"}, "dcgmExporter": {"args": ["a"]}, "cdi": {"enabled": True}}
    assert values(values=own, driver=False) == {**own, "driver": {"enabled": False, "version": "1"}}
    assert own["driver"] == {"version": "1"}


def test_values_of_the_user_cannot_extend_a_configuration_from_a_keyword():
    more = {"devicePlugin": {"config": {"data": {"other": "version: v1"}}}}
    assert refusal(sharing=SLICES.sharing, values=more) == (
        "values.devicePlugin.config.data.other must be absent with the keyword sharing, which sets the whole section, "
        "got 'version: v1'. Set it with sharing, or remove sharing"
    )
    external = Configs.external("theirs", default="a")
    assert "values.devicePlugin.config.data must be absent with the keyword config" in refusal(
        config=external, values=more
    )
    same = {"devicePlugin": {"config": config_of(SLICES)}}
    assert values(config=SLICES, values=same) == values(config=SLICES)


def test_variables_of_the_user_extend_those_of_keywords():
    other = {"name": "FAIL_ON_INIT_ERROR", "value": "false"}
    told = values(device_list_strategy="cdi-cri", values={"devicePlugin": {"env": [other, STRATEGY]}})
    assert told == {"devicePlugin": {"env": [STRATEGY, other]}}
    own = {"devicePlugin": {"env": [{**STRATEGY, "value": "envvar"}]}}
    assert refusal(device_list_strategy="cdi-cri", values=own) == (
        "values.devicePlugin.env sets DEVICE_LIST_STRATEGY to 'envvar', and the keyword "
        "device_list_strategy sets 'cdi-cri'. Remove one of them"
    )


def told(**config):
    return {"devicePlugin": {"config": {"create": True, "name": "a", "default": "b", **config}}}


def test_configurations_in_text_values_are_read():
    assert [offer.sharing for offer in operator().provides.gpu_offers] == [Sharing.none()]
    written = told(data={"a": "version: v1", "b": SLICES.to_yaml(), "gone": None})
    sharing = [offer.sharing for offer in operator(values=written).provides.gpu_offers]
    assert SLICES.sharing in sharing
    assert len(sharing) == 2
    theirs = {"devicePlugin": {"config": {"name": "theirs", "default": "b"}}}
    assert operator(values=theirs).provides.gpu_offers == ()


def test_a_configuration_that_is_not_yaml_is_rejected():
    message = refusal(values=told(data={"b": "a: ["}))
    assert message.startswith("values.devicePlugin.config.data['b'] must be YAML, got while parsing a flow node ")
    assert message.endswith(". Correct it, or pass config=PluginConfig(...)")


@cases
def test_a_doubtful_configuration_in_text_values_warns(text, version, says):
    with pytest.warns(GpuConstructsWarning) as heard:
        made = operator(values=told(data={"b": text}), version=version)
    (warning,) = [str(one.message) for one in heard]
    assert warning.startswith(
        "gpu/operator: values.devicePlugin.config.data['b'] may have another effect than expected: "
    )
    assert says in warning
    assert (made.provides.gpu_offers == ()) == ("odd" in text)
