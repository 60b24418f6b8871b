"""Options that a constructor takes by ``**options`` are keywords like any other."""

import inspect

import pytest

from gpu_constructs import GpuConstructsError, PowerLimit
from gpu_constructs.kube.pods import AgentOptions


def test_options_are_in_the_signature():
    parameters = inspect.signature(PowerLimit).parameters
    assert AgentOptions.__annotations__.keys() <= parameters.keys()
    assert parameters["tolerations"].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["tolerations"].annotation == "Sequence[Toleration]"


def test_options_are_documented_as_arguments():
    text = inspect.getdoc(PowerLimit.__init__)
    arguments = text[text.index("Args:") : text.index("Raises:")]
    for option in AgentOptions.__annotations__:
        assert f"\n    {option}: " in arguments


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("node_selector", ["a"], "node_selector must be"),
        ("image_pull_policy", "Sometimes", "image_pull_policy must be one of"),
        ("tolerations", "nvidia.com/gpu", "tolerations must be a list"),
    ],
)
def test_the_type_of_an_option_is_checked(chart, option, value, problem):
    with pytest.raises(GpuConstructsError, match=problem):
        PowerLimit(chart, "x", **{option: value})
