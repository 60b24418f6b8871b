import cdk8s_plus_27 as kplus
import pytest
from cdk8s import Cron, Testing

from gpu_constructs import GpuWorkload
from gpu_constructs.pod_specs import containers, node_labels_required, pod_specs

POD = {"containers": [{"name": "main"}]}
TEMPLATE = {"template": {"spec": POD}}


@pytest.mark.parametrize(
    ("api_version", "kind", "spec"),
    [
        ("v1", "Pod", POD),
        ("apps/v1", "DaemonSet", TEMPLATE),
        ("apps/v1", "Deployment", TEMPLATE),
        ("apps/v1", "ReplicaSet", TEMPLATE),
        ("apps/v1", "StatefulSet", TEMPLATE),
        ("batch/v1", "Job", TEMPLATE),
        ("batch/v1", "CronJob", {"jobTemplate": {"spec": TEMPLATE}}),
        ("kubeflow.org/v1", "Notebook", TEMPLATE),
        ("kubeflow.org/v1beta1", "Experiment", {"trialTemplate": {"trialSpec": {"spec": TEMPLATE}}}),
    ],
)
def test_the_pod_of_a_kind_is_found(api_version, kind, spec):
    assert list(pod_specs({"apiVersion": api_version, "kind": kind, "spec": spec})) == [POD]


def test_the_pods_of_each_replica_type_are_found():
    replicas = {"Master": TEMPLATE, "Worker": {"template": {"spec": {"containers": []}}}}
    manifest = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": replicas}}
    assert list(pod_specs(manifest)) == [POD, {"containers": []}]


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"apiVersion": "v1", "kind": "ConfigMap", "data": {}},
        {"apiVersion": "v1", "kind": "Deployment", "spec": TEMPLATE},
        {"apiVersion": "v1", "kind": "Pod"},
        {"apiVersion": "v1", "kind": "Pod", "spec": None},
        {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": "broken"}},
    ],
)
def test_what_makes_no_pods_has_none(manifest):
    assert list(pod_specs(manifest)) == []


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Job", "CronJob", "Pod"])
def test_the_pods_of_each_kind_of_our_workload_are_found(chart, kind):
    GpuWorkload(chart, "train", image="a:1", kind=kind, schedule="0 3 * * *" if kind == "CronJob" else None)
    found = [spec for manifest in Testing.synth(chart) for spec in pod_specs(manifest)]
    assert [[container["image"] for container in containers(spec)] for spec in found] == [["a:1"]]


def test_the_pods_of_cdk8s_plus_workloads_are_found(chart):
    main = [kplus.ContainerProps(image="a:1")]
    kplus.Deployment(chart, "deployment", containers=main)
    kplus.DaemonSet(chart, "daemon-set", containers=main)
    kplus.StatefulSet(chart, "stateful-set", containers=[kplus.ContainerProps(image="a:1", port_number=80)])
    kplus.Job(chart, "job", containers=main)
    kplus.CronJob(chart, "cron-job", containers=main, schedule=Cron.daily())
    kplus.Pod(chart, "pod", containers=main)
    found = [spec for manifest in Testing.synth(chart) for spec in pod_specs(manifest)]
    assert [[container["image"] for container in containers(spec)] for spec in found] == [["a:1"]] * 6


def test_containers_that_run_first_come_first():
    assert [c["name"] for c in containers({"containers": [{"name": "b"}], "initContainers": [{"name": "a"}]})] == [
        "a",
        "b",
    ]
    assert list(containers({"initContainers": None})) == []


def affinity(*terms, kind="required"):
    rule = {"nodeSelectorTerms": [{"matchExpressions": list(term)} for term in terms]}
    return {"affinity": {"nodeAffinity": {f"{kind}DuringSchedulingIgnoredDuringExecution": rule}}}


def expression(key, operator="In"):
    return {"key": key, "operator": operator}


@pytest.mark.parametrize(
    ("pod", "required"),
    [
        ({}, []),
        ({"nodeSelector": None, "affinity": None}, []),
        ({"affinity": {"nodeAffinity": None}}, []),
        ({"nodeSelector": {"a": "1", "b": "2"}}, [{"a"}, {"b"}]),
        (affinity([expression("a")], [expression("b", "Exists")]), [{"a", "b"}]),
        ({"nodeSelector": {"a": "1"}, **affinity([expression("b")])}, [{"a"}, {"b"}]),
        (affinity([expression("a", "NotIn")]), []),
        (affinity([expression("a", "DoesNotExist")]), []),
        (affinity([expression("a", "NotIn"), expression("b")]), [{"b"}]),
        (affinity([expression("a")], [expression("b", "DoesNotExist")]), []),
        (affinity([expression("a")], kind="preferred"), []),
        (affinity([{"key": "a"}]), [{"a"}]),
    ],
)
def test_labels_a_node_must_carry_are_told_from_those_it_may(pod, required):
    assert list(node_labels_required(pod)) == required
