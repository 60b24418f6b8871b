import pytest

from capacity_manifests import manifest, one, template, told


def ranked(name, value, **more):
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **more,
    }


def pods(**spec):
    return manifest("apps/v1 Deployment", {"template": template(**spec)})


HIGH, LOW = ranked("high", 1000), ranked("low", -5, preemptionPolicy="Never")


@pytest.mark.parametrize(
    ("spec", "others", "expected"),
    [
        ({}, [HIGH], (0, True)),
        ({"priorityClassName": "high"}, [HIGH], (1000, True)),
        ({"priorityClassName": "low"}, [HIGH, LOW], (-5, False)),
        ({"priorityClassName": "low", "preemptionPolicy": "PreemptLowerPriority"}, [LOW], (-5, True)),
        ({"priorityClassName": "high", "preemptionPolicy": "Never"}, [HIGH], (1000, False)),
        ({"priorityClassName": "system-node-critical"}, [], (2_000_001_000, True)),
        ({"priorityClassName": "system-cluster-critical"}, [], (2_000_000_000, True)),
        ({"priority": 12, "priorityClassName": "elsewhere"}, [], (12, True)),
        ({}, [ranked("usual", 9, globalDefault=True)], (9, True)),
        ({}, [ranked("a", 9, globalDefault=True), ranked("b", 3, globalDefault=True)], (3, True)),
        ({"priorityClassName": "high"}, [HIGH, ranked("usual", 9, globalDefault=True)], (1000, True)),
    ],
)
def test_pods_have_the_priority_of_their_class(spec, others, expected):
    consumer = one(pods(**spec), *others)
    assert (consumer.priority, consumer.preempts) == expected
    assert "PriorityClass" not in told(consumer)


def test_a_class_that_is_not_in_the_app_is_told():
    consumer = one(pods(priorityClassName="gold"))
    assert consumer.priority == 0
    assert "PriorityClass gold is not in this app: taken as priority 0" in told(consumer)


@pytest.mark.parametrize("rubbish", [[], {}, ["x"], 3, True, "x"])
def test_rubbish_is_no_priority(rubbish):
    assert one(pods(priorityClassName=rubbish, priority="x"), ranked("high", rubbish)).priority in (0, 3)
