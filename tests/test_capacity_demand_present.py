import pytest

from capacity_manifests import found, manifest, one, pod, template, told

DEPLOYMENT, JOB = "apps/v1 Deployment", "batch/v1 Job"
T = {"template": template()}


def owned(made, kind, name="x", **more):
    api_version, _, kind = kind.rpartition(" ")
    owner = {"apiVersion": api_version, "kind": kind, "name": name, "controller": True, **more}
    return made | {"metadata": {**made["metadata"], "ownerReferences": [owner]}}


def ended(made, condition, status="True"):
    return made | {"status": {"conditions": [{"type": condition, "status": status}]}}


def test_of_an_object_written_twice_the_first_counts():
    consumer = one(
        manifest(DEPLOYMENT, {"replicas": 3, **T}), manifest("apps/v1beta2 Deployment", {"replicas": 9, **T})
    )
    assert (consumer.subject, consumer.copies) == (0, 3)
    assert "more than once: the first counts" in told(consumer)


def test_no_namespace_and_the_default_one_are_the_same():
    nowhere = manifest(DEPLOYMENT, T) | {"metadata": {"name": "x"}}
    assert len(found(nowhere, manifest(DEPLOYMENT, T, namespace="default"))) == 1


@pytest.mark.parametrize(
    "other",
    [
        manifest(DEPLOYMENT, T, name="y"),
        manifest(DEPLOYMENT, T, namespace="other"),
        manifest("apps/v1 StatefulSet", T),
        manifest("example.com/v1 Deployment", T),
    ],
)
def test_what_differs_in_kind_namespace_or_name_is_another_object(other):
    assert "more than once" not in told(found(manifest(DEPLOYMENT, T), other)[0])


def test_objects_without_a_name_are_each_their_own():
    nameless = manifest(JOB, T) | {"metadata": {"generateName": "run-", "namespace": "ml"}}
    assert len(found(nameless, nameless)) == 2


def test_what_another_object_has_made_counts_there():
    deployment = manifest(DEPLOYMENT, {"replicas": 2, **T})
    copies = owned(manifest("apps/v1 ReplicaSet", {"replicas": 2, **T}, name="x-1"), DEPLOYMENT)
    each = owned(manifest("v1 Pod", pod(), name="x-1-a"), "apps/v1 ReplicaSet", "x-1")
    assert [c.kind for c in found(each, copies, deployment)] == ["Deployment"]
    assert [c.kind for c in found(each, copies)] == ["ReplicaSet"]
    assert [c.kind for c in found(each)] == ["Pod"]


def test_an_owner_that_only_refers_makes_nothing():
    referred = owned(manifest(JOB, T, name="y"), DEPLOYMENT, controller=False)
    assert len(found(manifest(DEPLOYMENT, T), referred)) == 2


def test_what_an_object_of_an_unknown_kind_has_made_counts_itself():
    unknown = manifest("example.com/v1 Model", {})
    made = owned(manifest(DEPLOYMENT, T), "example.com/v1 Model")
    assert one(unknown, made).kind == "Deployment"
    service = manifest("serving.knative.dev/v1 Service", T, name="s")
    revision = owned(manifest("serving.knative.dev/v1 Revision", {}, name="r"), "serving.knative.dev/v1 Service", "s")
    made = owned(manifest(DEPLOYMENT, T), "serving.knative.dev/v1 Revision", "r")
    assert one(made, revision, service).kind == "Service"


def test_owners_in_a_circle_are_no_owners_for_ever():
    a = owned(manifest("example.com/v1 Model", T, name="a"), "example.com/v1 Model", "a")
    assert one(a, owned(manifest(DEPLOYMENT, T), "example.com/v1 Model", "a")).kind == "Deployment"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_holds_nothing(phase):
    assert found(manifest("v1 Pod", pod()) | {"status": {"phase": phase}}) == []
    assert found(manifest("v1 Pod", pod()) | {"status": {"phase": "Running"}}) != []


@pytest.mark.parametrize(
    ("kind", "condition"), [(JOB, "Complete"), (JOB, "Failed"), ("kubeflow.org/v1 PyTorchJob", "Succeeded")]
)
def test_work_that_has_ended_holds_nothing(kind, condition):
    work = manifest(kind, {**T, "pytorchReplicaSpecs": {"Worker": T}})
    assert found(ended(work, condition)) == []
    assert len(found(ended(work, condition, "False"))) == 1


@pytest.mark.parametrize("rubbish", [None, "x", [], {"conditions": "x"}, {"conditions": [None, {"type": []}]}])
def test_a_status_that_is_none_is_no_end(rubbish):
    assert len(found(manifest(JOB, T) | {"status": rubbish})) == 1
