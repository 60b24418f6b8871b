from gpu_constructs import KatibParameter
from gpu_constructs.recipes.katib_parameter import combinations
from refusals import check_refusals
from tables import cases


@cases
def test_a_parameter_is_written_in_the_form_of_katib(parameter, space):
    made = parameter.to_manifest("x")
    assert (made["name"], made["parameterType"]) == ("x", parameter.parameter_type)
    written = {key: value for key, value in made["feasibleSpace"].items() if value is not None}
    assert written == space | ({"distribution": "logUniform"} if parameter.distribution else {})


@cases
def test_the_values_that_grid_can_try_are_counted(parameter, choices):
    assert parameter.choices == choices


def test_combinations_are_the_product_of_the_choices():
    two, three = KatibParameter.categorical("a", "b"), KatibParameter.int(min=1, max=3)
    assert combinations({"a": two, "b": three}) == 6
    assert combinations({"a": two, "b": KatibParameter.double(min=0, max=1)}) is None


def test_an_empty_search_space_is_rejected(rows):
    check_refusals(KatibParameter, rows)
