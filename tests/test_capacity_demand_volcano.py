import pytest

from capacity_manifests import found, manifest, one, template, told

VOLCANO = "batch.volcano.sh/v1alpha1 Job"
T = {"template": template()}
CPU = {"template": template({"name": "plain"})}


def starts(*tasks, **spec):
    """Give the pods and those to start with of each task that holds GPUs."""
    named = [{"name": f"t{index}", **task} for index, task in enumerate(tasks)]
    return {c.part: (c.pods, c.starts_with) for c in found(manifest(VOLCANO, {"tasks": named, **spec}))}


@pytest.mark.parametrize(
    ("tasks", "least", "expected"),
    [
        ([{"replicas": 2, **T}, {"replicas": 3, **T}], None, {"t0": (2, None), "t1": (3, None)}),
        ([{"replicas": 2, **T}, {"replicas": 3, **T}], 3, {"t0": (2, None), "t1": (3, 1)}),
        ([{"replicas": 2, **T}, {"replicas": 3, "minAvailable": 1, **T}], None, {"t0": (2, None), "t1": (3, 1)}),
        ([{"replicas": 4, **T}, {"replicas": 1, **CPU}], 3, {"t0": (4, 2)}),
        ([{"replicas": 4, "minAvailable": 1, **T}, {"replicas": 2, "minAvailable": 1, **T}], 3, None),
        ([{"replicas": 2, "minAvailable": 9, **T}, {"replicas": 1, **T}], 99, {"t0": (2, None), "t1": (1, None)}),
    ],
)
def test_a_job_starts_with_its_fewest_pods(tasks, least, expected):
    got = starts(*tasks, **({} if least is None else {"minAvailable": least}))
    assert got == (expected or {"t0": (4, 2), "t1": (2, 1)})


def test_a_job_that_starts_with_fewer_tells_it():
    consumer = one(manifest(VOLCANO, {"minAvailable": 3, "tasks": [{"replicas": 4, **T}]}))
    assert "it starts with 3 of its 4 pods" in told(consumer)
    assert (consumer.is_gang, consumer.copies, consumer.least_copies) == (True, 1, 0)


def test_pods_have_the_priority_of_their_job():
    important = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p"}, "value": 7}
    spec = {"priorityClassName": "p", "tasks": [{"replicas": 1, **T}]}
    assert one(important, manifest(VOLCANO, spec)).priority == 7
