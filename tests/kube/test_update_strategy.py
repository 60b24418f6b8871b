import pytest

from gpu_constructs import UpdateStrategy
from refusals import refusal
from tables import cases

BOTH_OR_NEITHER = "update_strategy must have either max_unavailable or max_surge above 0, got "


@cases
def test_a_strategy_has_the_form_of_the_kubernetes_api(strategy, written):
    assert strategy.to_manifest() == written


@cases
def test_an_amount_that_kubernetes_does_not_allow_is_rejected(value, problem):
    for field in ("max_unavailable", "max_surge"):
        assert refusal(UpdateStrategy.rolling_update, **{field: value}).endswith(f".{field} {problem}")


@cases
def test_a_rolling_update_has_either_max_unavailable_or_max_surge(given, got):
    assert refusal(UpdateStrategy.rolling_update, **given) == BOTH_OR_NEITHER + got


@pytest.mark.parametrize("field", ["max_unavailable", "max_surge"])
def test_on_delete_has_no_numbers(field):
    assert refusal(UpdateStrategy, type="OnDelete", **{field: 0}) == (
        "update_strategy must not have max_unavailable or max_surge with OnDelete. Use UpdateStrategy.on_delete()"
    )
