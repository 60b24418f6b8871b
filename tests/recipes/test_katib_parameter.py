import pytest

from gpu_constructs import KatibParameter
from gpu_constructs.recipes.katib_parameter import combinations
from refusals import check_refusals


@pytest.mark.parametrize(
    ("parameter", "space"),
    [
        (KatibParameter.double(min=1e-05, max=0.1, distribution="logUniform"), {"min": "1e-05", "max": "0.1"}),
        (KatibParameter.int(min=1, max=9, step=2), {"min": "1", "max": "9", "step": "2"}),
        (KatibParameter.discrete(16, 32.5), {"list": ["16", "32.5"]}),
        (KatibParameter.categorical("sgd", "adam"), {"list": ["sgd", "adam"]}),
    ],
    ids=lambda value: value.parameter_type if isinstance(value, KatibParameter) else "",
)
def test_a_parameter_is_written_as_katib_reads_it(parameter, space):
    made = parameter.to_manifest("x")
    assert (made["name"], made["parameterType"]) == ("x", parameter.parameter_type)
    written = {key: value for key, value in made["feasibleSpace"].items() if value is not None}
    assert written == space | ({"distribution": "logUniform"} if parameter.distribution else {})


@pytest.mark.parametrize(
    ("parameter", "choices"),
    [
        (KatibParameter.int(min=1, max=3), 3),
        (KatibParameter.int(min=1, max=4, step=2), 2),
        (KatibParameter.double(min=0.1, max=0.3, step=0.1), 3),
        (KatibParameter.double(min=0.1, max=0.35, step=0.1), 3),
        (KatibParameter.double(min=0.1, max=0.3), None),
        (KatibParameter.categorical("a", "b"), 2),
    ],
)
def test_the_values_that_grid_can_try_are_counted(parameter, choices):
    assert parameter.choices == choices


def test_combinations_multiply_unless_one_cannot_be_counted():
    two, three = KatibParameter.categorical("a", "b"), KatibParameter.int(min=1, max=3)
    assert combinations({"a": two, "b": three}) == 6
    assert combinations({"a": two, "b": KatibParameter.double(min=0, max=1)}) is None


def test_a_space_with_nothing_in_it_is_refused():
    finite = "must be a finite number; got"
    bounds = {"parameter_type": "double", "min": 0, "max": 1}
    words, numbers, whole = ({"parameter_type": kind} for kind in ("categorical", "discrete", "int"))
    check_refusals(
        KatibParameter,
        [
            ({**bounds, "min": 1}, "parameter.min must be less than parameter.max; got 1 and 1"),
            ({**bounds, "max": None}, "parameter.min must be less than parameter.max; got 0 and None"),
            ({**bounds, "values": [1]}, "parameter.values must be left out for a double"),
            ({**whole, "min": 0.5, "max": 2}, "parameter.min, max and step must be an int for an int one"),
            ({**whole, "min": 0, "max": 2, "step": 3}, "parameter.step must be above 0 and at most max - min"),
            ({**whole, "min": 0, "max": 2, "step": 0}, "parameter.step must be above 0"),
            ({**bounds, "distribution": "logUniform"}, "parameter.min must be above 0 for distribution 'logUniform'; "),
            (numbers, "parameter.values must hold at least one value"),
            ({**words, "values": ["a", "a"]}, "parameter.values must hold at least one value"),
            ({**words, "values": [""]}, "parameter.values must hold at least one value"),
            ({**numbers, "values": [1], "min": 0}, "parameter.values must stand alone for a discrete one"),
            ({**bounds, "min": float("-inf")}, f"parameter.min {finite} -inf"),
            ({**bounds, "max": float("inf")}, f"parameter.max {finite} inf"),
            ({**bounds, "step": float("nan")}, f"parameter.step {finite} nan"),
            ({**numbers, "values": [1, float("nan")]}, f"parameter.values[1] {finite} nan"),
            ({**numbers, "values": ["nan"]}, f"parameter.values[0] {finite} 'nan'"),
            ({**bounds, "parameter_type": "float"}, "parameter.parameter_type must be one of"),
        ],
    )
