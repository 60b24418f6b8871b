import pytest

from gpu_constructs import GpuConstructsError
from gpu_constructs.workload.strategy import Strategy

RECREATE, ON_DELETE = Strategy.recreate(), Strategy.on_delete()


def refusal(make):
    with pytest.raises(GpuConstructsError) as refused:
        make()
    return str(refused.value)


@pytest.mark.parametrize(
    ("strategy", "kind", "expected"),
    [
        (RECREATE, "Deployment", {"type": "Recreate"}),
        (
            Strategy.rolling_update(),
            "Deployment",
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        ),
        (
            Strategy.rolling_update(max_surge="25%", max_unavailable=0),
            "Deployment",
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
        ),
        (Strategy.rolling_update(max_surge=None, max_unavailable=None), "Deployment", {"type": "RollingUpdate"}),
        (Strategy.rolling_update(), "StatefulSet", {"type": "RollingUpdate"}),
        (
            Strategy.rolling_update(max_unavailable="50%", partition=2),
            "StatefulSet",
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%", "partition": 2}},
        ),
        (ON_DELETE, "StatefulSet", {"type": "OnDelete"}),
    ],
    ids=str,
)
def test_a_strategy_is_written_as_the_kind_writes_it(strategy, kind, expected):
    assert strategy.to_manifest(kind) == expected


@pytest.mark.parametrize(
    ("strategy", "kind", "message"),
    [
        (
            ON_DELETE,
            "Deployment",
            "strategy of a Deployment must be recreate() or rolling_update(); got 'OnDelete'",
        ),
        (
            RECREATE,
            "StatefulSet",
            "strategy of a StatefulSet must be rolling_update() or on_delete(); got 'Recreate'",
        ),
        (
            Strategy.rolling_update(partition=1),
            "Deployment",
            "strategy.partition needs kind 'StatefulSet'; got 'Deployment'",
        ),
        (
            Strategy.rolling_update(max_surge=1),
            "StatefulSet",
            "strategy.max_surge needs kind 'Deployment'; got 'StatefulSet'",
        ),
    ],
)
def test_a_strategy_that_the_kind_does_not_have_is_refused(strategy, kind, message):
    assert refusal(lambda: strategy.to_manifest(kind)) == message


@pytest.mark.parametrize(("surge", "unavailable"), [(0, 0), ("0%", 0), (0, "0%"), ("0%", "0%")])
def test_an_update_that_could_never_replace_a_pod_is_refused(surge, unavailable):
    assert refusal(lambda: Strategy.rolling_update(max_surge=surge, max_unavailable=unavailable)) == (
        "strategy must let pods either be missing (max_unavailable) or be doubled (max_surge); got 0 of both"
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Strategy(type="Recreat"), "strategy.type must be one of "),
        (lambda: Strategy(type="Recreate", max_surge=1), "strategy takes no numbers with Recreate; use Strategy."),
        (lambda: Strategy(type="OnDelete", partition=1), "strategy takes no numbers with OnDelete; use Strategy."),
        (lambda: Strategy.rolling_update(max_surge=-1), "strategy.max_surge must be at least 0, got -1"),
        (lambda: Strategy.rolling_update(max_unavailable="x"), "strategy.max_unavailable must be a number or a "),
        (lambda: Strategy.rolling_update(max_unavailable=True), "strategy.max_unavailable must be an int, got True"),
        (lambda: Strategy.rolling_update(partition=-1), "strategy.partition must be at least 0, got -1"),
    ],
)
def test_numbers_that_kubernetes_would_not_take_are_refused(make, message):
    got = refusal(make)
    assert got.startswith(message) or got.replace("one of (int, str, None)", "an int").startswith(message), got
