import pytest

from gpu_constructs import Configs, Flags, GpuConstructsError, PluginConfig

ONE = {"a": PluginConfig()}
TWO = {"a": PluginConfig(), "b": PluginConfig()}


def refusal(make):
    with pytest.raises(GpuConstructsError) as refused:
        make()
    return str(refused.value)


def test_names_and_defaults_that_no_node_or_object_could_carry_are_refused(refused):
    for factory in (Configs.named, Configs.managed):
        refused(factory)


def test_any_name_that_a_label_and_a_key_can_hold_is_taken():
    for name in ("a", "0", "mps-8", "A.b_C", "x" * 63):
        assert Configs.named({name: PluginConfig()}, default=name).default == name


NOT_READ = [
    lambda: Configs.external("Upper"),
    lambda: Configs.external(None),
    lambda: Configs.external(5),
    lambda: Configs.external("a", default="b c"),
    lambda: Configs.external("a", may_use="mig"),
    lambda: Configs.external("a", may_use=["mps", "migs"]),
    lambda: Configs.external("a", fallback_strategies=["first"]),
    lambda: Configs.external("a", flags={}),
    lambda: Configs(delivery="external", config_map="a", configs=ONE),
    lambda: Configs(delivery="daemonset"),
    lambda: Configs.external("theirs", fallback_strategies=[]),
    *(
        lambda given=given: Configs(delivery="daemonsets", configs=ONE, default="a", **given)
        for given in ({"config_map": "a"}, {"flags": Flags(mig_strategy="none")}, {"may_use": ["mig"]})
    ),
    lambda: Configs(delivery="config-manager", configs=ONE, default="a", fallback_strategies=["single"]),
]


def test_what_a_way_of_delivery_would_not_read_is_refused(snapshot):
    """The messages, one a row of NOT_READ, are in the snapshot."""
    assert "\n".join(refusal(make) for make in NOT_READ) == snapshot
