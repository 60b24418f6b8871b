"""Tests that options of ``**options`` are ordinary keywords."""

import inspect

import pytest

from gpu_constructs import GpuConstructsError, PowerLimit
from gpu_constructs.kube.pods import AgentOptions
from tables import cases


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


@cases
def test_the_type_of_an_option_is_checked(chart, option, value, problem):
    with pytest.raises(GpuConstructsError, match=problem):
        PowerLimit(chart, "x", **{option: value})
