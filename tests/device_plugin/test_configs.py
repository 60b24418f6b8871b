from gpu_constructs import Configs, Flags, PluginConfig
from refusals import refusal

ONE = {"a": PluginConfig()}
TWO = {"a": PluginConfig(), "b": PluginConfig()}


def test_names_that_no_label_or_object_can_have_are_rejected(refused):
    for factory in (Configs.named, Configs.managed):
        refused(factory)


def test_names_that_a_label_and_a_key_can_have_are_accepted():
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


def test_options_that_a_delivery_would_not_read_are_rejected(snapshot):
    """The snapshot contains one message for each row of NOT_READ."""
    assert "\n".join(refusal(make) for make in NOT_READ) == snapshot
