import pytest

from gpu_constructs import UpdateStrategy
from refusals import refusal
from tables import cases

BOTH_OR_NEITHER = "update_strategy must let pods either be missing (max_unavailable) or be doubled (max_surge); got "


@cases
def test_a_strategy_is_written_as_kubernetes_writes_it(strategy, written):
    assert strategy.to_manifest() == written


@cases
def test_an_amount_that_kubernetes_would_not_take_is_refused(value, problem):
    for field in ("max_unavailable", "max_surge"):
        assert refusal(UpdateStrategy.rolling_update, **{field: value}).endswith(f".{field} {problem}")


@cases
def test_kubernetes_takes_missing_or_doubled_pods_and_never_both_or_neither(given, got):
    assert refusal(UpdateStrategy.rolling_update, **given) == BOTH_OR_NEITHER + got


@pytest.mark.parametrize("field", ["max_unavailable", "max_surge"])
def test_pods_replaced_by_hand_take_no_numbers(field):
    assert refusal(UpdateStrategy, type="OnDelete", **{field: 0}) == (
        "update_strategy takes no numbers with OnDelete; use UpdateStrategy.on_delete()"
    )
