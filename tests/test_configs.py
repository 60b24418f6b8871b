import pytest

from gpu_constructs import Configs, Flags, GpuConstructsError, PluginConfig, PluginFlags
from gpu_constructs.device_plugin.configs import object_suffix

NAMES = (
    "must have names that a node label and a ConfigMap's key can hold (letters, digits, '-', '_', '.', at most 63 "
    "characters, letter or digit at both ends); got "
)
ONE = {"a": PluginConfig()}
TWO = {"a": PluginConfig(), "b": PluginConfig()}


def refusal(make):
    with pytest.raises(GpuConstructsError) as refused:
        make()
    return str(refused.value)


@pytest.mark.parametrize("factory", [Configs.named, Configs.managed])
@pytest.mark.parametrize(
    ("configs", "default", "message"),
    [
        ({}, "a", "configs must hold at least one configuration; got {}"),
        (None, "a", "configs.configs must be Mapping; got NoneType: None"),
        ({"a": {}}, "a", "configs.configs['a'] must be PluginConfig; got dict: {}"),
        ({5: PluginConfig()}, "a", "configs.configs key must be str; got int: 5"),
        ({"": PluginConfig()}, "", f"configs {NAMES}''"),
        ({"a b": PluginConfig()}, "a b", f"configs {NAMES}'a b'"),
        ({"-a": PluginConfig()}, "-a", f"configs {NAMES}'-a'"),
        ({"a.": PluginConfig()}, "a.", f"configs {NAMES}'a.'"),
        ({"..a": PluginConfig()}, "..a", f"configs {NAMES}'..a'"),
        ({"a/b": PluginConfig()}, "a/b", f"configs {NAMES}'a/b'"),
        ({"a\n": PluginConfig()}, "a\n", f"configs {NAMES}'a\\n'"),
        ({"a" * 64: PluginConfig()}, "a" * 64, f"configs {NAMES}'{'a' * 64}'"),
        (TWO, "c", "configs.default must be one of 'a', 'b'; got 'c'"),
        (TWO, 5, "configs.default must be one of (str, None); got int: 5"),
        (
            TWO,
            None,
            "configs.default is required: it serves the nodes without the label nvidia.com/device-plugin.config; name "
            "one of 'a', 'b'",
        ),
        (
            {"Big_one": PluginConfig(), "big-one": PluginConfig()},
            "big-one",
            "configs must have names that differ in letters and digits, for the names of their objects; got 'Big_one' "
            "and 'big-one'",
        ),
    ],
    ids=lambda value: str(value)[:20] if not callable(value) else value.__name__,
)
def test_names_and_defaults_that_no_node_or_object_could_carry_are_refused(factory, configs, default, message):
    assert refusal(lambda: factory(configs, default=default)) == message


@pytest.mark.parametrize("name", ["a", "0", "mps-8", "A.b_C", "x" * 63])
def test_any_name_that_a_label_and_a_key_can_hold_is_taken(name):
    assert Configs.named({name: PluginConfig()}, default=name).default == name


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Configs.external("Upper"),
            "configs.config_map must be a DNS subdomain (DNS labels joined by '.', at most 253 characters); "
            "got 'Upper'",
        ),
        (lambda: Configs.external(None), "configs.config_map is required, and nothing beside it; use Configs.external"),
        (lambda: Configs.external(5), "configs.config_map must be one of (str, None); got int: 5"),
        (lambda: Configs.external("a", default="b c"), f"configs.default {NAMES}'b c'"),
        (lambda: Configs.external("a", may_use="mig"), "configs.may_use must be a list, got 'mig' (str)"),
        (
            lambda: Configs.external("a", may_use=["mps", "migs"]),
            "configs.may_use[1] must be one of 'mig', 'mps', 'volume-mounts', 'cdi', 'pass-device-specs', 'imex'; got "
            "'migs' "
            "(did you mean 'mig'?)",
        ),
        (
            lambda: Configs.external("a", fallback_strategies=["first"]),
            "configs.fallback_strategies[0] must be one of 'named', 'single', 'empty'; got 'first'",
        ),
        (lambda: Configs.external("a", flags={}), "configs.flags must be Flags; got dict: {}"),
        (
            lambda: Configs(delivery="external", config_map="a", configs=ONE),
            "configs.config_map is required, and nothing beside it; use Configs.external",
        ),
        (
            lambda: Configs(delivery="daemonset"),
            "configs.delivery must be one of 'daemonsets', 'config-manager', 'external'; got 'daemonset' (did you mean "
            "'daemonsets'?)",
        ),
        *(
            (
                lambda given=given: Configs(delivery="daemonsets", configs=ONE, default="a", **given),
                "configs.config_map, flags and may_use are for Configs.external; leave them out",
            )
            for given in ({"config_map": "a"}, {"flags": Flags(mig_strategy="none")}, {"may_use": ["mig"]})
        ),
        (
            lambda: Configs(delivery="config-manager", configs=ONE, default="a", fallback_strategies=["single"]),
            "configs.fallback_strategies are for Configs.external: nothing is looked for beyond the default; leave "
            "them out",
        ),
    ],
)
def test_what_a_way_of_delivery_would_not_read_is_refused(make, message):
    assert refusal(make) == message


def test_the_factories_choose_the_way_of_delivery():
    assert Configs.named(TWO, default="a").delivery == "daemonsets"
    assert Configs.managed(TWO, default="a").delivery == "config-manager"
    assert Configs.external("a").delivery == "external"


def test_an_external_config_map_may_turn_on_nothing_unless_told_and_is_looked_at_as_by_the_chart():
    external = Configs.external("a")
    assert external.may_use == ()
    assert external.default is None
    assert external.flags == Flags()
    assert tuple(external.fallback_strategies) == ("named", "single")


def test_flags_of_an_external_config_map_are_kept():
    flags = Flags(plugin=PluginFlags(device_id_strategy="index"))
    assert Configs.external("a", flags=flags).flags == flags


@pytest.mark.parametrize(
    ("name", "suffix"), [("a", "a"), ("MIG_1g.5gb", "mig-1g-5gb"), ("a--b..c__d", "a-b-c-d"), ("0", "0")]
)
def test_a_name_becomes_part_of_an_objects_name(name, suffix):
    assert object_suffix(name) == suffix


def test_an_external_config_map_needs_a_default_where_nothing_is_fallen_back_on():
    with pytest.raises(GpuConstructsError) as refused:
        Configs.external("theirs", fallback_strategies=[])
    assert str(refused.value) == (
        "configs.default is required without fallback_strategies: config-manager fails on every node without a label; "
        "name a key of the ConfigMap"
    )
    assert Configs.external("theirs", default="a", fallback_strategies=[]).default == "a"
