import pytest

from gpu_constructs import GpuConstructsError, UpdateStrategy

BOTH_OR_NEITHER = "update_strategy must let pods either be missing (max_unavailable) or be doubled (max_surge); got "


def refusal(make):
    with pytest.raises(GpuConstructsError) as refused:
        make()
    return str(refused.value)


@pytest.mark.parametrize(
    ("strategy", "written"),
    [
        (UpdateStrategy.rolling_update(), {"type": "RollingUpdate"}),
        (UpdateStrategy.on_delete(), {"type": "OnDelete"}),
        (
            UpdateStrategy.rolling_update(max_unavailable=3),
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 3}},
        ),
        (
            UpdateStrategy.rolling_update(max_unavailable="10%", max_surge=0),
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%", "maxSurge": 0}},
        ),
        (
            UpdateStrategy.rolling_update(max_unavailable=0, max_surge="100%"),
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": "100%"}},
        ),
        (
            UpdateStrategy.rolling_update(max_unavailable="0%", max_surge=1),
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "0%", "maxSurge": 1}},
        ),
    ],
    ids=str,
)
def test_a_strategy_is_written_as_kubernetes_writes_it(strategy, written):
    assert strategy.to_manifest() == written


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (-1, "must be at least 0, got -1"),
        (2**31, "must be at most 2147483647, got 2147483648"),
        (True, "must be an int, got True (bool)"),
        (1.5, "must be one of (int, str, None); got float: 1.5"),
        ("10", "must be a number or a percentage like '10%'; got '10'"),
        ("101%", "must be a number or a percentage like '10%'; got '101%'"),
        ("-1%", "must be a number or a percentage like '10%'; got '-1%'"),
        ("01%", "must be a number or a percentage like '10%'; got '01%'"),
        ("10%\n", "must be a number or a percentage like '10%'; got '10%\\n'"),
    ],
)
def test_an_amount_that_kubernetes_would_not_take_is_refused(value, problem):
    for field in ("max_unavailable", "max_surge"):
        given = {field: value}
        assert refusal(lambda given=given: UpdateStrategy.rolling_update(**given)).endswith(f".{field} {problem}")


@pytest.mark.parametrize(
    ("given", "got"),
    [
        ({"max_unavailable": 0}, "max_unavailable=0, max_surge=None"),
        ({"max_unavailable": "0%", "max_surge": 0}, "max_unavailable='0%', max_surge=0"),
        ({"max_surge": 1}, "max_unavailable=None, max_surge=1"),
        ({"max_unavailable": 1, "max_surge": "10%"}, "max_unavailable=1, max_surge='10%'"),
    ],
    ids=str,
)
def test_kubernetes_takes_missing_or_doubled_pods_and_never_both_or_neither(given, got):
    assert refusal(lambda: UpdateStrategy.rolling_update(**given)) == BOTH_OR_NEITHER + got


@pytest.mark.parametrize("field", ["max_unavailable", "max_surge"])
def test_pods_replaced_by_hand_take_no_numbers(field):
    assert refusal(lambda: UpdateStrategy(type="OnDelete", **{field: 0})) == (
        "update_strategy takes no numbers with OnDelete; use UpdateStrategy.on_delete()"
    )
